//! Ways round the proxy, and who else could use it: none, and nobody.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use plenipo_testkit::{Deadline, Listener};

use super::{Web, configured, curl, first_line, waiting};
use crate::support::{Ran, as_each_user, python};

/// Sockets of every kind, aimed at listeners outside that would count them.
const AROUND: &str = r#"
import os, socket, sys
tcp, udp, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def attempt(name, action):
    try:
        action()
        print(name, "done")
    except OSError as error:
        print(name, os.strerror(error.errno) if error.errno else error)
def connect(family, kind, address):
    s = socket.socket(family, kind); s.settimeout(5); s.connect(address); s.send(b"x")
attempt("tcp", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)))
attempt("tcp6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", tcp)))
attempt("udp", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("ping", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
attempt("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0))
attempt("unix", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path))
attempt("abstract", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0plenipo"))
attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("bind", lambda: socket.socket().bind(("127.0.0.1", 0)))
attempt("listen", lambda: socket.socket().listen())
def sendto():
    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", tcp))
attempt("fastopen", sendto)
attempt("resolve", lambda: socket.getaddrinfo("example.org", 80))
attempt("pair", lambda: socket.socketpair())
"#;

#[test]
fn a_program_that_ignores_the_proxy_reaches_nothing() {
    let Some(python) = python() else { return };
    as_each_user(|bench| {
        let (tcp, udp) = (Listener::tcp(), Listener::udp());
        let path = bench.fixture.path().join("socket");
        let unix = Listener::unix_stream(&path);
        let script = bench.fixture.file("workspace/around.py", AROUND).display().to_string();
        let [tcp_port, udp_port] = [&tcp, &udp].map(|l| l.socket_address().port().to_string());
        let path = path.display().to_string();
        let words = [python.as_str(), &script, &tcp_port, &udp_port, &path];
        let domains = format!("domains = [\"127.0.0.1:{tcp_port}\", \"localhost:{tcp_port}\"]");
        let file = configured(bench, &domains);
        let sandboxed = ["--config", &file, "sandbox", "-P", "web", "--"];
        let ran = bench.run(sandboxed.iter().chain(&words));
        let arrived = |l: &Listener| l.count();
        assert_eq!([arrived(&tcp), arrived(&udp), arrived(&unix)], [0, 0, 0], "{ran:?}");
        let done: Vec<&str> =
            ran.expect(0).stdout.lines().filter(|line| line.ends_with("done")).collect();
        assert_eq!(done, ["pair done"], "{ran:?}");
        // The control: the same program outside does reach them.
        let outside = Ran::of(bench.command_of(words[0].into(), &words[1..]).output().unwrap());
        for name in ["tcp", "tcp6", "udp", "bind", "listen"] {
            assert!(outside.stdout.contains(&format!("{name} done")), "{name}: {outside:?}");
        }
        let limit = Duration::from_secs(10);
        assert!(Deadline::poll_until(limit, || {
            arrived(&tcp) >= 2 && arrived(&udp) >= 1 && arrived(&unix) >= 1
        }));
    });
}

#[test]
fn nobody_else_on_the_machine_can_use_the_proxy() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let domains = format!("domains = [\"localhost:{port}\"]");
        let script =
            format!("curl -s -o /dev/null -w '%{{http_code}}\\n' http://localhost:{port}/; read x");
        let mut child = waiting(bench, &domains, &script);
        assert_eq!(first_line(&mut child), "200\n", "it works inside");
        let launcher = child.id();
        for directory in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(text) = std::fs::read_to_string(directory.path().join("status")) else {
                continue;
            };
            let parent = text.lines().find_map(|line| line.strip_prefix("PPid:\t"));
            if parent != Some(&launcher.to_string()) {
                continue;
            }
            // The launcher's child: its namespace has the listener (0A, port 0C38), and the machine's has not.
            let inside =
                std::fs::read_to_string(directory.path().join("net/tcp")).unwrap_or_default();
            assert!(
                inside.is_empty() || inside.contains("0100007F:0C38 00000000:0000 0A"),
                "{inside}"
            );
        }
        let outside = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(!outside.contains(":0C38 00000000:0000 0A"), "no listener on 3128 outside");
        assert!(TcpStream::connect(("127.0.0.1", 3128)).is_err());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().code().is_some());
    });
}

#[test]
fn two_sandboxes_have_a_proxy_each_with_its_own_list() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let (one, other) = (Web::start().port, Web::start().port);
        let script = format!(
            "for p in {one} {other}; do curl -s -o /dev/null -w '%{{http_code}} ' http://localhost:$p/; done; echo; read x"
        );
        let mut children = [one, other].map(|port| {
            let mut child = waiting(bench, &format!("domains = [\"localhost:{port}\"]"), &script);
            let line = first_line(&mut child);
            (child, line)
        });
        assert_eq!(children[0].1, "200 403 \n");
        assert_eq!(children[1].1, "403 200 \n");
        for (child, _) in &mut children {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    });
}

#[test]
fn killing_the_launcher_ends_command_proxy_and_connections() {
    let Some(python) = python() else { return };
    as_each_user(|bench| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = "import socket, sys; s = socket.create_connection(('127.0.0.1', 3128)); \
                    s.sendall(b'CONNECT 127.0.0.1:' + sys.argv[1].encode() + b' HTTP/1.1\\r\\n\\r\\n'); \
                    print(s.recv(12).decode(), flush=True); sys.stdin.read()";
        let script = format!("{python} -c \"{open}\" {port}");
        let mut child = waiting(bench, &format!("domains = [\"127.0.0.1:{port}\"]"), &script);
        assert_eq!(first_line(&mut child), "HTTP/1.1 200\n");
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(matches!(connection.read(&mut [0]), Ok(0) | Err(_)), "the connection is gone");
    });
}

#[test]
fn a_plain_launch_has_one_thread_and_a_limited_one_ends_its_own() {
    as_each_user(|bench| {
        let threads = |child: &Child| {
            std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count()
        };
        let mut plain = bench
            .command(["sandbox", "-P", ":workspace", "--", "sh", "-c", "echo up; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(first_line(&mut plain), "up\n");
        assert_eq!(threads(&plain), 1);
        let mut limited = waiting(bench, "domains = [\"example.org\"]", "echo up; read x");
        assert_eq!(first_line(&mut limited), "up\n");
        assert_eq!(threads(&limited), 2, "one that waits for connections");
        for child in [&mut plain, &mut limited] {
            drop(child.stdin.take());
            assert!(child.wait().unwrap().code().is_some());
        }
    });
}

#[test]
fn an_internet_socket_as_a_stream_would_be_a_way_round() {
    as_each_user(|bench| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let outside = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let file = configured(bench, "domains = [\"example.org\"]");
        let sandbox = |profile: &str| {
            let words = ["--config", &file, "sandbox", "-P", profile, "--", "true"];
            let stdin = std::os::fd::OwnedFd::from(outside.try_clone().unwrap());
            Ran::of(bench.command(words).stdin(Stdio::from(stdin)).output().unwrap())
        };
        let ran = sandbox("web");
        assert!(
            ran.expect(125)
                .stderr
                .contains("stdin is an internet socket while the network is limited"),
            "{ran:?}"
        );
        sandbox(":workspace").expect(0); // the control: without a network it cannot be aimed
    });
}
