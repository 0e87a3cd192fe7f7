//! How names are looked up, and what a library in the caller's environment can do: for the build under test, and for the
//! release that `cargo xtask dist` made and names in `PLENIPO_DIST`.

use std::path::{Path, PathBuf};
use std::process::Command;

use plenipo_testkit::{Fixture, WorldReadable, find_tool, requires, world_readable_copy};
use serde_json::{Value, json};

const WORLD: &str = include_str!("../data/names.py");

/// A build of the program.
struct Build {
    name: &'static str,
    program: WorldReadable,
    is_static: bool,
}

fn builds() -> Vec<Build> {
    let built = Build {
        name: "default",
        program: world_readable_copy(env!("CARGO_BIN_EXE_plenipo")),
        is_static: false,
    };
    let released = std::env::var_os("PLENIPO_DIST").map(PathBuf::from).map(|path| Build {
        name: "dist",
        program: world_readable_copy(path),
        is_static: true,
    });
    std::iter::once(built).chain(released).collect()
}

/// What each name reached in a world with this `nsswitch.conf`, and the questions asked.
struct Seen(Value);

impl Seen {
    #[track_caller]
    fn reached(&self, name: &str) -> Vec<&str> {
        let found = &self.0["names"][name]["reached"];
        let list = found.as_array().expect(name);
        list.iter().map(|address| address.as_str().unwrap()).collect()
    }

    fn asked(&self, over: &str, name: &str, kind: &str) -> bool {
        let questions = self.0["asked"].as_array().unwrap();
        questions.contains(&json!([over, name, kind]))
    }
}

fn look(build: &Build, nsswitch: Option<&str>, environment: &[(&str, &str)]) -> Seen {
    let fixture = Fixture::new();
    let config = fixture.join("plenipo.toml").display().to_string();
    let plan = json!({
        "program": [build.program.path(), "--config", config, "tools"],
        "config": { "path": config, "text": "[mcp_servers.x]\nurl = \"{url}\"\n" },
        "hosts": "127.0.0.1 localhost\n127.0.0.2 files.test alias.test\n::1 six.test\n",
        "resolv": "nameserver 127.0.0.1\nsearch corp.example branch.example\noptions timeout:2 attempts:1\n",
        "nsswitch": nsswitch,
        "zone": {
            "four.example": { "A": ["127.0.0.3"] },
            "eight.example": { "AAAA": ["::1"] },
            "short.branch.example": { "A": ["127.0.0.4"] },
            "files.test": { "A": ["127.0.0.8"] },
            "long.example": { "A": ["127.0.0.5"] },
        },
        "long": "long.example",
        "names": ["files.test", "alias.test", "six.test", "four.example", "eight.example", "short", "long.example",
                  "missing.example", "localhost"],
    });
    let plan = fixture.file("plan.json", plan.to_string());
    let world = fixture.file("world.py", WORLD);
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["-Urmn", "/usr/bin/python3", "-I", "-S"]).arg(world).arg(plan);
    command.env_clear().env("HOME", fixture.path()).envs(environment.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", build.name);
    Seen(serde_json::from_slice(&output.stdout).unwrap())
}

fn has_tools() -> bool {
    let python = Path::new("/usr/bin/python3").exists() && Path::new("/usr/bin/unshare").exists();
    requires("/usr/bin/python3 and /usr/bin/unshare", python)
}

#[test]
fn names_come_from_files_and_dns_with_search_domains_and_ipv6() {
    if !has_tools() {
        return;
    }
    for build in builds() {
        let absent = "hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns\n";
        for nsswitch in [Some("hosts: files dns\n"), None, Some(absent)] {
            let seen = look(&build, nsswitch, &[]);
            let case = format!("{} with {nsswitch:?}: {}", build.name, seen.0);
            // A file's answer beats the server's.
            assert_eq!(seen.reached("files.test"), ["127.0.0.2"], "{case}");
            assert_eq!(seen.reached("alias.test"), ["127.0.0.2"], "{case}");
            assert_eq!(seen.reached("six.test"), ["::1"], "{case}");
            assert_eq!(seen.reached("four.example"), ["127.0.0.3"], "{case}");
            assert_eq!(seen.reached("eight.example"), ["::1"], "{case}");
            assert_eq!(seen.reached("short"), ["127.0.0.4"], "{case}");
            assert_eq!(seen.reached("long.example"), ["127.0.0.5"], "{case}");
            let none: [&str; 0] = [];
            assert_eq!(seen.reached("missing.example"), none, "{case}");
            assert_eq!(seen.reached("localhost"), none, "nobody listens there: {case}");
            let said = seen.0["names"]["missing.example"]["said"].as_str().unwrap();
            assert!(said.contains("dns error"), "{case}");
            assert!(seen.asked("udp", "short.corp.example", "A"), "{case}");
            assert!(seen.asked("udp", "eight.example", "AAAA"), "{case}");
            assert!(seen.asked("tcp", "long.example", "A"), "{case}");
            assert!(!seen.asked("udp", "six.test", "AAAA"), "{case}");
        }
    }
}

/// A shared library that writes a file when it is loaded.
struct Marking {
    fixture: Fixture,
}

impl Marking {
    fn new(name: &str) -> Self {
        let fixture = Fixture::new();
        let marker = fixture.join("marker").display().to_string();
        let source = format!(
            "#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void start(void) \
             {{ close(open(\"{marker}\", O_CREAT | O_WRONLY, 0666)); }}\n"
        );
        let source = fixture.file("start.c", source);
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]).arg(fixture.join(name)).arg(source);
        assert!(compile.status().unwrap().success());
        Self { fixture }
    }

    /// Whether it was loaded since the last time.
    fn was_loaded(&self) -> bool {
        std::fs::remove_file(self.fixture.join("marker")).is_ok()
    }
}

fn has_compiler() -> bool {
    requires("cc on PATH", find_tool("cc").is_some())
}

/// Row 31: nothing of the caller's is loaded into the release. The default build is the control.
#[test]
fn a_library_to_preload_stays_out_of_the_release() {
    if !has_compiler() {
        return;
    }
    let library = Marking::new("start.so");
    let path = library.fixture.join("start.so");
    for build in builds() {
        for variable in ["LD_PRELOAD", "LD_AUDIT"] {
            let mut launch = Command::new(build.program.path());
            launch.args(["sandbox", "-P", ":read-only", "--", "/bin/true"]).env(variable, &path);
            assert!(launch.status().unwrap().success(), "{}", build.name);
            let loaded = library.was_loaded();
            // LD_AUDIT's library is not one, so its constructor does not always run.
            if build.is_static || variable == "LD_PRELOAD" {
                assert_eq!(loaded, !build.is_static, "{} with {variable}", build.name);
            }
        }
    }
}

/// The system's name services may be libraries; a static program loads none of them.
#[test]
fn a_name_service_of_the_callers_stays_out_of_the_release() {
    if !(has_tools() && has_compiler()) {
        return;
    }
    let library = Marking::new("libnss_marking.so.2");
    let directory = library.fixture.path().display().to_string();
    for build in builds() {
        let services = Some("hosts: marking files dns\n");
        let seen = look(&build, services, &[("LD_LIBRARY_PATH", &directory)]);
        assert_eq!(library.was_loaded(), !build.is_static, "{}", build.name);
        assert_eq!(seen.reached("files.test"), ["127.0.0.2"], "{}", build.name);
        assert_eq!(seen.reached("four.example"), ["127.0.0.3"], "{}", build.name);
    }
}
