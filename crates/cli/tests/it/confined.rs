//! Servers that know nothing of sandboxes, inside one: they work, and reach nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, peers, requires};

use crate::support::{Bench, Ran};

const KEY: &str = "PRIVATE KEY of the test";

/// A workspace, a home with a key for ssh, and the profile `tight`, which lets a server write in the workspace and
/// hides the key.
struct Confined {
    bench: Bench,
    peers: PathBuf,
    network: bool,
}

impl Confined {
    fn new() -> Option<Self> {
        let peers = peers();
        if !requires("real servers (cargo xtask test --peers)", peers.is_some()) {
            return None;
        }
        let bench = Bench::new();
        bench.fixture.file("home/.ssh/id", KEY);
        Some(Self { bench, peers: peers?, network: false })
    }

    fn place(&self, relative: &str) -> String {
        self.bench.fixture.join(relative).display().to_string()
    }

    fn node(&self, package: &str) -> (String, Vec<String>) {
        let script = format!("node/node_modules/@modelcontextprotocol/{package}/dist/index.js");
        ("node".to_owned(), vec![self.peers.join(script).display().to_string()])
    }

    fn python(&self, module: &str) -> (String, Vec<String>) {
        let python = self.peers.join("python/bin/python3").display().to_string();
        (python, vec!["-m".to_owned(), module.to_owned()])
    }

    /// Calls a tool of the server, inside the sandbox or as a control outside.
    fn call(
        &self,
        sandbox: &str,
        server: &(String, Vec<String>),
        more: &str,
        call: &[&str],
    ) -> Ran {
        let (program, args) = server;
        let text = format!(
            "[permissions.tight.filesystem]\n\":root\" = \"read\"\n{:?} = \"write\"\n{:?} = \"deny\"\n\
             [permissions.tight.network]\nenabled = {}\n\
             [mcp_servers.s]\ncommand = {program:?}\nargs = {args:?}\nsandbox = {sandbox:?}\n{more}\n",
            self.place("workspace"),
            self.place("home/.ssh"),
            self.network,
        );
        let config = self.bench.configuration(&text);
        let words = ["call", "--config", &config];
        self.bench.run(words.iter().chain(call))
    }
}

#[test]
fn server_filesystem_works_and_reads_no_key_and_writes_nowhere_else() {
    let Some(place) = Confined::new() else { return };
    let mut server = place.node("server-filesystem");
    server.1.push(place.bench.fixture.path().display().to_string());
    let (key, outside) = (place.place("home/.ssh/id"), place.place("home/new"));
    let inside = place.place("workspace/new");
    let read = [&*format!("path={key}")];
    let reads = |sandbox| place.call(sandbox, &server, "", &["s.read_text_file", read[0]]);
    assert!(reads("off").expect(0).stdout.contains(KEY), "the control");
    let hidden = reads("tight");
    assert!(!hidden.expect(1).stdout.contains(KEY), "{}", hidden.stdout);
    let write = |path: &str| {
        let path = format!("path={path}");
        place.call("tight", &server, "", &["s.write_file", &path, "content=x"])
    };
    write(&inside).expect(0);
    assert_eq!(place.bench.fixture.read("workspace/new").as_deref(), Some("x"));
    write(&outside).expect(1);
    assert!(!place.bench.fixture.exists("home/new"));
}

#[test]
fn server_memory_works_and_keeps_its_memory_where_it_may_only() {
    let Some(place) = Confined::new() else { return };
    let server = place.node("server-memory");
    let remember = |file: &str| {
        let more = format!("env = {{ MEMORY_FILE_PATH = {:?} }}", place.place(file));
        let entity = r#"entities:=[{"name":"Ada","entityType":"person","observations":["x"]}]"#;
        place.call("tight", &server, &more, &["s.create_entities", entity])
    };
    remember("workspace/memory.jsonl").expect(0);
    assert!(place.bench.fixture.read("workspace/memory.jsonl").unwrap().contains("Ada"));
    remember("home/memory.jsonl").expect(1);
    assert!(!place.bench.fixture.exists("home/memory.jsonl"));
}

#[test]
fn mcp_server_git_works_and_sees_no_repository_that_is_hidden() {
    let Some(place) = Confined::new() else { return };
    let server = place.python("mcp_server_git");
    for directory in ["workspace", "home/.ssh/repository"] {
        let directory = place.bench.fixture.directory(directory);
        git(&directory);
    }
    let status = |sandbox: &str, at: &str| {
        let at = format!("repo_path={}", place.place(at));
        place.call(sandbox, &server, "", &["s.git_status", &at])
    };
    assert!(status("tight", "workspace").expect(0).stdout.contains("untracked"));
    assert!(status("off", "home/.ssh/repository").expect(0).stdout.contains("untracked"));
    let hidden = status("tight", "home/.ssh/repository");
    assert_ne!(hidden.code, Some(0), "{}", hidden.stdout);
}

/// A repository with a file that it does not know.
fn git(directory: &Path) {
    let made = Command::new("git").args(["init", "-q"]).arg(directory).status().unwrap();
    assert!(made.success());
    std::fs::write(directory.join("new"), "x").unwrap();
}

#[test]
fn mcp_server_fetch_works_where_the_profile_has_a_network() {
    let Some(mut place) = Confined::new() else { return };
    let mut server = place.python("mcp_server_fetch");
    server.1.extend(["--ignore-robots-txt", "--allow-private-ips"].map(str::to_owned));
    place.bench.fixture.file("web/page.txt", "words of the page");
    let port = plenipo_testkit::Listener::tcp().socket_address().port();
    let mut web = Command::new("python3");
    web.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
    web.arg(place.bench.fixture.join("web")).arg(port.to_string());
    let _web = ChildGuard::new(web.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(Deadline::poll_until(Duration::from_secs(30), listens), "the page is served");
    let url = format!("url=http://127.0.0.1:{port}/page.txt");
    for network in [true, false] {
        place.network = network;
        let ran = place.call("tight", &server, "", &["s.fetch", &url]);
        assert_eq!(ran.stdout.contains("words of the page"), network, "{ran:?}");
        assert_eq!(ran.code == Some(0), network, "{ran:?}");
    }
}

#[test]
fn a_confined_server_that_launches_sandboxes_is_refused() {
    let bench = Bench::new();
    let program = bench.program().display().to_string();
    let call = |lines: &str, server: &str| {
        let config = bench.configuration(&format!(
            "{lines}\n[mcp_servers.w]\ncommand = {program:?}\nargs = [\"server\", \"workspace\"]\n{server}\n"
        ));
        bench.run(["call", "--config", &config, "w.run", "command=echo ran"])
    };
    assert_eq!(call("", "").expect(0).stdout, "ran\n", "the control");
    let default = "[sandbox]\ndefault_for_servers = \":read-only\"";
    for refused in [call("", "sandbox = \":read-only\""), call(default, "")] {
        let said = &refused.expect(6).stderr;
        assert!(said.contains("a sandbox inside a sandbox needs"), "{said}");
    }
    assert_eq!(call(default, "sandbox = \"off\"").expect(0).stdout, "ran\n");
    let config = bench.configuration(default);
    let built_in = bench.run(["call", "--config", &config, "workspace.run", "command=echo ran"]);
    assert_eq!(built_in.expect(0).stdout, "ran\n", "the built-in server is excepted");
}

#[test]
fn a_project_cannot_choose_how_its_servers_are_confined() {
    let bench = Bench::new();
    bench
        .fixture
        .file("workspace/plenipo.toml", "[mcp_servers.p]\ncommand = \"true\"\nsandbox = \"off\"\n");
    bench.run(["trust", "--yes", "plenipo.toml"]);
    let ran = bench.run(["call", "p.x"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("sandbox"), "{}", ran.stderr);
}
