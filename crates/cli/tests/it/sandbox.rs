//! `plenipo sandbox`: the state form, the profile form, and what is refused.

use std::io::Read;
use std::process::Stdio;

use insta::assert_snapshot;
use plenipo_testkit::ChildGuard;
use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user};

/// A state with the whole file system readable, the workspace writable, and whatever `extra` members add.
fn state(bench: &Bench, extra: &str) -> String {
    let workspace = bench.workspace.display();
    format!(
        r#"{{"permissionProfile":{{"type":"managed","file_system":{{"type":"restricted","entries":[{{"path":{{"type":"special","value":{{"kind":"root"}}}},"access":"read"}},{{"path":{{"type":"path","path":"{workspace}"}},"access":"write"}}]}},"network":"restricted"}},"sandboxCwd":"file://{workspace}"{extra}}}"#
    )
}

fn sandbox(bench: &Bench, state: &str, command: &[&str]) -> Ran {
    let mut words = vec!["sandbox", "--sandbox-state-json", state, "--"];
    words.extend(command);
    bench.run(words)
}

#[test]
fn the_state_comes_by_argument_file_descriptor_or_input() {
    as_each_user(|bench| {
        let state = state(bench, "");
        let command = ["sh", "-c", "echo in > file && cat file"];
        assert_eq!(sandbox(bench, &state, &command).expect(0).stdout, "in\n");
        let file = bench.fixture.file("state.json", &state);
        let at = format!("@{}", file.display());
        assert_eq!(sandbox(bench, &at, &command).expect(0).stdout, "in\n");
        let words = ["sandbox", "--sandbox-state-json", "-", "--", "sh", "-c", "echo in"];
        assert_eq!(bench.run_with_input(&words, state.as_bytes()).expect(0).stdout, "in\n");
        let through_shell = format!(
            "exec 5< {}; exec {} sandbox --sandbox-state-json fd:5 -- echo in",
            file.display(),
            bench.program().display()
        );
        let ran = bench.command_of("/bin/sh".into(), ["-c", &through_shell]).output().unwrap();
        assert_eq!(Ran::of(ran).expect(0).stdout, "in\n");
    });
}

#[test]
fn a_state_longer_than_one_argument_comes_by_file() {
    let bench = Bench::new();
    let padding = format!(r#","padding":"{}""#, "x".repeat(200_000));
    let file = bench.fixture.file("state.json", state(&bench, &padding));
    sandbox(&bench, &format!("@{}", file.display()), &["true"]).expect(0);
}

#[test]
fn the_report_comes_before_the_command_and_lists_what_was_not_understood() {
    as_each_user(|bench| {
        let state = state(bench, r#","somethingNew":1"#);
        let words =
            ["sandbox", "--report-fd", "1", "--sandbox-state-json", &state, "--", "echo", "after"];
        let ran = bench.run(words);
        let (report, rest) = ran.expect(0).stdout.split_once('\n').unwrap();
        assert_eq!(rest, "after\n");
        let report: Value = serde_json::from_str(report).unwrap();
        assert_eq!(report["status"], "enforced");
        assert_eq!(report["unknown_members"], serde_json::json!(["somethingNew"]));
    });
}

/// The reader's end of file comes while the command still waits for its input.
#[test]
fn a_report_ends_before_the_command_does_and_a_refusal_has_its_line() {
    as_each_user(|bench| {
        let script =
            r#"exec "$0" sandbox --report-fd 9 --sandbox-state-json "$1" -- cat 9>&1 >/dev/null"#;
        let start = |state: &str| {
            let words = ["-c", script, &bench.program().display().to_string(), state];
            let mut command = bench.command_of("/bin/sh".into(), words);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = ChildGuard::new(command.spawn().unwrap());
            let mut report = String::new();
            child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
            assert_eq!(report.lines().count(), 1, "{report}");
            (child, serde_json::from_str::<Value>(&report).unwrap())
        };
        let (mut child, report) = start(&state(bench, ""));
        assert_eq!(report["status"], "enforced");
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        for state in ["{}", &state(bench, "").replace("/workspace\"}", "/missing\"}")] {
            let (mut child, report) = start(state);
            assert_eq!(report["status"], "refused");
            assert_eq!(child.wait().unwrap().code(), Some(125));
        }
    });
}

#[test]
fn refusals_are_125_with_one_json_line_and_nothing_runs() {
    let bench = Bench::new();
    let good = state(&bench, "");
    let refuse = |state: &str| {
        let words =
            ["sandbox", "--report-fd", "1", "--sandbox-state-json", state, "--", "touch", "ran"];
        let ran = bench.run(words);
        ran.expect(125);
        assert!(!bench.fixture.exists("workspace/ran"), "{state}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["status"], "refused");
        report["reason"]["message"]
            .as_str()
            .unwrap()
            .replace(&bench.fixture.path().display().to_string(), "FIXTURE")
    };
    assert_snapshot!(refuse(""), @"expected one JSON object: EOF while parsing a value at line 1 column 0");
    assert_snapshot!(refuse("{}"), @"permissionProfile: this member is missing");
    assert_snapshot!(refuse(&good.replace("restricted\"},\"sandboxCwd", "on\"},\"sandboxCwd")), @r#"permissionProfile.network: expected one of restricted, enabled, found "on""#);
    assert_snapshot!(refuse(&good.replace("\"access\":\"write\"", "\"access\":\"execute\"")), @r#"permissionProfile.file_system.entries[1].access: expected one of read, write, deny, found "execute""#);
    assert_snapshot!(refuse(&good.replace("\"type\":\"managed\"", "\"type\":\"managed\",\"extra\":1")), @"permissionProfile.extra: unknown member (it may restrict something)");
    assert_snapshot!(refuse(&good.replace("file://", "")), @r#"sandboxCwd: expected an absolute percent-encoded file URI such as "file:///srv/project", found "FIXTURE/workspace""#);
    assert_snapshot!(refuse(&good.replace("/workspace\"}", "/missing\"}")), @"the working directory FIXTURE/missing is not there");
    assert_snapshot!(refuse(&format!("{good} x")), @"expected one JSON object: trailing characters at line 1 column 322");
}

#[test]
fn commands_that_cannot_start_have_their_own_codes() {
    as_each_user(|bench| {
        let state = state(bench, "");
        sandbox(bench, &state, &["/nonexistent/command"]).expect(127);
        sandbox(bench, &state, &["no-such-command-anywhere"]).expect(127);
        sandbox(bench, &state, &["/etc/passwd"]).expect(126);
        sandbox(bench, &state, &["/etc"]).expect(126);
        sandbox(bench, &state, &["-x"]).expect(127);
        sandbox(bench, &state, &[""]).expect(127);
        for code in [0, 1, 2, 42, 125, 126, 127, 128, 255] {
            sandbox(bench, &state, &["sh", "-c", &format!("exit {code}")]).expect(code);
        }
    });
}

#[test]
fn usage_errors_are_2() {
    let bench = Bench::new();
    let state = state(&bench, "");
    for words in [
        vec!["sandbox", "--sandbox-state-json", &state, "--cd", "/", "--", "true"],
        vec!["sandbox", "--sandbox-state-json", &state, "-P", ":read-only", "--", "true"],
        vec![
            "sandbox",
            "--sandbox-state-json",
            &state,
            "--sandbox-state-json",
            &state,
            "--",
            "true",
        ],
        vec!["sandbox", "--sandbox-state-json", &state, "--config", "x.toml", "--", "true"],
        vec!["sandbox", "--sandbox-state-readable-root", "/", "--", "true"],
        vec!["sandbox", "--sandbox-state-disable-network", "--", "true"],
        vec!["sandbox", "--sandbox-state-json", &state],
        vec!["sandbox", "-P", ":bogus", "--", "true"],
        vec!["sandbox"],
    ] {
        bench.run(words).expect(2);
    }
}

#[test]
fn readable_roots_and_no_network_come_from_the_command_line() {
    as_each_user(|bench| {
        let extra = bench.fixture.directory("extra");
        bench.fixture.file("extra/file", "readable\n");
        let minimal = state(bench, "").replace("\"root\"", "\"minimal\"");
        let read = format!("cat {}/file", extra.display());
        sandbox(bench, &minimal, &["sh", "-c", &read]).expect(1);
        let root = extra.display().to_string();
        let words = [
            "sandbox",
            "--sandbox-state-json",
            &minimal,
            "--sandbox-state-readable-root",
            &root,
            "--",
            "sh",
            "-c",
            &read,
        ];
        assert_eq!(bench.run(words).expect(0).stdout, "readable\n");
        let open =
            state(bench, "").replace("\"restricted\"},\"sandboxCwd", "\"enabled\"},\"sandboxCwd");
        let ask = ["sh", "-c", "echo $CODEX_SANDBOX_NETWORK_DISABLED"];
        assert_eq!(sandbox(bench, &open, &ask).expect(0).stdout, "\n");
        let words = [
            "sandbox",
            "--sandbox-state-json",
            &open,
            "--sandbox-state-disable-network",
            "--",
            "sh",
            "-c",
            ask[2],
        ];
        assert_eq!(bench.run(words).expect(0).stdout, "1\n");
        let disabled = format!(
            r#"{{"permissionProfile":{{"type":"disabled"}},"sandboxCwd":"file://{}"}}"#,
            bench.workspace.display()
        );
        sandbox(bench, &disabled, &["true"]).expect(0);
        let words = [
            "sandbox",
            "--sandbox-state-json",
            &disabled,
            "--sandbox-state-disable-network",
            "--",
            "true",
        ];
        bench.run(words).expect(125);
    });
}

#[test]
fn profiles_run_by_name() {
    as_each_user(|bench| {
        let write = ["sh", "-c", "echo x > file"];
        let run = |words: &[&str]| {
            let mut all = vec!["sandbox"];
            all.extend(words);
            all.push("--");
            all.extend(write);
            bench.run(all)
        };
        run(&["-P", ":read-only"]).expect(2);
        assert!(!bench.fixture.exists("workspace/file"));
        run(&["-P", ":workspace"]).expect(0);
        run(&[]).expect(0);
        bench.fixture.directory("elsewhere");
        let elsewhere = bench.fixture.join("elsewhere").display().to_string();
        run(&["-P", ":workspace", "-C", &elsewhere]).expect(0);
        assert!(bench.fixture.exists("elsewhere/file"));
        let config = bench.configuration(
            "[permissions.docs]\nextends = \":read-only\"\n[permissions.docs.filesystem]\n\":workspace_roots\" = \"write\"\n",
        );
        run(&["--config", &config, "-P", "docs"]).expect(0);
    });
}

#[test]
fn a_profile_that_cannot_be_enforced_is_a_refusal_with_a_report() {
    as_each_user(|bench| {
        let words = ["sandbox", "--report-fd", "1", "--", "touch", "ran"];
        let home = bench.home.display().to_string();
        let ran =
            Ran::of(bench.command(words).env("TMPDIR", bench.fixture.path()).output().unwrap());
        ran.expect(125);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["status"], "refused", "{home}");
        assert!(!bench.fixture.exists("workspace/ran"));
        let unknown = bench.run(["sandbox", "--report-fd", "1", "-P", ":bogus", "--", "true"]);
        unknown.expect(2);
        assert!(unknown.stdout.contains("refused"), "{}", unknown.stdout);
    });
}

#[test]
fn both_ways_to_ask_for_help_say_the_same() {
    let bench = Bench::new();
    let direct = bench.run(["sandbox", "--help"]);
    assert_eq!(direct.expect(0).stdout, bench.run(["help", "sandbox"]).stdout);
    assert!(direct.stdout.contains("Examples:"), "{}", direct.stdout);
}

/// A configuration in the home directory of the environment is not the operator's: the passwd file's is.
#[test]
fn the_environment_cannot_lower_the_minimum_rung_of_a_state() {
    as_each_user(|bench| {
        let lowered = "[sandbox]\nminimum_rung = \"landlock\"\n";
        bench.fixture.file("elsewhere/.config/plenipo/plenipo.toml", lowered);
        let file = bench.fixture.file("elsewhere/plenipo.toml", lowered).display().to_string();
        let home = bench.fixture.join("elsewhere").display().to_string();
        let state = state(bench, "");
        let words = ["sandbox", "--explain", "--json", "--sandbox-state-json", &state];
        let mut command = bench.command(words);
        command.env("HOME", &home).env("XDG_CONFIG_HOME", format!("{home}/.config"));
        let ran = Ran::of(command.env("PLENIPO_CONFIG", &file).output().unwrap());
        let report: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        assert_eq!(report["minimum_rung"], "full");
        // A profile's sandbox is the person's own, and so is the file that is named for it.
        let words = ["sandbox", "--explain", "--json", "-P", ":read-only", "--config", &file];
        let report: Value = serde_json::from_str(&bench.run(words).expect(0).stdout).unwrap();
        assert_eq!(report["minimum_rung"], "landlock");
        let words = [words.as_slice(), &["--minimum-rung", "no-proc"]].concat();
        let report: Value = serde_json::from_str(&bench.run(words).expect(0).stdout).unwrap();
        assert_eq!(report["minimum_rung"], "no-proc");
    });
}

#[test]
fn a_flag_does_not_lower_the_minimum_rung() {
    as_each_user(|bench| {
        for state in [Some(state(bench, "")), None] {
            let form = state
                .as_ref()
                .map_or(["-P", ":read-only"], |state| ["--sandbox-state-json", state]);
            let words = ["sandbox", "--explain", "--json", "--minimum-rung", "landlock"];
            let report: Value = serde_json::from_str(
                &bench.run([words.as_slice(), &form].concat()).expect(0).stdout,
            )
            .unwrap();
            assert_eq!(report["minimum_rung"], "full");
        }
    });
}

#[test]
fn explaining_for_a_person_runs_nothing() {
    as_each_user(|bench| {
        let state = state(bench, "");
        let ran = bench.run([
            "sandbox",
            "--explain",
            "--sandbox-state-json",
            &state,
            "--",
            "touch",
            "ran",
        ]);
        let text = &ran.expect(0).stdout;
        for wanted in [
            "status             enforced\n",
            "seccomp            enforced\n",
            "processes outside  not visible\n",
        ] {
            assert!(text.contains(wanted), "{text}");
        }
        assert!(
            text.contains(&format!(
                "write              {} (entries[1])",
                bench.workspace.display()
            )),
            "{text}"
        );
        assert!(!bench.fixture.exists("workspace/ran"));
    });
}
