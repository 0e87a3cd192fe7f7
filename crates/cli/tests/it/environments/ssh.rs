//! Over a real `sshd` on loopback, with keys and a configuration of the test's own.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, Fixture, find_tool, is_root, requires};

use super::{HARD_WORDS, Place, run, state, text};

const LIMIT: Duration = Duration::from_secs(30);

/// A server of ssh for one test, and how to reach it.
struct Ssh {
    keys: Fixture,
    port: u16,
    _daemon: ChildGuard,
}

impl Ssh {
    fn start() -> Option<Self> {
        let daemon = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].into_iter().map(PathBuf::from);
        let daemon = daemon.into_iter().find(|path| path.is_file());
        let able = is_root() && find_tool("ssh").is_some() && daemon.is_some();
        if !requires("root, ssh and sshd (openssh-server)", able) {
            return None;
        }
        let keys = Fixture::new();
        for name in ["host", "client"] {
            let file = keys.join(name).display().to_string();
            assert!(run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file]));
        }
        keys.file("authorized", keys.read("client.pub").unwrap());
        std::fs::create_dir_all("/run/sshd").unwrap();
        let port = plenipo_testkit::Listener::tcp().socket_address().port();
        let at = |name: &str| keys.join(name).display().to_string();
        let config = keys.file(
            "sshd_config",
            format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
                 StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv WHERE_*\n",
                at("host"),
                at("authorized")
            ),
        );
        let key = keys.read("host.pub").unwrap();
        keys.file("known", format!("[127.0.0.1]:{port} {key}"));
        let mut command = Command::new(daemon?);
        command.args(["-D", "-e", "-f"]).arg(config);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ssh = Self { keys, port, _daemon: ChildGuard::new(child) };
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(Deadline::poll_until(LIMIT, listens), "sshd listens");
        Some(ssh)
    }

    fn place(&self) -> Option<Place> {
        let at = |name: &str| self.keys.join(name).display().to_string();
        let known = format!("UserKnownHostsFile={}", at("known"));
        let (port, client) = (self.port.to_string(), at("client"));
        let command = [
            "ssh",
            "-F",
            "none",
            "-p",
            &port,
            "-i",
            &client,
            "-o",
            &known,
            "-o",
            "BatchMode=yes",
            "{env}",
            "root@127.0.0.1",
            "--",
        ];
        let place = Place::new(&command)?;
        let forward = "forward_env = [\"-o\", \"SendEnv={name}\"]\n";
        Some(place.environment("quoting = \"posix\"\n").environment(forward))
    }
}

#[test]
fn every_word_arrives_over_ssh_as_it_was_written() {
    let Some(ssh) = Ssh::start() else { return };
    let Some(place) = ssh.place() else { return };
    let place = place.add(&HARD_WORDS).environment("cwd = \"/var\"\n");
    let place = place.server("env = { WHERE_TOKEN = \"s3 'cret$(id)\" }\n");
    let answer = place.answer(&[]);
    assert_eq!(answer["argv"], serde_json::json!(HARD_WORDS));
    assert_eq!(text(&answer, "cwd"), "/var");
    assert_eq!(answer["env"]["WHERE_TOKEN"], "s3 'cret$(id)", "sent by its name");
    assert!(answer["env"]["SSH_CONNECTION"].is_string(), "it came over ssh");
    assert_eq!(state(&answer)["sandboxCwd"], "file:///var");
    assert!(answer["meta"].get("codex/sandbox-launcher").is_none(), "{answer}");
}

/// The server ignores the end of its input and SIGTERM; only the watchdog over there ends it.
#[test]
fn nothing_stays_over_there_when_ssh_is_killed() {
    let Some(ssh) = Ssh::start() else { return };
    let Some(place) = ssh.place() else { return };
    let place = place.add(&["stay"]);
    let mark = place.bench.fixture.join("mark");
    let (config, argument) = (place.config(), format!("mark={}", mark.display()));
    let mut call = place.bench.command(["call", "--config", &config, "where.stay", &argument]);
    let call = call.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let marked = || std::fs::read_to_string(&mark).is_ok_and(|text| text.ends_with('\n'));
    assert!(Deadline::poll_until(LIMIT, marked), "the server has the call");
    let server: u32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    let alive = |pid: u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(alive(server));
    assert!(run("kill", &["-KILL", &client(ssh.port).to_string()]));
    let ended = call.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(Deadline::poll_until(LIMIT, || !alive(server)), "the server over there ends");
}

/// The ssh client that talks to this port.
fn client(port: u16) -> u32 {
    let mut found: Vec<u32> = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).collect();
        if words.first() == Some(&&b"ssh"[..]) && words.contains(&port.to_string().as_bytes()) {
            found.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}
