//! Servers that run somewhere else: another network, another root, another machine.

mod recipes;
mod ssh;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plenipo_testkit::{Deadline, Fixture, find_tool, is_root, requires};
use serde_json::Value;

use crate::support::{Bench, Ran, data, python};

/// Words that only survive where nobody reads them as anything but words.
const HARD_WORDS: [&str; 10] =
    ["a  b", "", "it's", "\"q\"", "$(id)", "`id`", "line\nbreak", "ä 漢 😀", "-x", "*;&|<>~\\!#"];

/// A configuration with the server `where` in environment `box`.
struct Place {
    bench: Bench,
    /// Lines of `[environments.box]`.
    environment: String,
    /// More lines of `[mcp_servers.where]`.
    server: String,
    args: Vec<String>,
}

impl Place {
    fn new(command: &[&str]) -> Option<Self> {
        let place = Self {
            bench: Bench::new(),
            environment: format!("command = {command:?}\n"),
            server: String::new(),
            args: vec![python()?],
        };
        Some(place.add(&[&data("tests/data/where.py").display().to_string()]))
    }

    fn add(mut self, words: &[&str]) -> Self {
        self.args.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    fn environment(mut self, lines: &str) -> Self {
        self.environment.push_str(lines);
        self
    }

    fn server(mut self, lines: &str) -> Self {
        self.server.push_str(lines);
        self
    }

    fn config(&self) -> String {
        let (program, args) = self.args.split_first().unwrap();
        // TOML and JSON write these strings alike.
        let args = serde_json::to_string(args).unwrap();
        self.bench.configuration(&format!(
            "[environments.box]\n{}\n[mcp_servers.where]\ncommand = {program:?}\nargs = {args}\n\
             environment_id = \"box\"\n{}",
            self.environment, self.server
        ))
    }

    fn call(&self, more: &[&str]) -> Ran {
        let config = self.config();
        let words = ["call", "--config", &config, "where.where"];
        self.bench.run(words.iter().chain(more))
    }

    #[track_caller]
    fn answer(&self, more: &[&str]) -> Value {
        serde_json::from_str(&self.call(more).expect(0).stdout).unwrap()
    }
}

fn text<'a>(answer: &'a Value, key: &str) -> &'a str {
    answer[key].as_str().unwrap()
}

/// The policy in an answer's `_meta`.
fn state(answer: &Value) -> &Value {
    let meta = &answer["meta"];
    assert_eq!(meta["codex/sandbox-state"], meta["codex/sandbox-state-meta"]);
    &meta["codex/sandbox-state"]
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// A network namespace with a name, gone when dropped.
struct Network(String);

impl Network {
    fn new() -> Option<Self> {
        let name = format!("plenipo-{}", std::process::id());
        let able = is_root() && find_tool("ip").is_some() && run("ip", &["netns", "add", &name]);
        requires("root and `ip netns`", able).then_some(Self(name))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

#[test]
fn a_server_runs_in_another_network_with_its_own_policy_and_no_launcher() {
    let Some(network) = Network::new() else { return };
    let Some(place) = Place::new(&["ip", "netns", "exec", &network.0]) else { return };
    let place = place.add(&HARD_WORDS).environment("cwd = \"/var\"\n");
    let answer = place.answer(&[]);
    let here = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(text(&answer, "net"), here.to_str().unwrap(), "another network");
    assert_eq!(answer["argv"], serde_json::json!(HARD_WORDS));
    assert_eq!(text(&answer, "cwd"), "/var");
    assert_eq!(state(&answer)["sandboxCwd"], "file:///var");
    assert!(answer["meta"].get("codex/sandbox-launcher").is_none(), "{answer}");
    // The control: on this machine it gets one.
    let program = data("tests/data/where.py").display().to_string();
    let local = place.bench.configuration(&format!(
        "[mcp_servers.where]\ncommand = {:?}\nargs = [{program:?}]\n",
        place.args[0]
    ));
    let said =
        place.bench.run(["call", "--config", &local, "where.where"]).expect(0).stdout.clone();
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert!(answer["meta"].get("codex/sandbox-launcher").is_some(), "{answer}");
    assert_eq!(text(&answer, "net"), here.to_str().unwrap());
}

#[test]
fn a_policy_goes_only_where_its_environment_is_selected() {
    let Some(place) = Place::new(&["env"]) else { return };
    let place = place.environment("cwd = \"/var\"\npermissions = \":read-only\"\n");
    let own = place.answer(&[]);
    assert_eq!(own, place.answer(&["--environment", "box"]).tap_pid(&own));
    let entries = &state(&own)["permissionProfile"]["file_system"]["entries"];
    assert!(!entries.to_string().contains("write"), "the environment's profile: {entries}");
    let workspace = place.answer(&["--profile", ":workspace", "-C", "/only/there"]);
    assert_eq!(state(&workspace)["sandboxCwd"], "file:///only/there");
    assert!(state(&workspace).to_string().contains("\"write\""), "{workspace}");
    let elsewhere = place.answer(&["--environment", "local"]);
    assert!(!elsewhere["meta"].to_string().contains("codex/sandbox"), "{elsewhere}");
    let unknown = place.call(&["--environment", "nowhere"]);
    assert!(unknown.expect(2).stderr.contains("unknown environment id `nowhere`"));
    let json = place.call(&["--environment", "local", "--json"]);
    let json: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert!(json["sandbox_state"].is_null() && json["profile"].is_null(), "{json}");
}

trait TapPid {
    fn tap_pid(self, other: &Value) -> Value;
}

impl TapPid for Value {
    /// The same answer from the process of another.
    fn tap_pid(mut self, other: &Value) -> Value {
        self["pid"] = other["pid"].clone();
        self["meta"]["progressToken"] = other["meta"]["progressToken"].clone();
        self
    }
}

/// A root with a shell and the programs that the watchdog needs, and a directory that is only there.
fn root_with(programs: &[&Path]) -> Fixture {
    let root = Fixture::new();
    root.directory("only there");
    root.directory("proc");
    root.directory("dev");
    for program in programs {
        add_program(&root, program);
    }
    root
}

/// A program with the libraries it loads.
fn add_program(root: &Fixture, program: &Path) {
    let copy = |file: &Path| {
        let place = root.join(file.strip_prefix("/").unwrap());
        root.directory(place.parent().unwrap().strip_prefix(root.path()).unwrap());
        std::fs::copy(file, &place).unwrap();
    };
    copy(program);
    let listed = Command::new("ldd").arg(program).output().unwrap();
    for word in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
        if word.starts_with('/') && Path::new(word).is_file() {
            copy(Path::new(word));
        }
    }
}

/// The same with this program as `/usr/bin/plenipo-there`, whose operator lets it run commands without a launcher.
fn root_with_server(bench: &Bench) -> Fixture {
    let root = root_with(&["/bin/sh", "/bin/cat", "/bin/sleep", "/bin/ls"].map(Path::new));
    std::fs::create_dir_all(root.join("usr/bin")).unwrap();
    std::fs::copy(bench.program(), root.join("usr/bin/plenipo-there")).unwrap();
    for library in ["libc.so.6", "libgcc_s.so.1", "libm.so.6"] {
        let found = Path::new("/lib/x86_64-linux-gnu").join(library);
        if found.is_file() {
            add_program(&root, &found);
        }
    }
    root.file("etc/plenipo/plenipo.toml", "[server.workspace]\nallow_unsandboxed = true\n");
    root
}

#[test]
fn a_server_runs_below_another_root_in_a_directory_that_is_only_there() {
    let able = is_root() && run("unshare", &["--mount", "true"]);
    if !requires("root and `unshare`", able) {
        return;
    }
    let bench = Bench::new();
    let root = root_with_server(&bench);
    let there = root.path().display();
    let config = bench.configuration(&format!(
        "[environments.root]\n\
         command = [\"unshare\", \"--mount\", \"--pid\", \"--fork\", \"--kill-child\", \"sh\", \"-c\", \
         'mount --bind /dev {there}/dev && mount -t proc proc {there}/proc && \
         exec /usr/sbin/chroot {there} \"$@\"', \"sh\"]\n\
         cwd = \"/only there\"\n\
         [mcp_servers.there]\n\
         command = \"/usr/bin/plenipo-there\"\nargs = [\"server\", \"workspace\"]\nenvironment_id = \"root\"\n",
    ));
    is_over_there(&bench, &config);
}

fn is_over_there(bench: &Bench, config: &str) {
    let said = bench.run(["call", "--config", config, "there.run", "command=pwd; ls /; echo $$"]);
    let said = &said.expect(0).stdout;
    assert!(said.contains("/only there\n"), "{said}");
    assert!(said.contains("\nonly there\n") && !said.contains("\nvar\n"), "another root: {said}");
}

/// A container's engine that keeps all it knows below one directory, or none if it cannot start a container here.
fn podman(storage: &Fixture, root: &str) -> Option<Vec<String>> {
    let below = |name: &str| storage.path().join(name).display().to_string();
    let (kept, running, passing) = (below("root"), below("run"), below("tmp"));
    let engine = |runtime: &str| {
        let mut words =
            vec!["podman", "--root", &kept, "--runroot", &running, "--tmpdir", &passing];
        words.extend(["--storage-driver", "vfs", "--runtime", runtime]);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let starts = |engine: &Vec<String>| {
        let words = engine.iter().map(String::as_str).chain(IN_A_CONTAINER);
        let words: Vec<&str> = words.chain([root, "/bin/sh", "-c", "true"]).collect();
        run(words[0], &words[1..])
    };
    // The usual runtime, crun, takes no hybrid hierarchy of control groups.
    let engine = ["crun", "runc"].map(engine).into_iter().find(starts);
    requires("podman that starts containers (as root)", engine.is_some()).then_some(engine?)
}

/// Limits that may be set where they may not be raised.
const IN_A_CONTAINER: [&str; 9] = [
    "run",
    "--rm",
    "-i",
    "--network=none",
    "--ulimit",
    "nofile=1024:1024",
    "--ulimit",
    "nproc=1024:1024",
    "--rootfs",
];

#[test]
fn a_server_runs_in_a_container_that_podman_makes_of_a_root_and_leaves_none() {
    let (bench, storage) = (Bench::new(), Fixture::new());
    let root = root_with_server(&bench);
    let there = root.path().display().to_string();
    let Some(engine) = podman(&storage, &there) else { return };
    let words = engine.iter().map(String::as_str);
    let command: Vec<&str> = words.clone().chain(IN_A_CONTAINER).chain([&*there]).collect();
    let config = bench.configuration(&format!(
        "[environments.root]\ncommand = {command:?}\ncwd = \"/only there\"\n[mcp_servers.there]\n\
         command = \"/usr/bin/plenipo-there\"\nargs = [\"server\", \"workspace\"]\nenvironment_id = \"root\"\n",
    ));
    is_over_there(&bench, &config);
    let listed: Vec<&str> = words.chain(["ps", "--all", "--quiet"]).collect();
    let gone = || {
        let listed = Command::new(listed[0]).args(&listed[1..]).output().unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        listed.stdout.is_empty()
    };
    assert!(Deadline::poll_until(Duration::from_secs(30), gone), "the container is gone");
}

#[test]
fn what_cannot_reach_its_environment_is_refused_in_words() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let server = |more: &str| format!("[mcp_servers.s]\ncommand = {python:?}\n{more}\n");
    let box_of = |command: &str, more: &str| {
        format!("[environments.box]\ncommand = {command}\n{more}\n")
            + &server("environment_id = \"box\"")
    };
    let with_env = box_of("[\"env\"]", "") + "env = { TOKEN = \"s3cret\" }\n";
    let cases = [
        ("unknown", server("environment_id = \"nowhere\"")),
        ("dies", box_of("[\"sh\", \"-c\", \"echo no route >&2; exit 7\"]", "")),
        ("missing program", box_of("[\"/no/such/program\"]", "")),
        ("directory that is not there", box_of("[\"env\"]", "cwd = \"/no/such/directory\"")),
        ("variables", with_env),
        (
            "no local environment",
            "[environments.local]\nenabled = false\n".to_owned() + &server(""),
        ),
    ];
    let mut said = String::new();
    for (name, text) in cases {
        let config = bench.configuration(&text);
        let ran = bench.run(["call", "--config", &config, "s.tool"]);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
        writeln!(said, "# {name}\n{}", ran.shown(&bench)).unwrap();
    }
    let config = bench.configuration("[environments.local]\nenabled = false\n");
    let built_in = bench.run(["call", "--config", &config, "workspace.run", "command=true"]);
    write!(said, "# built-in\n{}", built_in.shown(&bench)).unwrap();
    insta::assert_snapshot!(said);
}
