//! Nothing runs but under the authority of its call.

use plenipo_server_workspace::ServeError;
use serde_json::json;

use crate::harness::{Host, Launcher, meta, options, text, unsandboxed};

const STATE: &str = r#"{"permissionProfile":{"type":"disabled"},"sandboxCwd":"file:///"}"#;

#[tokio::test]
async fn without_a_launcher_nothing_runs() {
    let fixture = plenipo_testkit::Fixture::new();
    let marker = fixture.join("ran");
    let mut host = Host::new(options());
    let state_only = format!(r#"{{"codex/sandbox-state":{STATE}}}"#);
    let mut said = Vec::new();
    for meta in ["{}", &state_only] {
        let result = host.call(json!({"argv": ["/usr/bin/touch", marker]}), meta).await;
        assert_eq!(result["isError"], true);
        said.push(text(&result).to_owned());
    }
    assert!(!marker.exists());
    insta::assert_snapshot!(said.join("\n"), @"
    refused: the call came without a sandbox state and without a launcher
    hint: call through a host that sends `codex/sandbox-launcher`; or the operator of this server can allow unsandboxed commands, with `allow_unsandboxed = true` under `[server.workspace]` in the user or managed configuration
    refused: the call came with a sandbox state but without a launcher
    hint: call through a host that sends `codex/sandbox-launcher`; or the operator of this server can allow unsandboxed commands, with `allow_unsandboxed = true` under `[server.workspace]` in the user or managed configuration
    ");
}

#[tokio::test]
async fn malformed_authority_is_refused_whatever_the_operator_allows() {
    let launcher = Launcher::new();
    let path = json!(launcher.path).to_string();
    let metas = [
        r#"{"codex/sandbox-state":{"a":1},"codex/sandbox-state-meta":{"a":2}}"#.to_owned(),
        r#"{"codex/sandbox-state":null}"#.to_owned(),
        r#"{"codex/sandbox-state":{},"codex\/sandbox-state":{}}"#.to_owned(),
        format!(r#"{{"codex/sandbox-launcher":{{"codexExecutable":{path}}}}}"#),
        r#"{"codex/sandbox-state":{},"codex/sandbox-launcher":{"codexExecutable":"bin/x"}}"#
            .to_owned(),
        r#"{"codex/sandbox-state":{},"codex/sandbox-launcher":"/bin/x"}"#.to_owned(),
        meta(&format!(r#"{{"a":"{}"}}"#, "x".repeat(131_072)), &launcher.path),
        r#"{"codex/sandbox-state":{"sandboxCwd":"/tmp"}}"#.to_owned(),
        "null".to_owned(),
    ];
    let mut host = Host::new(launcher.options(&[]));
    let mut lax = Host::new(unsandboxed());
    let mut said = Vec::new();
    let marker = launcher.fixture.join("ran");
    for meta in &metas {
        let arguments = json!({"argv": ["/usr/bin/touch", marker]});
        let strict = host.call(arguments.clone(), meta).await;
        assert_eq!(strict["isError"], true, "{meta:.100}");
        let result = lax.call(arguments, meta).await;
        assert_eq!(result["isError"], true, "{meta:.100}");
        said.push(text(&result).lines().next().unwrap().to_owned());
    }
    assert!(!marker.exists());
    assert_eq!(launcher.recorded("argv"), "");
    insta::assert_snapshot!(said.join("\n"));
}

#[tokio::test]
async fn arguments_are_never_authority() {
    let mut host = Host::new(options());
    let smuggled = [
        json!({"command": "true", "_meta": {"codex/sandbox-state": {}}}),
        json!({"command": "true", "codex/sandbox-launcher": {"codexExecutable": "/bin/sh"}}),
        json!({"command": "true", "allow_unsandboxed": true}),
    ];
    for arguments in smuggled {
        let result = host.call(arguments, "{}").await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).starts_with("unknown argument"), "{result}");
    }
}

#[tokio::test]
async fn the_launcher_gets_state_and_command_byte_for_byte() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let state = r#"{ "n":1.10, "big":123456789012345678901234567890,"e":1E+07,"z":-0,"z":0,"s":"\u00e9\/ 'q' $(x) ""}"#
        .replace(r#" """#, r#"""#);
    let alias = format!(
        r#"{{"codex/sandbox-state":{state},"codex/sandbox-state-meta":{state},"codex/sandbox-launcher":{}}}"#,
        json!({"codexExecutable": launcher.path})
    );
    for meta in [launcher.meta(&state), alias] {
        let argv = ["/bin/echo", "", "a  b", "--", "$HOME", "*", "ä\n'\""];
        let result = host.call(json!({"argv": argv}), &meta).await;
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(result["structuredContent"]["stdout"], " a  b -- $HOME * ä\n'\"\n");
        assert_eq!(launcher.recorded("state"), state);
        assert_eq!(launcher.recorded("argv"), argv.map(|word| format!("{word}\0")).concat());
    }
    host.call(json!({"command": "echo $((1+1)) >&2"}), &launcher.meta("{}")).await;
    assert_eq!(launcher.recorded("argv"), "/bin/sh\0-c\0echo $((1+1)) >&2\0");
}

#[tokio::test]
async fn secrets_of_the_server_do_not_reach_the_command() {
    let launcher = Launcher::new();
    let mut options = launcher.options(&[("ADDED", "by the operator")]);
    for (name, value) in [("API_TOKEN", "secret"), ("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")] {
        options.inherited_environment.push((name.into(), value.into()));
    }
    let mut host = Host::new(options);
    let result = host.call(json!({"argv": ["/usr/bin/env"]}), &launcher.meta("{}")).await;
    let stdout = result["structuredContent"]["stdout"].as_str().unwrap();
    let mut names: Vec<_> = stdout.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    // These are the stand-in launcher's, which is written in bash.
    names.retain(|name| !["PWD", "SHLVL", "_", "FAKE_STATE"].contains(name));
    assert_eq!(names, ["ADDED", "FAKE_RECORD", "HOME", "PATH"]);
    let given = launcher.recorded("environment");
    assert!(!given.contains("secret") && given.contains("ADDED=by the operator"), "{given}");
}

#[tokio::test]
async fn a_launcher_inherits_the_report_descriptor_and_no_other() {
    const SCRIPT: &str = "#!/bin/sh
        [ \"$2\" = --help ] && echo --report-fd && exit
        echo \"$5\" && exec ls /proc/self/fd";
    let fixture = plenipo_testkit::Fixture::new();
    let path = fixture.executable("launcher", SCRIPT);
    // What whoever runs this test leaks into every child is not the server's doing.
    #[expect(clippy::disallowed_methods, reason = "a test starts a program to compare with")]
    let plain = std::process::Command::new("/bin/ls").arg("/proc/self/fd").output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    let mut host = Host::new(options());
    for _ in 0..3 {
        let result = host.call(json!({"command": "true"}), &meta("{}", &path)).await;
        let mut seen = text(&result).lines();
        let report = seen.next().unwrap();
        let allowed = |number: &&str| *number == report || plain.lines().any(|one| one == *number);
        let foreign: Vec<_> = seen.filter(|number| !allowed(number)).collect();
        assert!(foreign.is_empty(), "{foreign:?} beside {report} and {plain:?}");
    }
}

#[tokio::test]
async fn the_opt_out_runs_in_the_directory_of_the_state_and_says_so() {
    let fixture = plenipo_testkit::Fixture::new();
    let directory = fixture.directory("a dir ä");
    let mut host = Host::new(unsandboxed());
    let uri = format!("file://{}/a%20dir%20%C3%A4", fixture.path().display());
    let state = json!({"sandboxCwd": uri});
    let meta = format!(r#"{{"codex/sandbox-state":{state}}}"#);
    let result = host.call(json!({"command": "pwd"}), &meta).await;
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["enforcement"], "none");
    assert_eq!(text(&result), format!("{}\nenforcement: none", directory.display()));
    let result = host.call(json!({"command": "exit 3"}), "{}").await;
    assert_eq!(text(&result), "exit code 3\nenforcement: none");
    assert_eq!(result["structuredContent"]["enforcement"], "none");
    let result = host.call(json!({"argv": ["/no/such/program"]}), "{}").await;
    assert_eq!(
        text(&result),
        "failed to run `/no/such/program`: No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn a_launcher_is_used_even_where_the_operator_does_without() {
    let launcher = Launcher::new();
    let mut options = launcher.options(&[]);
    options.operator = plenipo_server_workspace::OperatorPolicy::AllowUnsandboxed;
    let mut host = Host::new(options);
    let result = host.call(json!({"command": "true"}), &launcher.meta("{}")).await;
    assert_eq!(result["structuredContent"]["enforcement"]["status"], "enforced");
    assert!(!launcher.recorded("argv").is_empty());
}

#[tokio::test]
async fn calls_at_the_same_time_keep_their_own_authority() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[("FAKE_RECORD", "")]));
    for id in 0..40 {
        let state = format!(r#"{{"n":{id}.0}}"#);
        host.start(id, &json!({"command": "echo $FAKE_STATE"}), &launcher.meta(&state)).await;
    }
    let mut seen = Vec::new();
    for _ in 0..40 {
        let answer = host.answer().await;
        let id = answer["id"].as_i64().unwrap();
        assert_eq!(answer["result"]["structuredContent"]["stdout"], format!("{{\"n\":{id}.0}}\n"));
        seen.push(id);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn additions_that_change_what_a_policy_means_stop_the_server() {
    for name in ["HOME", "TMPDIR", "XDG_DATA_HOME", "PLENIPO_CONFIG", "A=B"] {
        let mut options = options();
        options.additions.push((name.into(), "x".into()));
        let error = Host::new(options).close().await.unwrap_err();
        assert!(matches!(error, ServeError::Additions { .. }), "{name}");
    }
}
