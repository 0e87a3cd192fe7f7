//! A sandboxed command cannot rewrite what enforces, configures or credentials the next one.

use std::path::Path;

use crate::support::{Bench, Ran, as_each_user};

/// Everything lies inside the workspace: the program, the home with its configuration, the project's configuration.
struct Nested<'a> {
    bench: &'a Bench,
    program: std::path::PathBuf,
}

impl<'a> Nested<'a> {
    fn new(bench: &'a Bench) -> Self {
        let program = bench.fixture.executable(
            "workspace/target/release/plenipo",
            std::fs::read(bench.program()).unwrap(),
        );
        bench.fixture.file("workspace/.config/plenipo/plenipo.toml", "# mine\n");
        bench.fixture.file("workspace/.local/share/plenipo/trust/one", "trusted\n");
        bench.fixture.file("workspace/.local/share/plenipo/credentials/token", "secret\n");
        bench.fixture.file("workspace/plenipo.toml", "# project\n");
        Self { bench, program }
    }

    fn run(&self, command: &str) -> Ran {
        let workspace = self.bench.workspace.as_os_str();
        let arguments = [
            "call".as_ref(),
            "workspace.run".as_ref(),
            "-C".as_ref(),
            workspace,
            format!("command={command}").as_ref(),
        ]
        .map(std::ffi::OsStr::to_owned);
        let mut call = self.bench.command_of(self.program.clone().into_os_string(), arguments);
        Ran::of(call.env("HOME", workspace).output().unwrap())
    }

    /// Refused, and the file is as it was; then the next call is still enforced.
    #[track_caller]
    fn refuses(&self, command: &str, guarded: &Path) {
        let before = std::fs::read(guarded).unwrap();
        self.run(&format!("{command} && echo DONE")).expect(1);
        assert_eq!(std::fs::read(guarded).unwrap(), before, "{command}");
        let outside = self.bench.fixture.join("outside");
        let next = self.run(&format!("echo still-running; touch {}", outside.display()));
        next.expect(1);
        assert!(next.stdout.contains("still-running"), "{}", next.stdout);
        assert!(!outside.exists(), "after {command}");
    }
}

#[test]
fn nothing_that_enforces_the_next_call_can_be_replaced() {
    as_each_user(|bench| {
        let nested = Nested::new(bench);
        let attempts = [
            ("cp /bin/true fake && mv fake target/release/plenipo", "target/release/plenipo"),
            ("cat /bin/true > target/release/plenipo", "target/release/plenipo"),
            ("rm target/release/plenipo", "target/release/plenipo"),
            ("mv target/release target/old && mkdir target/release", "target/release/plenipo"),
            ("mv target old && mkdir -p target/release", "target/release/plenipo"),
            ("echo launcher=1 >> .config/plenipo/plenipo.toml", ".config/plenipo/plenipo.toml"),
            ("mv .config .old && mkdir -p .config/plenipo", ".config/plenipo/plenipo.toml"),
            ("echo x > fake; mv fake .config/plenipo/plenipo.toml", ".config/plenipo/plenipo.toml"),
            ("echo x > .local/share/plenipo/trust/two", ".local/share/plenipo/trust/one"),
            ("rm .local/share/plenipo/trust/one", ".local/share/plenipo/trust/one"),
            ("echo x > plenipo.toml", "plenipo.toml"),
            ("echo x > fake && mv fake plenipo.toml", "plenipo.toml"),
            ("rm plenipo.toml", "plenipo.toml"),
        ];
        for (command, guarded) in attempts {
            nested.refuses(command, &bench.workspace.join(guarded));
        }
        assert!(!bench.fixture.exists("workspace/.local/share/plenipo/trust/two"));
    });
}

#[test]
fn credentials_cannot_be_read() {
    as_each_user(|bench| {
        let nested = Nested::new(bench);
        let ran = nested
            .run("cat .local/share/plenipo/credentials/token; ls .local/share/plenipo/credentials");
        ran.expect(1);
        assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);
    });
}

#[test]
fn a_configuration_named_on_the_command_line_is_protected_too() {
    as_each_user(|bench| {
        let file = bench.fixture.file("workspace/other-name.toml", "# named\n");
        let words = [
            "call",
            "--config",
            "other-name.toml",
            "workspace.run",
            "command=echo x > other-name.toml",
        ];
        bench.run(words).expect(1);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "# named\n");
    });
}

#[test]
fn a_configuration_with_a_credential_in_it_cannot_be_read() {
    as_each_user(|bench| {
        let cat = |config: &str| {
            bench.fixture.file("workspace/mine.toml", config);
            let words = ["call", "--config", "mine.toml", "workspace.run", "command=cat mine.toml"];
            bench.run(words)
        };
        for config in [
            "[mcp_servers.a]\nurl = \"https://a.example/mcp\"\nhttp_headers = { X-Api-Key = \"hunter2\" }\n",
            "[mcp_servers.a]\nurl = \"https://a.example/mcp\"\nhttp_headers = { Cookie = \"sid=hunter2\" }\n",
            "[mcp_servers.a]\ncommand = \"a\"\nenv = { A_TOKEN = \"hunter2\" }\n",
            "[environments.a]\ncommand = [\"a\"]\nenv = { A_TOKEN = \"hunter2\" }\n",
        ] {
            let ran = cat(config);
            ran.expect(1);
            assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
        }
        let named = "[mcp_servers.a]\ncommand = \"a\"\nenv = { A_TOKEN = \"${MINE}\" }\n";
        assert!(cat(named).expect(0).stdout.contains("MINE"), "the control");
    });
}

#[test]
fn an_unsandboxed_run_needs_the_operator_and_says_so() {
    let bench = Bench::new();
    // A launcher that others could replace is none, so the built-in server has to refuse.
    let shared = bench.fixture.directory("shared");
    let program =
        bench.fixture.executable("shared/plenipo", std::fs::read(bench.program()).unwrap());
    std::os::unix::fs::chown(&shared, None, None).unwrap();
    bench.fixture.set_mode("shared", 0o777);
    let words = ["call", "workspace.run", "command=echo ran", "--json"];
    let refused =
        Ran::of(bench.command_of(program.clone().into_os_string(), words).output().unwrap());
    refused.expect(1);
    assert!(!refused.stdout.contains("\"ran"), "{}", refused.stdout);
    let config = bench.configuration("[server.workspace]\nallow_unsandboxed = true\n");
    let words = ["call", "--config", &config, "workspace.run", "command=echo ran", "--json"];
    let allowed = Ran::of(bench.command_of(program.into_os_string(), words).output().unwrap());
    allowed.expect(0);
    let answer: serde_json::Value = serde_json::from_str(&allowed.stdout).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "ran\n");
    assert_eq!(answer["result"]["structuredContent"]["enforcement"], "none");
}

#[test]
fn the_place_where_a_configuration_could_appear_is_protected() {
    as_each_user(|bench| {
        let place = bench.workspace.join(".config");
        let attempt = "mkdir -p .config/plenipo && echo 'default_permissions = \":danger-full-access\"' > .config/plenipo/plenipo.toml";
        for exists in [false, true] {
            if exists {
                bench.fixture.directory("workspace/.config/plenipo");
            }
            let words = ["call", "workspace.run", &format!("command={attempt}")];
            let mut call = bench.command(words);
            Ran::of(call.env("XDG_CONFIG_HOME", &place).output().unwrap()).expect(1);
            assert!(!bench.fixture.exists("workspace/.config/plenipo/plenipo.toml"));
        }
        let outside = bench.fixture.join("outside");
        let words = ["call", "workspace.run", &format!("command=touch {}", outside.display())];
        Ran::of(bench.command(words).env("XDG_CONFIG_HOME", &place).output().unwrap()).expect(1);
        assert!(!outside.exists());
    });
}

#[test]
fn a_configuration_behind_a_link_that_a_command_can_replace_is_refused() {
    as_each_user(|bench| {
        bench.fixture.file("real.toml", "# mine\n");
        bench.fixture.symlink("workspace/link.toml", "../real.toml");
        let words = ["call", "workspace.run", "command=rm link.toml"];
        let ran =
            Ran::of(bench.command(words).env("PLENIPO_CONFIG", "link.toml").output().unwrap());
        ran.expect(6);
        assert!(
            ran.stderr.contains("link.toml, which a sandboxed command can replace"),
            "{}",
            ran.stderr
        );
        assert!(bench.fixture.exists("workspace/link.toml"));
    });
}

#[test]
fn with_another_launcher_both_programs_are_protected() {
    as_each_user(|bench| {
        let program = std::fs::read(bench.program()).unwrap();
        let host = bench.fixture.executable("workspace/bin/plenipo", &program);
        let launcher = bench.fixture.executable("workspace/launcher/launcher", &program);
        let config =
            bench.configuration(&format!("launcher = {:?}\n", launcher.display().to_string()));
        for guarded in ["bin/plenipo", "launcher/launcher"] {
            let before = std::fs::metadata(bench.workspace.join(guarded)).unwrap().len();
            let command = format!("mv {guarded} moved; echo x > {guarded}");
            let call =
                ["call", "--config", &config, "workspace.run", &format!("command={command}")];
            let ran = bench.command_of(host.clone().into_os_string(), call).output().unwrap();
            Ran::of(ran).expect(1);
            let run = ["sandbox", "--config", &config, "--", "sh", "-c", &command];
            let ran = bench.command_of(host.clone().into_os_string(), run).output().unwrap();
            assert!(!ran.status.success());
            assert_eq!(std::fs::metadata(bench.workspace.join(guarded)).unwrap().len(), before);
        }
    });
}
