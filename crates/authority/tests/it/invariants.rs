//! The eight promises about authority, one test or more each.

use std::fs;

use plenipo_authority::{
    AttachError, AuthorityGuard, AuthorityPart, CallAuthority, CallAuthorityError,
    CapturedAuthority, CredentialPin, EnvironmentId, LAUNCHER_KEY, OperatorPolicy, Refusal,
    STATE_ALIAS_KEY, STATE_KEY, SandboxState, SandboxedCommand, ServerReach,
};

use crate::fixture::{LauncherFile, authority, members, parts, raw};

fn keys(meta: &str) -> Vec<String> {
    members(meta).into_iter().map(|(key, _)| key).collect()
}

fn call(meta: &str) -> Result<CallAuthority, CallAuthorityError> {
    CallAuthority::from_meta(&raw(meta))
}

#[test]
fn a1_a_retry_compares_all_five_and_names_each_that_differs() {
    let launcher = LauncherFile::new();
    let mut first = parts("{}");
    first.launcher = Some(launcher.verified());
    first.credential = Some(CredentialPin::new("store:client-1"));
    let captured = CapturedAuthority::capture(first.clone());
    captured.ensure_same(&CapturedAuthority::capture(first.clone())).unwrap();

    let differs = |change: &dyn Fn(&mut plenipo_authority::AuthorityParts)| {
        let mut other = first.clone();
        change(&mut other);
        let other = CapturedAuthority::capture(other);
        assert_ne!(captured.digest(), other.digest());
        captured.ensure_same(&other).unwrap_err().parts
    };
    launcher.replace();
    let other_file = launcher.verified();

    let state = SandboxState::capture("{ }").unwrap();
    assert_eq!(differs(&|it| it.state = Some(state.clone())), [AuthorityPart::State]);
    assert_eq!(differs(&|it| it.state = None), [AuthorityPart::State]);
    assert_eq!(
        differs(&|it| it.environment = EnvironmentId::new("box")),
        [AuthorityPart::Environment]
    );
    assert_eq!(differs(&|it| it.launcher = None), [AuthorityPart::Launcher]);
    assert_eq!(differs(&|it| it.launcher = Some(other_file.clone())), [AuthorityPart::Launcher]);
    assert_eq!(differs(&|it| it.opt_in = false), [AuthorityPart::OptIn]);
    assert_eq!(differs(&|it| it.credential = None), [AuthorityPart::Credential]);
    assert_eq!(
        differs(&|it| {
            it.opt_in = false;
            it.credential = Some(CredentialPin::new("store:client-2"));
        }),
        [AuthorityPart::OptIn, AuthorityPart::Credential]
    );
}

#[test]
fn a1_every_send_of_a_call_carries_what_was_captured() {
    let mut policy = parts(r#"{"policy":"first"}"#);
    let captured = CapturedAuthority::capture(policy.clone());
    policy.state = Some(SandboxState::capture(r#"{"policy":"second"}"#).unwrap());
    let sends: Vec<_> = (0..2).map(|_| captured.attach(None, &[]).unwrap()).collect();
    assert_eq!(sends[0].get(), sends[1].get());
    assert!(sends[0].get().contains("first"));
}

#[test]
fn a1_a_launcher_replaced_after_capture_fails_the_send() {
    let launcher = LauncherFile::new();
    let mut parts = parts("{}");
    parts.launcher = Some(launcher.verified());
    let captured = CapturedAuthority::capture(parts);
    captured.attach(None, &[]).unwrap();
    launcher.replace();
    assert!(matches!(captured.attach(None, &[]), Err(AttachError::Launcher { .. })));
    fs::remove_file(launcher.path()).unwrap();
    assert!(matches!(captured.attach(None, &[]), Err(AttachError::Launcher { .. })));
}

#[test]
fn a2_a_state_is_carried_as_it_was_written() {
    let state = r#"{ "n":1E400,"z":-0.0 , "s":"\u00e9\/é","d":1,"d":2}"#;
    let attached = authority(state).attach(None, &[]).unwrap();
    assert_eq!(attached.get(), format!(r#"{{"{STATE_KEY}":{state},"{STATE_ALIAS_KEY}":{state}}}"#));
    assert_eq!(CallAuthority::from_meta(&attached).unwrap().state().unwrap().as_str(), state);
}

#[test]
fn a3_both_names_carry_identical_text_and_only_after_an_opt_in() {
    let attached = authority("{\n\"a\": 1}").attach(None, &[]).unwrap();
    let members = members(attached.get());
    assert_eq!(members[0], (STATE_KEY.to_owned(), "{ \"a\": 1}".to_owned()));
    assert_eq!(members[1], (STATE_ALIAS_KEY.to_owned(), "{ \"a\": 1}".to_owned()));
    let mut parts = parts("{}");
    parts.opt_in = false;
    assert_eq!(CapturedAuthority::capture(parts).attach(None, &[]).unwrap().get(), "{}");
}

#[test]
fn a4_only_an_opted_in_local_stdio_server_gets_the_launcher() {
    let launcher = LauncherFile::new();
    let sent = |reach, opt_in| {
        let mut parts = parts("{}");
        parts.launcher = Some(launcher.verified());
        (parts.reach, parts.opt_in) = (reach, opt_in);
        let attached = CapturedAuthority::capture(parts).attach(None, &[]).unwrap();
        keys(attached.get()).contains(&LAUNCHER_KEY.to_owned())
    };
    assert!(sent(ServerReach::LocalStdio, true));
    assert!(!sent(ServerReach::LocalStdio, false));
    assert!(!sent(ServerReach::Remote, true));
    assert!(!sent(ServerReach::Remote, false));
}

#[test]
fn a5_stale_entries_go_and_unrelated_ones_stay_in_order() {
    let stale = raw(
        r#"{"z":1,"codex/sandbox-launcher":{"codexExecutable":"/old"},"a":{"codex/sandbox-state":1},
            "codex/sandbox-state":{"old":1},"codex\u002fsandbox-state-meta":{"old":1}}"#,
    );
    let attached = authority("{}").attach(Some(&stale), &[]).unwrap();
    assert_eq!(keys(attached.get()), ["z", "a", STATE_KEY, STATE_ALIAS_KEY]);
    assert!(!attached.get().contains("old"));
    assert_eq!(members(attached.get())[1].1, r#"{"codex/sandbox-state":1}"#);
}

#[test]
fn a6_absence_is_not_permission() {
    let refused = |meta: &str| {
        let authority = call(meta).unwrap();
        SandboxedCommand::new(&authority, ["id"], OperatorPolicy::default()).unwrap_err()
    };
    assert_eq!(refused("{}"), Refusal::NoAuthority);
    assert_eq!(refused(r#"{"codex/sandbox-state":{}}"#), Refusal::NoLauncher);
    assert_eq!(refused(r#"{"codex/sandbox-launcher":{"codexExecutable":"/l"}}"#), Refusal::NoState);
}

#[test]
fn a6_the_opt_out_never_sees_a_malformed_or_differing_authority() {
    for meta in [
        r#"{"codex/sandbox-state":null}"#,
        r#"{"codex/sandbox-state":{"a":1},"codex/sandbox-state-meta":{"a":2}}"#,
        r#"{"codex/sandbox-state":{},"codex/sandbox-state":{}}"#,
        r#"{"codex/sandbox-state":{},"codex/sandbox-launcher":null}"#,
        r#"{"codex/sandbox-state":{},"codex/sandbox-launcher":{"codexExecutable":"relative"}}"#,
    ] {
        assert!(call(meta).is_err(), "no value to give to SandboxedCommand: {meta}");
    }
}

#[test]
fn a7_what_arguments_are_called_does_not_make_them_authority() {
    let meta = r#"{"arguments":{"codex/sandbox-state":{},"codex/sandbox-launcher":
        {"codexExecutable":"/l"}},"sandbox-state":{},"codexExecutable":"/l"}"#;
    assert_eq!(call(meta).unwrap(), CallAuthority::absent());
}

#[test]
fn a8_what_outlives_a_call_is_not_reused_under_another_authority() {
    let meta = |state: &str, launcher: &str| {
        let launcher = format!(r#""{LAUNCHER_KEY}":{{"codexExecutable":"{launcher}"}}"#);
        call(&format!(r#"{{"{STATE_KEY}":{state},{launcher}}}"#)).unwrap()
    };
    let made = meta(r#"{"a":1}"#, "/l");
    let guard = AuthorityGuard::retain(&made);
    guard.ensure_same(&made).unwrap();
    guard.ensure_same(&meta(r#"{"a":1}"#, "/l")).unwrap();

    let parts = |other: &CallAuthority| guard.ensure_same(other).unwrap_err().parts;
    assert_eq!(parts(&meta(r#"{"a": 1}"#, "/l")), [AuthorityPart::State]);
    assert_eq!(parts(&meta(r#"{"a":1}"#, "/m")), [AuthorityPart::Launcher]);
    let without_launcher = call(r#"{"codex/sandbox-state":{"a":1}}"#).unwrap();
    assert_eq!(parts(&without_launcher), [AuthorityPart::Launcher]);
    assert_eq!(parts(&CallAuthority::absent()), [AuthorityPart::State, AuthorityPart::Launcher]);
    assert!(AuthorityGuard::retain(&CallAuthority::absent()).ensure_same(&made).is_err());
}
