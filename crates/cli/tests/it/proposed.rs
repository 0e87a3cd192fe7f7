//! `plenipo doctor SERVER`: the profile that it proposes confines the server, which works in it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, Listener, peers, processes_with_marker, requires};
use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user, data, python};

const KEY: &str = "PRIVATE KEY of the test";

/// A server in a configuration, which grows by what is proposed.
struct Proposed<'a> {
    bench: &'a Bench,
    server: String,
}

impl<'a> Proposed<'a> {
    fn new(bench: &'a Bench, program: &str, args: &[String], more: &str) -> Self {
        bench.fixture.file("home/.ssh/id", KEY);
        let server = format!("[mcp_servers.s]\ncommand = {program:?}\nargs = {args:?}\n{more}\n");
        Self { bench, server }
    }

    fn doctor(&self, more: &[&str]) -> Ran {
        let config = self.bench.configuration(&self.server);
        self.bench.run(["doctor", "--config", &config, "s"].iter().chain(more))
    }

    /// The configuration with the proposal pasted, and what was said.
    #[track_caller]
    fn pasted(&self, more: &[&str]) -> (String, Ran) {
        let ran = self.doctor(more);
        ran.expect(0);
        assert!(ran.stderr.contains("tried: under this profile"), "{}", ran.stderr);
        let pasted = format!("{}sandbox = \"s\"\n{}", self.server, ran.stdout);
        self.hides_the_key(&pasted);
        (pasted, ran)
    }

    /// Whatever runs under the proposal: it is not left to the server's manners.
    fn hides_the_key(&self, pasted: &str) {
        let (config, key) = (self.bench.configuration(pasted), place(self.bench, "home/.ssh/id"));
        let cat = |profile| {
            self.bench.run(["sandbox", "--config", &config, "-P", profile, "--", "cat", &key])
        };
        assert!(cat(":read-only").expect(0).stdout.contains(KEY), "the control");
        let hidden = cat("s");
        assert_eq!((hidden.code, hidden.stdout.as_str()), (Some(1), ""), "{}", hidden.stderr);
    }

    fn call(&self, config: &str, call: &[&str]) -> Ran {
        let config = self.bench.configuration(config);
        self.bench.run(["call", "--config", &config].iter().chain(call))
    }
}

fn place(bench: &Bench, relative: &str) -> String {
    bench.fixture.join(relative).display().to_string()
}

fn real_servers() -> Option<PathBuf> {
    let peers = peers();
    requires("real servers (cargo xtask test --peers)", peers.is_some()).then_some(peers?)
}

fn node(peers: &Path, package: &str, more: &[String]) -> Vec<String> {
    let script = format!("node/node_modules/@modelcontextprotocol/{package}/dist/index.js");
    let script = peers.join(script).display().to_string();
    std::iter::once(script).chain(more.iter().cloned()).collect()
}

#[test]
fn server_filesystem_gets_its_directory_and_no_key() {
    let Some(peers) = real_servers() else { return };
    let bench = Bench::new();
    let root = bench.fixture.path().display().to_string();
    let args = node(&peers, "server-filesystem", &[root]);
    let proposed = Proposed::new(&bench, "node", &args, "");
    let new = place(&bench, "workspace/new");
    let write = ["--call", "write_file", &format!("path={new}"), "content=x"];
    let (config, ran) = proposed.pasted(&write);
    assert!(ran.stdout.contains("\"~/.ssh\" = \"deny\""), "{}", ran.stdout);
    let key = format!("path={}", place(&bench, "home/.ssh/id"));
    let read = |config: &str| proposed.call(config, &["s.read_text_file", &key]);
    assert!(read(&proposed.server).expect(0).stdout.contains(KEY), "the control");
    assert!(!read(&config).expect(1).stdout.contains(KEY));
    let path = format!("path={new}");
    assert_eq!(proposed.call(&config, &["s.read_text_file", &path]).expect(0).stdout, "x\n");
    proposed.call(&config, &["s.write_file", &path, "content=y"]).expect(0);
    let outside = format!("path={}", place(&bench, "home/new"));
    proposed.call(&config, &["s.write_file", &outside, "content=x"]).expect(1);
    assert!(!bench.fixture.exists("home/new"));
}

#[test]
fn server_memory_gets_the_place_of_its_memory() {
    let Some(peers) = real_servers() else { return };
    let bench = Bench::new();
    bench.fixture.directory("memory");
    let file = place(&bench, "memory/graph.jsonl");
    let more = format!("env = {{ MEMORY_FILE_PATH = {file:?} }}");
    let proposed = Proposed::new(&bench, "node", &node(&peers, "server-memory", &[]), &more);
    let alone = proposed.doctor(&[]);
    let doubt = format!("# {file:?} = \"write\"");
    assert!(alone.expect(0).stdout.contains(&doubt), "named, and not touched: {}", alone.stdout);
    let entity = |name: &str| {
        format!(r#"entities:=[{{"name":"{name}","entityType":"person","observations":["x"]}}]"#)
    };
    let (config, _) = proposed.pasted(&["--call", "create_entities", &entity("Ada")]);
    proposed.call(&config, &["s.create_entities", &entity("Grace")]).expect(0);
    let graph = bench.fixture.read("memory/graph.jsonl").unwrap();
    assert!(graph.contains("Ada") && graph.contains("Grace"), "{graph}");
    assert!(!config.contains(".ssh"), "{config}");
}

#[test]
fn mcp_server_git_gets_its_interpreter_and_the_repository() {
    let Some(peers) = real_servers() else { return };
    let bench = Bench::new();
    let program = peers.join("python/bin/python3").display().to_string();
    let args = ["-m", "mcp_server_git"].map(str::to_owned);
    let proposed = Proposed::new(&bench, &program, &args, "");
    for directory in ["workspace", "home/.ssh/repository"] {
        let made =
            Command::new("git").args(["init", "-q"]).arg(bench.fixture.join(directory)).status();
        assert!(made.unwrap().success());
    }
    bench.fixture.file("workspace/new", "x");
    let at = |relative| format!("repo_path={}", place(&bench, relative));
    let (config, _) = proposed.pasted(&["--call", "git_status", &at("workspace")]);
    let status = |config: &str, relative| proposed.call(config, &["s.git_status", &at(relative)]);
    assert!(status(&config, "workspace").expect(0).stdout.contains("untracked"));
    status(&proposed.server, "home/.ssh/repository").expect(0);
    assert_ne!(status(&config, "home/.ssh/repository").code, Some(0));
}

#[test]
fn mcp_server_fetch_gets_a_network_when_it_uses_one() {
    let Some(peers) = real_servers() else { return };
    let bench = Bench::new();
    bench.fixture.file("web/page.txt", "words of the page");
    let port = Listener::tcp().socket_address().port();
    let mut web = Command::new("python3");
    web.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
    web.arg(bench.fixture.join("web")).arg(port.to_string());
    let _web = ChildGuard::new(web.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(Deadline::poll_until(Duration::from_secs(30), listens), "the page is served");
    let program = peers.join("python/bin/python3").display().to_string();
    let args = ["-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"];
    let proposed = Proposed::new(&bench, &program, &args.map(str::to_owned), "");
    let url = format!("url=http://127.0.0.1:{port}/page.txt");
    let (without, _) = proposed.pasted(&[]);
    assert_ne!(proposed.call(&without, &["s.fetch", &url]).code, Some(0), "it only started");
    let (config, ran) = proposed.pasted(&["--call", "fetch", &url]);
    assert!(ran.stdout.contains(&format!("reached 127.0.0.1:{port}")), "{}", ran.stdout);
    let fetched = proposed.call(&config, &["s.fetch", &url]);
    assert!(fetched.expect(0).stdout.contains("words of the page"));
}

/// A python of the system, with words of what it needs.
fn needy(bench: &Bench, words: &[&str]) -> Option<(String, Vec<String>)> {
    let text = std::fs::read(data("tests/data/needy.py")).unwrap();
    let script = bench.fixture.file("server/needy.py", text).display().to_string();
    let words = words.iter().map(|word| (*word).to_owned());
    Some((python()?, std::iter::once(script).chain(words).collect()))
}

#[test]
fn what_a_server_needs_by_itself_and_by_its_children_is_seen_by_every_user() {
    as_each_user(|bench| {
        for file in ["own/read.txt", "own/cat.txt", "made/old", "linked/to.txt"] {
            bench.fixture.file(file, "x");
        }
        bench.fixture.symlink("own/link.txt", bench.fixture.join("linked/to.txt"));
        let at = |relative: &str| place(bench, relative);
        let (read, cat, link) = (at("own/read.txt"), at("own/cat.txt"), at("own/link.txt"));
        let (made, missing) = (at("made/new"), at("own/missing"));
        let words = ["read", &read, "cat", &cat, "read", &link, "make", &made, "?read", &missing];
        let Some((program, args)) = needy(bench, &words) else { return };
        let (config, ran) = Proposed::new(bench, &program, &args, "").pasted(&[]);
        for (file, access) in [(&read, "read"), (&cat, "read"), (&link, "read")] {
            let entry = format!("{file:?} = \"{access}\"");
            assert!(config.contains(&entry), "{entry} in {}", ran.stdout);
        }
        let entry = |path: &str, access| config.contains(&format!("{:?} = \"{access}\"", at(path)));
        assert!(entry("linked/to.txt", "read") && entry("made", "write"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("missing"), "not there, so not missed: {}", ran.stdout);
    });
}

#[test]
fn secrets_are_said_aloud_and_never_granted() {
    let bench = Bench::new();
    let key = place(&bench, "home/.ssh/id");
    let Some((program, args)) = needy(&bench, &["?read", &key]) else { return };
    let proposed = Proposed::new(&bench, &program, &args, "");
    let (config, ran) = proposed.pasted(&[]);
    assert!(config.contains("They are NOT granted"), "{config}");
    assert!(config.contains("# \"~/.ssh\" = \"read\""), "{config}");
    assert!(!config.lines().any(|line| line.starts_with("\"~/.ssh")), "{config}");
    assert!(ran.stderr.contains("warning: SECRET: "), "{}", ran.stderr);
    // One that cannot do without does not work, and that is what is said.
    let (program, args) = needy(&bench, &["read", &key]).unwrap();
    let ran = Proposed::new(&bench, &program, &args, "").doctor(&["--json"]);
    let answer: Value = serde_json::from_str(&ran.expect(1).stdout).unwrap();
    assert_eq!(answer["works"], false);
    assert_eq!(answer["secrets"][0], place(&bench, "home/.ssh"));
    assert!(ran.stderr.contains("does not work"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: it may want the secrets"), "{}", ran.stderr);
}

/// Nobody has to touch them first.
#[test]
fn secrets_in_what_is_granted_and_of_the_system_are_hidden_though_nothing_touched_them() {
    as_each_user(|bench| {
        let secrets = [".env", "sub/.env", "id_rsa", "server.pem", ".npmrc"];
        for secret in secrets {
            bench.fixture.file(format!("workspace/{secret}"), KEY);
        }
        let Some((program, args)) = needy(bench, &[]) else { return };
        let proposed = Proposed::new(bench, &program, &args, "");
        let (pasted, _) = proposed.pasted(&[]);
        let config = bench.configuration(&pasted);
        let cat = |profile: &str, file: &str| {
            bench.run(["sandbox", "--config", &config, "-P", profile, "--", "cat", file])
        };
        let own = secrets.map(|secret| place(bench, &format!("workspace/{secret}")));
        let system = "/etc/shadow".to_owned();
        let readable = cat(":read-only", &system).code == Some(0);
        for secret in own.iter().chain(readable.then_some(&system)) {
            assert!(!cat(":read-only", secret).expect(0).stdout.is_empty(), "the control");
            let hidden = cat("s", secret);
            assert_eq!((hidden.code, hidden.stdout.as_str()), (Some(1), ""), "{secret}: {pasted}");
        }
    });
}

#[test]
fn a_home_in_a_directory_for_temporary_files_keeps_its_secrets() {
    let bench = Bench::new();
    let key = bench.fixture.file("temporary/home/.ssh/id", KEY).display().to_string();
    let Some((program, args)) = needy(&bench, &["?make", &place(&bench, "temporary/new")]) else {
        return;
    };
    let proposed = Proposed::new(&bench, &program, &args, "");
    let run = |text: &str, words: &[&str]| {
        let config = bench.configuration(text);
        let words =
            words.iter().map(|word| if *word == "CONFIG" { config.as_str() } else { *word });
        let mut command = bench.command(words);
        Ran::of(
            command
                .env("TMPDIR", bench.fixture.join("temporary"))
                .env("HOME", bench.fixture.join("temporary/home"))
                .output()
                .unwrap(),
        )
    };
    let ran = run(&proposed.server, &["doctor", "--config", "CONFIG", "s"]);
    let granted = format!("{:?} = \"write\"", place(&bench, "temporary"));
    assert!(ran.expect(0).stdout.contains(&granted), "{}", ran.stdout);
    let pasted = format!("{}sandbox = \"s\"\n{}", proposed.server, ran.stdout);
    let in_it = |command: &[&str]| {
        let sandbox = ["sandbox", "--config", "CONFIG", "-P", "s", "--"];
        run(&pasted, &[&sandbox[..], command].concat())
    };
    in_it(&["touch", &place(&bench, "temporary/other")]).expect(0);
    let hidden = in_it(&["cat", &key]);
    assert_eq!((hidden.code, hidden.stdout.as_str()), (Some(1), ""), "{pasted}");
    assert_ne!(in_it(&["touch", &place(&bench, "temporary/home/.ssh/new")]).code, Some(0));
    assert!(!bench.fixture.exists("temporary/home/.ssh/new"));
}

#[test]
fn a_watched_run_takes_turns_with_the_server_and_leaves_no_lock_of_its_own() {
    let bench = Bench::new();
    let Some((program, args)) = needy(&bench, &[]) else { return };
    let proposed = Proposed::new(&bench, &program, &args, "");
    let locks = || {
        let place = bench.fixture.join("home/.local/share/plenipo/ending");
        let names = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    proposed.call(&proposed.server, &["s.nothing"]).expect(0);
    let before = locks();
    assert_eq!(before.len(), 1);
    for _ in 0..2 {
        proposed.doctor(&[]).expect(0);
        assert_eq!(locks(), before);
    }
}

#[test]
fn a_secret_that_is_read_through_a_process_or_by_another_name_is_said_aloud() {
    let bench = Bench::new();
    let key = place(&bench, "home/.ssh/id");
    let root = format!("/proc/self/root{key}");
    let cwd = "/proc/self/cwd/../home/.ssh/id".to_owned();
    let link = format!("{key}:{}", place(&bench, "workspace/other"));
    for words in [["?read ", &root], ["?read ", &cwd], ["?link ", &link]] {
        // Nothing that its arguments say leads there.
        let Some((program, mut args)) = needy(&bench, &[]) else { return };
        args.push(words.concat().bytes().map(|byte| format!("{byte:02x}")).collect());
        let proposed = Proposed::new(&bench, &program, &args, "");
        let ran = proposed.doctor(&["--json"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["secrets"][0], place(&bench, "home/.ssh"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_server_that_cannot_be_watched_is_refused_in_words() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[environments.box]\ncommand = [\"env\"]\n[permissions.taken]\nextends = \":read-only\"\n\
         [mcp_servers.far]\ncommand = \"x\"\nenvironment_id = \"box\"\n\
         [mcp_servers.web]\nurl = \"http://127.0.0.1:9/\"\n\
         [mcp_servers.none]\ncommand = \"/nonexistent/server\"\n",
    );
    let mut said = String::new();
    for server in ["workspace", "far", "web", "nobody", "none"] {
        let ran = bench.run(["doctor", "--config", &config, server]);
        writeln!(said, "# {server}\n{}", ran.shown(&bench)).unwrap();
    }
    insta::assert_snapshot!(said);
}

/// Killed in the middle, it leaves neither the server nor a socket.
#[test]
fn nothing_is_left_of_a_doctor_that_is_killed() {
    let bench = Bench::new();
    let mark = place(&bench, "workspace/mark");
    let Some((program, args)) = needy(&bench, &["stay", &mark]) else { return };
    let proposed = Proposed::new(&bench, &program, &args, &format!("env = {{ MARK = {mark:?} }}"));
    let config = bench.configuration(&proposed.server);
    let mut doctor = bench.command(["doctor", "--config", &config, "s"]);
    doctor.stdout(Stdio::null()).stderr(Stdio::null());
    let doctor = ChildGuard::new(doctor.spawn().unwrap());
    let stays = || bench.fixture.exists("workspace/mark");
    assert!(Deadline::poll_until(Duration::from_secs(30), stays), "it is watched");
    let sockets = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        sockets.lines().filter(|line| line.contains("@plenipo-trace-")).count()
    };
    let left = || processes_with_marker(&format!("MARK={mark}"));
    assert!(!left().is_empty() && sockets() > 0, "the control");
    drop(doctor);
    let gone = Deadline::poll_until(Duration::from_secs(30), || left().is_empty());
    assert!(gone, "{:?}", left());
}
