//! A network limited to hosts, from the command's side and from the machine's: with real clients, on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use plenipo_testkit::{Deadline, Listener, find_tool, is_root, requires};
use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user, python};

/// A web server on loopback: every answer is what was asked, and then this.
const BODY: &str = "from the server\n";

struct Web {
    port: u16,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || drop(answer(stream)));
            }
        });
        Self { port }
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.extend(byte);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let body = format!("{line}\n{BODY}");
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A configuration with one profile, `web`, whose network is limited to `domains` (TOML).
fn configured(bench: &Bench, domains: &str) -> String {
    bench.configuration(&format!(
        "[permissions.web]\nextends = \":workspace\"\n[permissions.web.network]\nmode = \"limited\"\n{domains}\n"
    ))
}

fn run(bench: &Bench, domains: &str, script: &str) -> Ran {
    let file = configured(bench, domains);
    bench.run(["--config", &file, "sandbox", "-P", "web", "--", "sh", "-c", script])
}

/// The same with what is told at the end.
fn run_to_its_end(bench: &Bench, domains: &str, script: &str) -> (Ran, Value) {
    let file = configured(bench, domains);
    let end = bench.fixture.path().join("end.json");
    let program = bench.program().display().to_string();
    let start = "exec \"$@\" 9>\"$0\"";
    let words = [
        "-c",
        start,
        &end.display().to_string(),
        &program,
        "--config",
        &file,
        "sandbox",
        "-P",
        "web",
        "--end-report-fd",
        "9",
        "--",
        "sh",
        "-c",
        script,
    ];
    let ran = Ran::of(bench.command_of("/bin/sh".into(), words).output().unwrap());
    let text = std::fs::read_to_string(&end).unwrap();
    assert_eq!(text.lines().count(), 1, "{text:?} {ran:?}");
    (ran, serde_json::from_str(&text).unwrap())
}

fn curl() -> bool {
    requires("curl", find_tool("curl").is_some())
}

#[test]
fn a_listed_host_is_reached_by_every_way_that_programs_have() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let domains = format!("domains = [\"*.localhost:{port}\", \"127.0.0.1:{port}\"]");
        let ways = [
            format!("curl -sS http://a.localhost:{port}/x"),
            format!("curl -sS --proxytunnel http://a.localhost:{port}/x"),
            format!("curl -sS -x socks5h://127.0.0.1:3128 http://a.localhost:{port}/x"),
            format!("curl -sS -x socks5h://127.0.0.1:3128 http://127.1:{port}/x"),
            format!(
                "curl -sS --request POST --data-binary @/etc/passwd http://a.localhost:{port}/x"
            ),
        ];
        for way in ways {
            let ran = run(bench, &domains, &way);
            assert!(
                ran.expect(0).stdout.ends_with(&format!(" /x HTTP/1.1\n{BODY}")),
                "{way}: {ran:?}"
            );
            assert_eq!(ran.stderr, "", "{way}");
        }
    });
}

#[test]
fn what_is_not_listed_is_refused_and_told_at_the_end() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let domains = format!(
            "domains = {{ \"*.localhost:{port}\" = \"allow\", \"bad.localhost\" = \"deny\" }}"
        );
        let script = format!(
            "for u in bad.localhost:{port} localhost:{port} x.localhost.evil:{port} 0x7f000001:{port} \
             [::ffff:127.0.0.1]:{port} a.localhost:1; do \
             curl -g -sS -o /dev/null -w '%{{http_code}} ' http://$u/; done; \
             curl -s -o /dev/null https://evil.example/; echo $?"
        );
        let (ran, end) = run_to_its_end(bench, &domains, &script);
        assert_eq!(ran.expect(0).stdout, "403 403 403 403 403 403 56\n");
        let told = ran.stderr.lines().last().unwrap_or_default();
        assert!(
            told.starts_with("plenipo: the network is limited; refused: 127.0.0.1:")
                && told.contains("(not listed, 2 times)")
                && told.ends_with("and 3 more"),
            "{told}"
        );
        assert_eq!((&end["status"], &end["exit_code"]), (&"ended".into(), &0.into()));
        let refused = end["network"]["refused"].as_array().unwrap();
        let denied = refused.iter().find(|refused| refused["host"] == "bad.localhost").unwrap();
        assert_eq!((&denied["reason"], &denied["count"]), (&"denied".into(), &1.into()));
        assert_eq!(refused.len(), 6, "{refused:?}");
        assert_eq!(end["network"]["connections"], 7);
    });
}

#[test]
fn an_empty_list_reaches_nothing() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        for domains in ["", "domains = []", "domains = {}"] {
            let script =
                format!("curl -s -o /dev/null -w '%{{http_code}}' http://localhost:{port}/");
            assert_eq!(run(bench, domains, &script).expect(0).stdout, "403", "{domains}");
        }
    });
}

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
fn the_command_finds_the_proxy_in_its_environment_and_no_exceptions() {
    as_each_user(|bench| {
        let file = configured(bench, "domains = [\"example.org\"]");
        let words = [
            "--config",
            &file,
            "sandbox",
            "-P",
            "web",
            "--",
            "sh",
            "-c",
            "env | grep -i -e proxy -e NETWORK_DISABLED | sort",
        ];
        let mut command = bench.command(words);
        command
            .env("NO_PROXY", "*")
            .env("no_proxy", "localhost")
            .env("https_proxy", "http://elsewhere:1");
        let ran = Ran::of(command.output().unwrap());
        let mut found: Vec<&str> = ran.expect(0).stdout.lines().collect();
        found.sort_unstable();
        let expected = ["ALL", "HTTPS", "HTTP", "all", "https", "http"].map(|name| {
            let proxy = if name.starts_with(char::is_uppercase) { "_PROXY" } else { "_proxy" };
            format!("{name}{proxy}=http://127.0.0.1:3128")
        });
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    });
}

/// A sandboxed command that runs until its input ends.
fn waiting(bench: &Bench, domains: &str, script: &str) -> Child {
    let file = configured(bench, domains);
    let words = ["--config", &file, "sandbox", "-P", "web", "--", "sh", "-c", script];
    bench
        .command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The first line that a child writes.
fn first_line(child: &mut Child) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    let stdout = child.stdout.as_mut().unwrap();
    while !line.ends_with(b"\n") && stdout.read(&mut byte).unwrap() > 0 {
        line.extend(byte);
    }
    String::from_utf8(line).unwrap()
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

#[test]
fn git_clones_through_the_proxy() {
    let (Some(git), Some(python)) = (find_tool("git"), python()) else {
        requires("git", find_tool("git").is_some());
        return;
    };
    let git = git.display().to_string();
    as_each_user(|bench| {
        let served = bench.fixture.directory("served");
        make_repository(&git, &served);
        let mut web = std::process::Command::new(&python)
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "-d"])
            .arg(&served)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = first_line(&mut web);
        let port = line.split_whitespace().nth(5).unwrap_or_default().to_owned();
        let url = format!("http://git.localhost:{port}/repo.git");
        let clone = |domains: &str| {
            run(
                bench,
                domains,
                &format!("rm -rf clone; {git} clone -q {url} clone && cat clone/file"),
            )
        };
        let cloned = clone(&format!("domains = [\"git.localhost:{port}\"]"));
        let refused = clone("domains = [\"git.localhost\"]");
        web.kill().unwrap();
        web.wait().unwrap();
        assert_eq!(cloned.expect(0).stdout, "content\n");
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("listed with other ports only"), "{refused:?}");
    });
}

fn make_repository(git: &str, served: &Path) {
    let work = served.join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("file"), "content\n").unwrap();
    let run = |directory: &Path, words: &[&str]| {
        let identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ];
        let status = std::process::Command::new(git)
            .args(identity)
            .args(words)
            .current_dir(directory)
            .env("HOME", served)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{words:?}");
    };
    run(&work, &["init", "-q"]);
    run(&work, &["add", "."]);
    run(&work, &["commit", "-q", "-m", "first"]);
    run(served, &["clone", "-q", "--bare", "work", "repo.git"]);
    run(&served.join("repo.git"), &["update-server-info"]);
}

#[test]
fn a_large_transfer_is_exact() {
    if !curl() {
        return;
    }
    const MANY: usize = 64 * 1024 * 1024;
    as_each_user(|bench| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {MANY}\r\n\r\n").unwrap();
            let block: Vec<u8> = (0..1_048_576_usize).map(|n| (n * 7 % 253) as u8).collect();
            for _ in 0..MANY / block.len() {
                stream.write_all(&block).unwrap();
            }
        });
        let ran = run(
            bench,
            &format!("domains = [\"localhost:{port}\"]"),
            &format!("curl -sS http://localhost:{port}/ | sha256sum"),
        );
        server.join().unwrap();
        let mut expected = std::process::Command::new("sha256sum")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let block: Vec<u8> = (0..1_048_576_usize).map(|n| (n * 7 % 253) as u8).collect();
        let mut stdin = expected.stdin.take().unwrap();
        for _ in 0..MANY / block.len() {
            stdin.write_all(&block).unwrap();
        }
        drop(stdin);
        let expected = expected.wait_with_output().unwrap();
        assert_eq!(ran.expect(0).stdout, String::from_utf8(expected.stdout).unwrap());
    });
}

#[test]
fn a_state_carries_the_list_and_the_report_shows_it() {
    as_each_user(|bench| {
        let state = r#"{"permissionProfile":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}]},"network":"restricted"},"sandboxCwd":"file:///","plenipoNetwork":{"mode":"limited","domains":{"Example.org.":"allow","ads.example.org":"deny"}}}"#;
        let words = [
            "sandbox",
            "--report-fd",
            "1",
            "--sandbox-state-json",
            state,
            "--",
            "sh",
            "-c",
            "echo $https_proxy",
        ];
        let ran = bench.run(words);
        let (report, rest) = ran.expect(0).stdout.split_once('\n').unwrap();
        assert_eq!(rest, "http://127.0.0.1:3128\n");
        let report: Value = serde_json::from_str(report).unwrap();
        assert_eq!(
            report["network"],
            serde_json::json!({
                "mode": "limited", "proxy": "127.0.0.1:3128",
                "domains": { "ads.example.org": "deny", "example.org": "allow" },
            })
        );
        assert_eq!(report["layers"]["network"], "enforced");
        assert_eq!(report["unknown_members"], serde_json::json!([]));
        let off = [
            "sandbox",
            "--sandbox-state-disable-network",
            "--sandbox-state-json",
            state,
            "--",
            "sh",
            "-c",
            "echo $https_proxy$CODEX_SANDBOX_NETWORK_DISABLED",
        ];
        assert_eq!(bench.run(off).expect(0).stdout, "1\n");
        let explained = bench.run(["sandbox", "--explain", "--sandbox-state-json", state]);
        for line in [
            "network            enforced: hosts by the proxy at 127.0.0.1:3128",
            "allow host         example.org",
            "deny host          ads.example.org",
        ] {
            assert!(
                explained.expect(0).stdout.lines().any(|found| found == line),
                "{line}: {explained:?}"
            );
        }
    });
}

/// Names that only a hosts file of this test's own knows, in a mount namespace of its own: the machine's resolver answers.
#[test]
fn a_name_of_the_machines_resolver_is_checked_by_its_address() {
    let in_root = requires("root, for a hosts file of the test's own", is_root());
    if !in_root || !curl() {
        return;
    }
    let bench = Bench::new();
    let port = Web::start().port;
    let hosts = bench.fixture.file("hosts", "127.0.0.1 inside.example mixed.example\n10.11.12.13 private.example\n169.254.169.254 metadata.example mixed.example\n::ffff:127.0.0.1 mapped.example\n");
    let program = bench.program().display().to_string();
    let status = |domains: &str, name: &str| {
        let file = configured(&bench, domains);
        let script = format!("curl -sS -m 20 http://{name}:{port}/ | tail -1");
        let inside = format!(
            "mount --bind {} /etc/hosts && exec {program} --config {file} sandbox -P web -- sh -c '{script}'",
            hosts.display()
        );
        let words = ["-m", "/bin/sh", "-c", &inside];
        let ran = Ran::of(bench.command_of("/usr/bin/unshare".into(), words).output().unwrap());
        ran.expect(0).stdout.clone()
    };
    let names = format!("\"*.example:{port}\"");
    for (name, kind, address) in [
        ("inside", "loopback", "127.0.0.1"),
        ("private", "private", "10.11.12.13"),
        ("metadata", "metadata", "169.254.169.254"),
        ("mapped", "loopback", "127.0.0.1"),
    ] {
        let refused = status(&format!("domains = [{names}]"), &format!("{name}.example"));
        let expected = format!(
            "plenipo: refused {name}.example:{port}: resolves to the {kind} address {address}, which is not listed itself\n"
        );
        assert_eq!(refused, expected);
    }
    let with_address = format!("domains = [{names}, \"127.0.0.1:{port}\"]");
    for name in ["inside.example", "mapped.example", "mixed.example", "INSIDE.example."] {
        assert_eq!(status(&with_address, name), BODY, "{name}");
    }
    assert_eq!(status(&with_address, "unknown.example").lines().count(), 1);
    assert!(
        status(&with_address, "unknown.example")
            .starts_with("plenipo: cannot resolve unknown.example")
    );
}

/// As an ordinary user where no user namespace can be made, so that Landlock alone is left.
#[test]
fn a_rung_that_cannot_limit_the_network_refuses_by_name() {
    let bench = Bench::ordinary();
    let profile = "[permissions.web]\nextends = \":read-only\"\n[permissions.web.network]\nmode = \"limited\"\n";
    let file = bench.configuration(&format!("[sandbox]\nminimum_rung = \"landlock\"\n{profile}"));
    let program = bench.program().display().to_string();
    let off = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin -- \"$0\" \"$@\"";
    let run = |profile: &str| {
        let words = [
            "-Ur", "/bin/sh", "-c", off, &program, "--config", &file, "sandbox", "-P", profile,
            "--", "echo", "ran",
        ];
        Ran::of(bench.command_of("/usr/bin/unshare".into(), words).output().unwrap())
    };
    let refused = run("web");
    assert!(
        refused.expect(125).stderr.contains("landlock: it cannot limit the network to hosts"),
        "{refused:?}"
    );
    assert_eq!(refused.stdout, "");
    assert_eq!(
        run(":read-only").expect(0).stdout,
        "ran\n",
        "the control: without a limited network it runs"
    );
}

#[test]
fn a_tool_call_is_limited_like_a_command() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let file = configured(bench, &format!("domains = [\"localhost:{port}\"]"));
        let command =
            format!("command=curl -sS http://localhost:{port}/; curl -sS http://evil.example/");
        let ran = bench.run([
            "call",
            "--config",
            &file,
            "--profile",
            "web",
            "--json",
            "workspace.run",
            &command,
        ]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let result = &answer["result"]["structuredContent"];
        let stdout = result["stdout"].as_str().unwrap();
        assert!(
            stdout.contains(BODY) && stdout.contains("refused evil.example:80: not listed"),
            "{ran:?}"
        );
        assert_eq!(result["enforcement"]["network"]["mode"], "limited", "{ran:?}");
        let stderr = result["stderr"].as_str().unwrap();
        assert!(
            stderr.contains("the network is limited; refused: evil.example:80 (not listed)"),
            "{stderr}"
        );
    });
}

#[test]
fn a_project_may_narrow_the_list_and_never_widen_it() {
    let bench = Bench::new();
    let yours = "default_permissions = \"web\"\n[permissions.web]\nextends = \":workspace\"\n[permissions.web.network]\nmode = \"limited\"\ndomains = [\"*.example.org\"]\n";
    let file = bench.configuration(yours);
    let check = |domains: &str| {
        let project = format!(
            "default_permissions = \"project\"\n[permissions.project]\nextends = \":workspace\"\n[permissions.project.network]\nmode = \"limited\"\ndomains = [{domains}]\n"
        );
        bench.fixture.file("workspace/plenipo.toml", project);
        bench.run(["trust", "--yes"]).expect(0);
        bench.run(["--config", &file, "sandbox", "--", "sh", "-c", "echo $https_proxy"])
    };
    assert_eq!(check("\"a.example.org\"").expect(0).stdout, "http://127.0.0.1:3128\n");
    let refused = check("\"example.net\"");
    assert!(
        refused
            .expect(125)
            .stderr
            .contains("it allows the host example.net, which the limit does not allow"),
        "{refused:?}"
    );
}

#[test]
fn a_terminal_goes_with_a_limited_network() {
    if !curl() || !requires("script(1)", find_tool("script").is_some()) {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let file = configured(bench, &format!("domains = [\"localhost:{port}\"]"));
        let program = bench.program().display().to_string();
        let inside = format!("test -t 0 && curl -sS http://localhost:{port}/");
        let line = format!("{program} --config {file} sandbox -P web --tty -- sh -c '{inside}'");
        let words = ["-qec", &line, "/dev/null"];
        let ran = Ran::of(bench.command_of("/usr/bin/script".into(), words).output().unwrap());
        assert!(ran.expect(0).stdout.replace('\r', "").ends_with(BODY), "{ran:?}");
    });
}
