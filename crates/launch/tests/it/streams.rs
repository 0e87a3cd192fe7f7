//! Standard streams that would be a way out: files on the host's mounts, sockets without a peer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use plenipo_testkit::Listener;
use rustix::net::{AddressFamily, SocketType};

use crate::stage::{Ended, Profile, Stage, Who};

fn with_stdin(stage: &Stage, profile: &Profile, stdin: impl Into<Stdio>, script: &str) -> Ended {
    let mut command: Command = stage.inside(profile, &["/bin/sh", "-c", script]);
    Ended::of(&command.stdin(stdin).output().unwrap())
}

/// Everything that a descriptor offers besides reading.
const ATTACK: &str = "exec 2>/dev/null
    echo evil > /dev/stdin && echo wrote; echo evil >> /proc/self/fd/0 && echo appended
    true <> /dev/stdin && echo opened; truncate -s 0 /dev/stdin && echo truncated
    chmod 600 /dev/stdin && echo chmod; touch -d @5 /dev/stdin && echo touched
    chmod 600 /proc/self/fd/0 && echo chmod again; cat";

#[test]
fn a_protected_file_given_as_stdin_is_only_read() {
    for who in Who::everybody() {
        for place in ["ws/.git/config", "out/file", "ws/kept/file"] {
            let stage = Stage::new(who);
            let file = stage.fixture.file(place, "first\nsecond\n");
            stage.fixture.directory("ws/.git");
            let profile = stage.workspace().path("read", &stage.path("ws/kept"));
            let before = file.metadata().unwrap();
            let ended = with_stdin(&stage, &profile, File::open(&file).unwrap(), ATTACK);
            assert_eq!(ended.stdout, "first\nsecond\n", "{place}: {ended:?}");
            let after = file.metadata().unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "first\nsecond\n");
            assert_eq!((after.mode(), after.mtime()), (before.mode(), before.mtime()), "{place}");
        }
    }
}

#[test]
fn a_denied_file_given_as_stdin_is_read_and_not_changed() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let file = stage.fixture.file("ws/denied/file", "given\n");
        let profile = stage.workspace().path("deny", &stage.path("ws/denied"));
        let ended = with_stdin(&stage, &profile, File::open(&file).unwrap(), ATTACK);
        assert_eq!(ended.stdout, "given\n", "{ended:?}");
        let minimal = stage.profile().special("read", "minimal").path("write", &stage.path("ws"));
        let other = stage.fixture.file("out/file", "given\n");
        let ended = with_stdin(&stage, &minimal, File::open(&other).unwrap(), ATTACK);
        assert_eq!(ended.stdout, "given\n", "{ended:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "given\n");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "given\n");
    }
}

#[test]
fn a_file_given_as_stdin_is_read_from_where_the_caller_stopped() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let place = stage.fixture.file("out/file", "first\nsecond\n");
        let mut file = File::open(&place).unwrap();
        file.seek(SeekFrom::Start(6)).unwrap();
        let ended = with_stdin(&stage, &stage.workspace(), file, "cat");
        assert_eq!(ended.stdout, "second\n", "{ended:?}");
        // A writable file is the command's to change, and passes through with its position.
        let mut file = File::open(stage.fixture.file("ws/file", "first\nsecond\n")).unwrap();
        let again = file.try_clone().unwrap();
        let ended = with_stdin(&stage, &stage.workspace(), again, "read x; echo $x > /dev/stdin");
        assert_eq!((ended.code, file.stream_position().unwrap()), (0, 6), "{ended:?}");
    }
}

#[test]
fn a_deleted_file_and_one_of_somebody_else_can_be_stdin() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let place = stage.fixture.file("out/file", "gone\n");
        let file = File::open(&place).unwrap();
        std::fs::remove_file(place).unwrap();
        let ended = with_stdin(&stage, &stage.workspace(), file, "cat");
        assert_eq!(ended.stdout, "gone\n", "{ended:?}");
        if who == Who::User && plenipo_testkit::is_root() {
            let place = stage.fixture.file("out/closed", "root's\n");
            std::os::unix::fs::chown(&place, Some(0), Some(0)).unwrap();
            stage.fixture.set_mode("out/closed", 0o600);
            let file = File::open(place).unwrap();
            let ended = with_stdin(&stage, &stage.workspace(), file, "cat");
            assert_eq!(ended.stdout, "root's\n", "{ended:?}");
        }
    }
}

#[test]
fn a_file_given_for_writing_is_written() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let place = stage.fixture.file("out/log", "");
        let mut command = stage.inside(&stage.workspace(), &["/bin/sh", "-c", "echo said"]);
        assert!(command.stdout(File::create(&place).unwrap()).status().unwrap().success());
        let mut said = String::new();
        File::open(place).unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "said\n");
    }
}

/// User 0 owns the device nodes, and needs no capability to change their modes.
#[test]
fn the_hosts_device_nodes_cannot_be_changed() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let before = std::fs::metadata("/dev/null").unwrap().mode();
        let script =
            "chmod 640 /dev/null; chmod 640 /dev/stdin; chmod 640 /dev/stdout; chmod 640 /dev/zero
            touch -d @5 /dev/null; cat; echo x > /dev/null";
        let mut command = stage.inside(&stage.workspace(), &["/bin/sh", "-c", script]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let after = std::fs::metadata("/dev/null").unwrap().mode();
        if after != before {
            std::fs::set_permissions(
                "/dev/null",
                std::os::unix::fs::PermissionsExt::from_mode(before),
            )
            .unwrap();
        }
        assert_eq!((after, status.code()), (before, Some(0)), "as {}", who.name());
    }
}

fn unconnected(family: AddressFamily) -> OwnedFd {
    rustix::net::socket(family, SocketType::STREAM, None).unwrap()
}

#[test]
fn a_socket_without_a_peer_is_refused_as_a_standard_stream() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let (internet, local) = ([AddressFamily::INET, AddressFamily::INET6], AddressFamily::UNIX);
        let run = |family, network| {
            let profile = stage.workspace().network(network);
            with_stdin(&stage, &profile, unconnected(family), "echo ran")
        };
        for family in internet.into_iter().chain([local]) {
            let ended = run(family, "restricted");
            assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{family:?}: {ended:?}");
            assert!(ended.stderr.contains("stdin is a socket that is not connected"), "{ended:?}");
        }
        // A command with the network makes its own internet sockets, and no local ones.
        assert_eq!(run(internet[0], "enabled").stdout, "ran\n");
        assert_eq!(run(local, "enabled").code, 125);
    }
}

#[test]
fn a_connected_socket_as_a_standard_stream_works_and_stays_where_it_is() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let (first, second) = (Listener::tcp(), Listener::tcp());
        let socket = TcpStream::connect(first.socket_address()).unwrap();
        let port = second.port();
        // MSG_FASTOPEN = 0x20000000; a send to another address on an inherited socket.
        let script = format!(
            "import socket
s = socket.socket(fileno=0)
for flags in (0x20000000, 0):
    try:
        s.sendmsg([b'x'], [], flags, ('127.0.0.1', {port}))
        print('sent', flags)
    except OSError as error:
        print(error.errno)"
        );
        let mut command = stage.inside(&stage.workspace(), &["/usr/bin/python3", "-c", &script]);
        let said = Ended::of(&command.stdin(OwnedFd::from(socket)).output().unwrap());
        if said.code == 127 {
            return; // no interpreter: the filter's own tests say the same
        }
        assert!(said.stdout.starts_with("1\n"), "{said:?}");
        assert_eq!(second.count(), 0);
    }
}
