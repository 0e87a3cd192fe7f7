use serde_json::json;

use super::*;

fn authority(meta: serde_json::Value) -> CallAuthority {
    CallAuthority::from_map(meta.as_object().unwrap()).unwrap()
}

fn full() -> CallAuthority {
    authority(json!({
        "codex/sandbox-state": {"a": 1},
        "codex/sandbox-launcher": {"codexExecutable": "/opt/l"},
    }))
}

fn command() -> SandboxedCommand {
    SandboxedCommand::new(&full(), ["sh", "-c", "id; --"], OperatorPolicy::default()).unwrap()
}

#[test]
fn the_command_line_is_the_launchers() {
    let command = command();
    assert_eq!(command.program(), "/opt/l");
    assert_eq!(
        command.args(),
        ["sandbox", "--sandbox-state-json", r#"{"a":1}"#, "--", "sh", "-c", "id; --"]
    );
    assert!(command.is_sandboxed() && command.environment().is_empty());
}

#[test]
fn the_report_descriptor_is_named_before_the_command() {
    assert_eq!(
        command().with_report_fd(9).with_report_fd(3).args()[2..6],
        [r#"{"a":1}"#, "--report-fd", "3", "--"]
    );
}

#[test]
fn no_launcher_no_command_unless_the_operator_opted_out() {
    let state_only = authority(json!({"codex/sandbox-state": {}}));
    let launcher_only = authority(json!({"codex/sandbox-launcher": {"codexExecutable": "/l"}}));
    let none = CallAuthority::absent();
    let refusal = |authority, policy| SandboxedCommand::new(authority, ["id"], policy).unwrap_err();

    let require = OperatorPolicy::RequireLauncher;
    assert_eq!(refusal(&state_only, require), Refusal::NoLauncher);
    assert_eq!(refusal(&none, require), Refusal::NoAuthority);
    assert_eq!(refusal(&launcher_only, require), Refusal::NoState);

    let allow = OperatorPolicy::AllowUnsandboxed;
    for authority in [&state_only, &none] {
        let command = SandboxedCommand::new(authority, ["id", "-u"], allow).unwrap();
        assert!(!command.is_sandboxed());
        assert_eq!(command.program(), "id");
        assert_eq!(command.with_report_fd(3).args(), ["-u"]);
    }
    assert_eq!(refusal(&launcher_only, allow), Refusal::NoState);
    assert!(SandboxedCommand::new(&full(), ["id"], allow).unwrap().is_sandboxed());
}

#[test]
fn a_state_too_long_for_one_argument_is_refused_whatever_the_operator_says() {
    let with_length = |bytes: usize| {
        let filler = "x".repeat(bytes - r#"{"a":""}"#.len());
        authority(json!({
            "codex/sandbox-state": {"a": filler},
            "codex/sandbox-launcher": {"codexExecutable": "/l"},
        }))
    };
    let run = |bytes| {
        SandboxedCommand::new(&with_length(bytes), ["id"], OperatorPolicy::AllowUnsandboxed)
    };
    assert!(run(MAXIMUM_ARGUMENT_BYTES).unwrap().is_sandboxed());
    assert_eq!(
        run(MAXIMUM_ARGUMENT_BYTES + 1).unwrap_err(),
        Refusal::StateTooLong { bytes: 131_072, maximum: 131_071 }
    );
}

#[test]
fn a_command_that_cannot_be_passed_is_refused() {
    let refusal = |argv: Vec<String>| {
        SandboxedCommand::new(&full(), argv, OperatorPolicy::default()).unwrap_err()
    };
    assert_eq!(refusal(vec![]), Refusal::EmptyCommand);
    assert_eq!(refusal(vec![String::new()]), Refusal::EmptyCommand);
    assert_eq!(refusal(vec!["a".into(), "b\0".into()]), Refusal::ArgumentNul { index: 1 });
    assert!(matches!(
        refusal(vec!["a".into(), "x".repeat(131_072)]),
        Refusal::ArgumentTooLong { index: 1, bytes: 131_072, .. }
    ));
}

#[test]
fn only_allowed_variables_are_inherited() {
    let mut inherited: Vec<(String, String)> =
        ALLOWED_ENVIRONMENT.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect();
    for name in ["API_TOKEN", "LD_PRELOAD", "XDG_CONFIG_HOME", "PLENIPO_CONFIG", "path", "PATHS"] {
        inherited.push((name.to_owned(), "secret".to_owned()));
    }
    let command = command().with_environment(inherited);
    let names: Vec<_> = command.environment().keys().map(|name| name.to_str().unwrap()).collect();
    insta::assert_snapshot!(
        names.join(" "),
        @"HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER"
    );
}

#[test]
fn operator_additions_cannot_move_what_a_policy_means() {
    for name in ["HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_", "PLENIPO_CONFIG", "PLENIPO_X=Y"] {
        assert_eq!(
            command().with_additions([(name, "v")]).unwrap_err(),
            Refusal::EnvironmentName { name: name.to_owned() }
        );
    }
    for (name, value) in [("", "v"), ("A=B", "v"), ("A\0", "v"), ("A", "\0")] {
        let refusal = command().with_additions([(name, value)]).unwrap_err();
        assert!(matches!(refusal, Refusal::EnvironmentEntry { .. }), "{refusal}");
    }
    let added = command().with_environment([("PATH", "/bin")]);
    let added = added.with_additions([("PATH", "/opt/bin"), ("CARGO_HOME", "/c")]).unwrap();
    assert_eq!(added.environment().len(), 2);
    assert_eq!(added.environment()[OsStr::new("PATH")], "/opt/bin");
}
