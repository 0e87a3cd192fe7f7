//! Layers of configuration: which file is read, and whose table wins.

use std::process::Command;

use plenipo_testkit::{is_root, requires};
use serde_json::Value;

use crate::support::{Bench, Ran};

fn server(command: &str) -> String {
    format!("command = \"/nonexistent/{command}\"\n")
}

/// Which program a call to `x` wants to start.
fn started(ran: &Ran) -> String {
    let after = ran.stderr.split("/nonexistent/").nth(1).unwrap_or(&ran.stderr);
    after.split('`').next().unwrap().to_owned()
}

#[test]
fn config_replaces_the_users_file_and_the_variable_stands_in_for_it() {
    let bench = Bench::new();
    let usual = format!("[mcp_servers.x]\n{}[mcp_servers.usual]\n{}", server("usual"), server("y"));
    bench.fixture.file("home/.config/plenipo/plenipo.toml", usual);
    let given = bench.configuration(&format!("[mcp_servers.x]\n{}", server("given")));
    let other = bench.fixture.file("other.toml", format!("[mcp_servers.x]\n{}", server("other")));
    assert_eq!(started(&bench.run(["call", "x.y"])), "usual");
    assert_eq!(started(&bench.run(["call", "x.y", "--config", &given])), "given");
    bench.run(["call", "usual.y", "--config", &given]).expect(2); // replaced, not merged
    let by_variable = |words: &[&str]| {
        Ran::of(bench.command(words).env("PLENIPO_CONFIG", &other).output().unwrap())
    };
    assert_eq!(started(&by_variable(&["call", "x.y"])), "other");
    assert_eq!(started(&by_variable(&["call", "x.y", "--config", &given])), "given");
    bench.run(["call", "x.y", "--config", "/nonexistent/plenipo.toml"]).expect(2);
}

#[test]
fn a_project_adds_servers_of_its_directory_only() {
    let bench = Bench::new();
    bench.fixture.file("workspace/plenipo.toml", format!("[mcp_servers.x]\n{}", server("project")));
    bench.run(["trust", "--yes"]).expect(0);
    assert_eq!(started(&bench.run(["call", "x.y"])), "project");
    bench.fixture.directory("workspace/sub");
    bench.run(["call", "x.y", "-C", "sub"]).expect(2); // no search upwards
    let elsewhere =
        bench.command(["call", "x.y", "-C"]).arg(&bench.workspace).current_dir("/").output();
    assert_eq!(started(&Ran::of(elsewhere.unwrap())), "project");
}

#[test]
fn a_file_that_was_named_is_the_users_wherever_it_lies() {
    let bench = Bench::new();
    bench.fixture.file("workspace/plenipo.toml", format!("[mcp_servers.x]\n{}", server("named")));
    let ran = bench.run(["call", "x.y", "--config", "plenipo.toml"]);
    assert_eq!(started(&ran), "named");
    assert!(!ran.stderr.contains("is not used"), "{}", ran.stderr);
}

/// The program with a managed file, which is made in a mount namespace of its own: there is no other way to have one.
fn with_managed(bench: &Bench, text: &str, words: &[&str]) -> Option<Ran> {
    managed_command(bench, text, words).map(|mut command| Ran::of(command.output().unwrap()))
}

pub(crate) fn managed_command(bench: &Bench, text: &str, words: &[&str]) -> Option<Command> {
    let unshare = plenipo_testkit::find_tool("unshare");
    if !requires("unshare, and root", unshare.is_some() && is_root()) {
        return None;
    }
    bench.fixture.file("etc/plenipo/plenipo.toml", text);
    bench.fixture.file("etc/passwd", std::fs::read("/etc/passwd").unwrap());
    let etc = bench.fixture.join("etc");
    let script = "mount --bind \"$1\" /etc && shift && exec \"$@\"";
    let mut command = Command::new(unshare?);
    command
        .args(["-m", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(etc)
        .arg(bench.program())
        .args(words)
        .current_dir(&bench.workspace)
        .env_clear()
        .env("HOME", &bench.home)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    Some(command)
}

#[test]
fn a_managed_server_cannot_be_overridden_and_comes_whole() {
    let bench = Bench::new();
    let managed = format!("[mcp_servers.x]\n{}", server("managed"));
    let users = format!(
        "[mcp_servers.x]\n{}env = {{ A = \"1\" }}\n[mcp_servers.u]\n{}",
        server("user"),
        server("u")
    );
    let config = bench.configuration(&users);
    bench.fixture.file("workspace/plenipo.toml", format!("[mcp_servers.x]\n{}", server("project")));
    let run = |words: &[&str]| with_managed(&bench, &managed, words);
    let Some(trusted) = run(&["trust", "--yes"]) else { return };
    assert!(trusted.stdout.contains("of the managed configuration"), "{trusted:?}");
    assert_eq!(started(&run(&["call", "x.y", "--config", &config]).unwrap()), "managed");
    assert_eq!(started(&run(&["call", "u.y", "--config", &config]).unwrap()), "u");
    let shown = run(&["config", "show", "--json", "--config", &config]).unwrap();
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let x = shown["servers"].as_array().unwrap().iter().find(|server| server["name"] == "x");
    assert_eq!(x.unwrap()["source"]["layer"], "managed");
    assert_eq!(x.unwrap()["transport"]["env"], serde_json::json!({}), "nothing of the user's");
    run(&["add", "x", "--config", &config, "--", "y"]).unwrap().expect(2);
    run(&["call", "workspace.run", "command=true"]).unwrap().expect(0);
}

#[test]
fn a_managed_default_limits_what_a_project_may_define() {
    let bench = Bench::new();
    let managed = "default_permissions = \":read-only\"\n";
    bench.fixture.file(
        "workspace/plenipo.toml",
        "default_permissions = \"p\"\n[permissions.p]\nextends = \":workspace\"\n",
    );
    let Some(trusted) = with_managed(&bench, managed, &["trust", "--yes"]) else { return };
    trusted.expect(0);
    let ran = with_managed(&bench, managed, &["call", "workspace.run", "command=true"]).unwrap();
    ran.expect(6);
    assert!(ran.stderr.contains("would widen `:read-only`"), "{}", ran.stderr);
}

#[test]
fn a_managed_file_that_others_can_write_is_refused() {
    let bench = Bench::new();
    if with_managed(&bench, "", &["config", "path"]).is_none() {
        return;
    }
    let etc = bench.fixture.join("etc");
    let run = |words: &str| {
        let script = format!(
            "chmod 666 {0}/plenipo/plenipo.toml; mount --bind {0} /etc && exec {1} {words}",
            etc.display(),
            bench.program().display()
        );
        let mut command = Command::new("unshare");
        command
            .args(["-m", "--propagation", "private", "sh", "-c", &script])
            .current_dir(&bench.workspace);
        Ran::of(command.output().unwrap())
    };
    // A launcher refuses with its own code.
    for (words, code) in [
        ("call workspace.run command=true", 2),
        ("sandbox -P :read-only --report-fd 1 -- touch ran", 125),
    ] {
        let ran = run(words);
        ran.expect(code);
        assert!(ran.stderr.contains("written by others"), "{}", ran.stderr);
        assert!(code == 2 || ran.stdout.contains(r#""status":"refused""#), "{}", ran.stdout);
    }
}

#[test]
fn check_names_domains_that_no_network_is_limited_to() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[permissions.a.network]\ndomains = [\"a.org\"]\n[permissions.b]\nworkspace_roots = [\"x\"]\n\
         [permissions.c.network]\nenabled = true\nmode = \"full\"\ndomains = [\"b.org\"]\n",
    );
    let ran = bench.run(["config", "check", "--config", &config]);
    insta::assert_snapshot!(ran.shown(&bench), @r#"
    exit 2
    fault FIXTURE/plenipo.toml:2: permissions.a.network.domains: only a limited network can be held to domains, and `mode` is not set
          hint: set mode = "limited" in the same table, or take `domains` out
    fault FIXTURE/plenipo.toml:8: permissions.c.network.domains: only a limited network can be held to domains, and `mode` is full
          hint: set mode = "limited" in the same table, or take `domains` out
    note  FIXTURE/plenipo.toml:4: permissions.b.workspace_roots: recognised but not supported yet, so this profile cannot be used
    2 faults in FIXTURE/plenipo.toml
    "#);
}

/// The launcher that the built-in server starts finds its configuration by the passwd file alone. What was said elsewhere
/// reaches it all the same, where it asks for more.
#[test]
fn what_a_named_file_asks_of_the_launcher_reaches_it() {
    let bench = Bench::new();
    bench.fixture.file("workspace/x.env", "secret");
    let profile = "default_permissions = \"p\"\n[permissions.p]\nextends = \":workspace\"\n\
                   [permissions.p.filesystem.\":workspace_roots\"]\n\"**/*.env\" = \"deny\"\n";
    let plain = bench.fixture.file("plain.toml", profile);
    let strict = format!("{profile}[sandbox]\ndeny_glob = \"strict\"\nminimum_rung = \"full\"\n");
    let strict = bench.fixture.file("strict.toml", strict);
    let call = |configure: &dyn Fn(&mut Command)| {
        let mut command = bench.command(["call", "workspace.run", "command=echo ran"]);
        configure(&mut command);
        Ran::of(command.output().unwrap())
    };
    let allowed = call(&|command| {
        command.arg("--config").arg(&plain);
    });
    assert!(allowed.stdout.contains("ran"), "{allowed:?}");
    bench.fixture.file("other/.config/plenipo/plenipo.toml", std::fs::read(&strict).unwrap());
    let home = bench.fixture.join("other");
    let ways: [&dyn Fn(&mut Command); 3] = [
        &|command| {
            command.arg("--config").arg(&strict);
        },
        &|command| {
            command.env("PLENIPO_CONFIG", &strict);
        },
        &|command| {
            command.env("HOME", &home);
        },
    ];
    for configure in ways {
        let refused = call(configure);
        assert!(!refused.stdout.contains("ran\n"), "{refused:?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains("sandbox.deny_glob"), "{refused:?}");
    }
}

/// Another launcher cannot be asked, so it is not used.
#[test]
fn a_launcher_that_cannot_hold_what_is_asked_runs_nothing() {
    let bench = Bench::new();
    let launcher = bench.fixture.executable(
        "launcher",
        "#!/bin/sh\n[ \"$2\" = --help ] && echo --sandbox-state-json && exit\necho ran\n",
    );
    let text = format!("launcher = {launcher:?}\n[sandbox]\nminimum_rung = \"full\"\n");
    let config = bench.configuration(&text);
    let refused = bench.run(["call", "workspace.run", "command=true", "--config", &config]);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("sandbox.minimum_rung") && !said.contains("ran\n"), "{refused:?}");
}

#[test]
fn paths_of_all_layers_are_shown() {
    let bench = Bench::new();
    let json = bench.run(["config", "path", "--json"]);
    let places: Value = serde_json::from_str(&json.stdout).unwrap();
    let layers: Vec<_> = places.as_array().unwrap().iter().map(|place| &place["layer"]).collect();
    assert_eq!(layers, ["managed", "user", "project"]);
    let user = bench.home.join(".config/plenipo/plenipo.toml");
    assert!(bench.run(["config", "path"]).stdout.contains(&user.display().to_string()));
}

#[test]
fn check_lists_every_fault_of_every_layer() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[mcp_servers.a]\ncomand = \"x\"\n[mcp_servers.b]\nurl = \"ftp://x\"\n\
         [mcp_servers.c]\ncommand = \"c\"\nscope = []\n[mcp_servers.\"a b\"]\ncommand = \"x\"\n\
         [mcp_servers.later]\ncommand = \"x\"\ntools = { t = { output_token_limit = 9 } }\n\
         [permissions.p]\nextend = \":workspace\"\n",
    );
    bench.fixture.file(
        "workspace/plenipo.toml",
        "[mcp_servers.a]\ncommand = \"x\"\n[permissions.w]\nextends = \":workspace\"\nnetwork = { enabled = true }\n",
    );
    let ran = bench.run(["config", "check", "--config", &config]);
    insta::assert_snapshot!(ran.shown(&bench), @r#"
    exit 2
    fault FIXTURE/plenipo.toml:2: `mcp_servers.a.comand` is not a known key
          hint: did you mean `command`?
    fault FIXTURE/plenipo.toml:4: `mcp_servers.b.url` should begin with `http://` or `https://`
    fault FIXTURE/plenipo.toml:7: `mcp_servers.c.scope` is not a known key
          hint: did you mean `scopes`?
    fault FIXTURE/plenipo.toml:8: `mcp_servers."a b"` is not a server name: letters, digits and `_:@/.-` only
    fault FIXTURE/plenipo.toml:14: permissions.p.extend: unknown key
          hint: did you mean `extends`?
    fault WORKSPACE/plenipo.toml:1: `mcp_servers.a` takes the name of the server `a` of your configuration, which a project's file may not
    note  FIXTURE/plenipo.toml:10: `later` is disabled: not honoured yet: `tools.*.output_token_limit`
    note  WORKSPACE/plenipo.toml: is not used: it is not trusted
    6 faults in FIXTURE/plenipo.toml, WORKSPACE/plenipo.toml
    "#);
    let json = bench.run(["config", "check", "--json", "--config", &config]);
    json.expect(2);
    let answer: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(answer["faults"][0]["line"], 2);
    assert_eq!(answer["faults"][0]["hint"], "did you mean `command`?");
    let good = bench.fixture.file("good.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    bench.run(["config", "check", &good.display().to_string()]).expect(0);
    bench.run(["config", "check", "/nonexistent/plenipo.toml"]).expect(2);
}

#[test]
fn check_sees_environments_and_names_that_point_nowhere() {
    let bench = Bench::new();
    let config = bench.configuration(
        "default_permissions = \"tigth\"\n[sandbox]\ndefault_for_servers = \"none\"\n\
         [permissions.tight]\nextends = \":read-only\"\n\
         [environments.a]\ncommand = \"ssh host\"\n\
         [environments.b]\ncommand = [\"x\"]\ncwd = \"w\"\n\
         [environments.c]\ncommand = [\"x\"]\npermissions = \":read-onyl\"\ncwd = \"/w\"\n\
         [environments.d]\ncommand = [\"x\"]\npermissions = \"tight\"\n\
         [environments.local]\ncommand = [\"x\"]\n\
         [mcp_servers.at-d]\ncommand = \"x\"\nenvironment_id = \"d\"\n\
         [mcp_servers.at-e]\ncommand = \"x\"\nenvironment_id = \"e\"\n\
         [mcp_servers.in]\ncommand = \"x\"\nsandbox = \"tighter\"\n",
    );
    let project = "[mcp_servers.p]\ncommand = \"x\"\nenvironment_id = \"local\"\n";
    bench.fixture.file("workspace/plenipo.toml", project);
    let ran = bench.run(["config", "check", "--config", &config]);
    insta::assert_snapshot!(ran.shown(&bench), @r#"
    exit 2
    fault FIXTURE/plenipo.toml:1: `default_permissions` should be the name of a profile, found `tigth`, which is not defined
          hint: did you mean `tight`?
    fault FIXTURE/plenipo.toml:3: `sandbox.default_for_servers` should be the name of a profile, found `none`, which is not defined
          hint: define [permissions.none] in your own or the managed configuration
    fault FIXTURE/plenipo.toml:7: `environments.a.command` should be an array, found string
          hint: write its words apart: command = ["ssh", "host", "--"]
    fault FIXTURE/plenipo.toml:10: `environments.b.cwd` should be an absolute path of the environment, found `w`
          hint: write the whole path over there, such as /srv/notes
    fault FIXTURE/plenipo.toml:13: `environments.c.permissions` should be the name of a profile, found `:read-onyl`, which is not defined
          hint: did you mean `:read-only`?
    fault FIXTURE/plenipo.toml:19: `environments.local.command` cannot be set: the environment `local` is this machine
          hint: give the environment another name
    fault FIXTURE/plenipo.toml:22: `mcp_servers.at-d.environment_id` is `d`, whose `permissions` need a `cwd` that begins with `/`
          hint: set `cwd` in [environments.d] or for this server
    fault FIXTURE/plenipo.toml:25: `mcp_servers.at-e.environment_id` references unknown environment id `e`
          hint: define [environments.e] in your own or the managed configuration
    fault FIXTURE/plenipo.toml:28: `mcp_servers.in.sandbox` should be the name of a profile, found `tighter`, which is not defined
          hint: did you mean `tight`?
    fault WORKSPACE/plenipo.toml:3: `mcp_servers.p.environment_id` may not be set by a project's file: its servers run on this machine
          hint: remove it, or define the server in your own configuration
    note  WORKSPACE/plenipo.toml: is not used: it is not trusted
    10 faults in FIXTURE/plenipo.toml, WORKSPACE/plenipo.toml
    "#);
    let managed = "[permissions.a]\nextends = \":read-only\"\n[environments.a]\ncommand = [\"x\"]\n\
                   [mcp_servers.a]\ncommand = \"x\"\nenvironment_id = \"a\"\n\
                   [mcp_servers.b]\ncommand = \"x\"\nsandbox = \"a\"\n";
    let good = bench.fixture.file("good.toml", managed);
    bench.run(["config", "check", &good.display().to_string()]).expect(0);
}

/// What cannot be used is refused where it is used, with its place, and takes nothing else away.
#[test]
fn names_that_point_nowhere_are_faults_when_loading() {
    let bench = Bench::new();
    let refused = |text: &str, server: &str| {
        let config = bench.configuration(text);
        let ran = bench.run(["call", "--config", &config, &format!("{server}.x")]);
        ran.expect(2).stderr.clone()
    };
    let local = "[environments.local]\ncommand = [\"x\"]\n";
    let said = refused(local, "workspace");
    assert!(said.contains("plenipo.toml:2: `environments.local.command` cannot be set"), "{said}");
    let said = refused("default_permissions = \"x\"\n", "workspace");
    assert!(said.contains("plenipo.toml:1: `default_permissions` should be"), "{said}");
    assert!(said.contains("hint: define [permissions.x]"), "{said}");
    let servers = "[mcp_servers.a]\ncommand = \"x\"\nsandbox = \"tight\"\n\
                   [mcp_servers.b]\ncommand = \"x\"\nenvironment_id = \"box\"\n";
    let said = refused(servers, "a");
    assert!(said.contains("plenipo.toml:3: `mcp_servers.a.sandbox` should be"), "{said}");
    let said = refused(servers, "b");
    assert!(said.contains("references unknown environment id `box`"), "{said}");
    let place = "[environments.box]\ncommand = [\"x\"]\n\
                 [mcp_servers.a]\ncommand = \"x\"\nenvironment_id = \"box\"\n";
    let config = bench.configuration(place);
    let ran = bench.run(["call", "--config", &config, "--profile", ":read-only", "a.x"]);
    assert!(ran.expect(2).stderr.contains("profile `:read-only` cannot go to environment `box`"));
    // The control: the built-in server is there in spite of faulty neighbours.
    let config = bench.configuration(servers);
    bench.run(["call", "--config", &config, "workspace.run", "command=true"]).expect(0);
}

#[test]
fn check_names_a_credential_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let config = bench.configuration(
        "[mcp_servers.b]\nurl = \"https://h/mcp\"\n[mcp_servers.b.http_headers]\nX-Api-Key = \"s3cr3t\"\n",
    );
    for (mode, expected) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&config, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = bench.run(["config", "check", &config]);
        ran.expect(0);
        let told = ran
            .stdout
            .contains(":4: `mcp_servers.b.http_headers.X-Api-Key` looks like a credential");
        assert_eq!(told, expected, "{}", ran.stdout);
        assert!(!ran.stdout.contains("s3cr3t"), "{}", ran.stdout);
    }
}

#[test]
fn check_and_doctor_note_credentials_that_others_see() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[mcp_servers.a]\ncommand = \"a\"\nargs = [\"--api-key\", \"s3cr3t-s3cr3t\"]\n\
         [mcp_servers.b]\nurl = \"https://h.example/mcp?api_key=s3cr3t-s3cr3t\"\n",
    );
    let project = "[mcp_servers.p]\ncommand = \"p\"\nenv = { NOTES_TOKEN = \"s3cr3t-s3cr3t\" }\n";
    bench.fixture.file("workspace/plenipo.toml", project);
    let ran = bench.run(["config", "check", "--config", &config]);
    insta::assert_snapshot!(ran.expect(0).shown(&bench));
    let ran = bench.run(["doctor", "--json", "--config", &config]);
    let findings: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    let notes = findings.as_array().unwrap().iter().filter(|finding| finding["verdict"] == "note");
    let notes: Vec<_> = notes.filter(|note| note["subject"] == "configuration").collect();
    assert_eq!(notes.len(), 2, "{findings}");
    assert!(notes.iter().all(|note| note["fix"].is_string()), "{findings}");
    assert!(!ran.stdout.contains("s3cr3t"), "{}", ran.stdout);
}

#[test]
fn check_lists_all_faults_of_one_server_in_one_run() {
    let bench = Bench::new();
    let many = "comand = \"x\"\nargs = [1]\nmax_tools = 0\nenv_vars = [\"A B\"]\n";
    let config = bench.configuration(&format!("nonsense = 1\n[mcp_servers.a]\n{many}"));
    bench.fixture.file("workspace/plenipo.toml", format!("[mcp_servers.p]\n{many}"));
    let ran = bench.run(["config", "check", "--config", &config]);
    ran.expect(2);
    for server in ["a", "p"] {
        for key in ["comand", "args[0]", "max_tools", "env_vars[0]"] {
            let told = format!("`mcp_servers.{server}.{key}` ");
            assert_eq!(ran.stdout.matches(&told).count(), 1, "{told}: {}", ran.stdout);
        }
    }
    assert!(ran.stdout.contains("9 faults in "), "{}", ran.stdout);
    let ran = bench.run(["config", "check", "/nonexistent/plenipo.toml"]);
    assert!(ran.expect(2).stdout.ends_with("1 fault in /nonexistent/plenipo.toml\n"), "{ran:?}");
}

#[test]
fn show_names_sources_and_no_secrets() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[mcp_servers.a]\ncommand = \"a\"\nargs = [\"--api-key\", \"s3cr3t1\", \"--token=s3cr3t2\", \"ok\"]\n\
         env = { PLAIN = \"s3cr3t3\", T = \"x-s3cr3t4-${TOK:-s3cr3t5}\" }\n\
         [mcp_servers.b]\nurl = \"https://h/mcp?key=s3cr3t6\"\nhttp_headers = { X-A = \"s3cr3t7\", Authorization = \"Bearer ${TOK}\" }\n\
         [mcp_servers.off]\ncommand = \"x\"\nenabled = false\n",
    );
    let mut command = bench.command(["config", "show", "--config", &config]);
    let ran = Ran::of(command.env("TOK", "s3cr3t8").output().unwrap());
    insta::assert_snapshot!(ran.shown(&bench), @r"
    exit 0
    a
        a --api-key '[redacted]' '--token=[redacted]' ok
        from user FIXTURE/plenipo.toml:1
    b
        https://h/mcp?[redacted]
        from user FIXTURE/plenipo.toml:5
    off
        x
        disabled: `enabled = false`
        from user FIXTURE/plenipo.toml:8
    ");
    let mut command = bench.command(["config", "show", "--json", "--config", &config]);
    let json = Ran::of(command.env("TOK", "s3cr3t8").output().unwrap());
    for output in [&ran, &json] {
        assert!(!output.stdout.contains("s3cr3t"), "{}", output.stdout);
        assert!(!output.stderr.contains("s3cr3t"), "{}", output.stderr);
    }
    let shown: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        shown["servers"][1]["transport"]["http_headers"]["Authorization"],
        "[redacted]${TOK}"
    );
    assert_eq!(shown["servers"][0]["source"]["line"], 1);
}
