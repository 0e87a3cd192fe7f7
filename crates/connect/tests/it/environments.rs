//! Servers in environments, and authority that is switched while calls are made.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use plenipo_authority::{EnvironmentId, SandboxState, VerifiedLauncher};
use plenipo_connect::environment::{Environment, Quoting};
use plenipo_connect::{
    CallRequest, Endpoint, Fault, LauncherProvider, LauncherSource, Server, ServerName,
    StdioCommand,
};
use plenipo_testkit::{Deadline, processes_with_marker};
use plenipo_wire::Fragment;
use proptest::prelude::*;

use crate::support::{Fake, text, until};

const OPTED_IN: (&str, &str) =
    ("F_CAPS", r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#);

/// Words as a server's program and arguments can hold them.
fn words() -> impl Strategy<Value = Vec<OsString>> {
    let byte = prop_oneof![
        4 => any::<u8>().prop_filter("no NUL", |byte| *byte != 0),
        1 => prop::sample::select(&b"'\"\\$`\n\r\t *?[]{}()<>|&;!#~=-\x80\xff"[..]),
    ];
    let word = prop::collection::vec(byte, 0..24).prop_map(OsString::from_vec);
    prop::collection::vec(word, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// As `ssh` does it: joined, and read again by a shell.
    #[test]
    fn every_word_survives_a_posix_shell(words in words()) {
        let mut server = StdioCommand::new("printf");
        server.args(["%s\\0"]).args(&words).args(["end"]);
        let mut command = StdioCommand::new("sh");
        command.args(["-c"]);
        for bare in [true, false] {
            let place = Environment::new(EnvironmentId::new("box"), command.clone(), Quoting::Posix);
            let place = if bare { place.without_watchdog() } else { place };
            let bound = place.bind(&server).unwrap();
            // The watchdog ends the group that it is in.
            #[expect(clippy::disallowed_methods, reason = "the shell that reads the words")]
            let mut command = Command::new(bound.program());
            command.args(bound.arguments()).process_group(0).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let stdin = child.stdin.take();
            let said = child.wait_with_output().unwrap();
            drop(stdin);
            prop_assert!(said.status.success(), "{:?}", said);
            let wanted: Vec<u8> =
                words.iter().flat_map(|word| [word.as_bytes(), &b"\0"[..]].concat()).collect();
            prop_assert_eq!(said.stdout, [&wanted[..], &b"end\0"[..]].concat());
        }
    }
}

#[tokio::test]
async fn a_server_elsewhere_gets_its_state_and_never_a_launcher() {
    let mut fake = Fake::new("peer", &[OPTED_IN]);
    let launcher = VerifiedLauncher::verify(&fake.launcher()).unwrap();
    fake.options.launcher =
        Arc::new(LauncherProvider::new(LauncherSource::Verified(launcher.clone())));
    for (id, wanted) in [("local", Some(&launcher)), ("box", None)] {
        fake.options.environment = EnvironmentId::new(id);
        let connection = fake.start().await.unwrap();
        let state = SandboxState::capture(r#"{"n":1}"#).unwrap();
        let authority = connection.capture(Some(state)).await;
        assert_eq!(authority.launcher(), wanted, "{id}");
        assert_eq!(authority.environment().as_str(), id);
        let sent = text(&connection.call(CallRequest::new("line", None, authority)).await.unwrap());
        assert_eq!(sent.contains("codex/sandbox-launcher"), wanted.is_some(), "{sent}");
        assert!(sent.contains(r#""codex/sandbox-state":{"n":1}"#), "{sent}");
        let nothing = connection.capture(None).await;
        let sent = text(&connection.call(CallRequest::new("line", None, nothing)).await.unwrap());
        assert!(!sent.contains("codex/sandbox"), "not selected, no state: {sent}");
        connection.shut_down().await;
    }
}

/// The policy is switched by one task while others make calls: each call carries the policy that was in force when it
/// was accepted, in every copy, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_policy_switches_leave_each_call_its_own_policy() {
    const SWITCHES: u64 = 10_000;
    const CALLERS: usize = 8;
    let fake = Fake::new("peer", &[OPTED_IN]);
    let connection = Arc::new(fake.start().await.unwrap());
    let (switch, policy) = tokio::sync::watch::channel(0_u64);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (connection, policy) = (Arc::clone(&connection), policy.clone());
        callers.spawn(async move {
            let mut seen = Vec::new();
            while policy.has_changed().is_ok() {
                let accepted = *policy.borrow();
                let state = SandboxState::capture(&format!(r#"{{"n":{accepted}}}"#)).unwrap();
                let authority = connection.capture(Some(state)).await;
                tokio::task::yield_now().await;
                let mut request = CallRequest::new("line", None, authority);
                // What a caller kept of an earlier policy is replaced.
                let stale = r#"{"codex/sandbox-state":{"n":-1},"kept":true}"#;
                request.meta = Some(Fragment::parse(stale).unwrap());
                let sent = text(&connection.call(request).await.unwrap());
                let wanted = format!(
                    r#""codex/sandbox-state":{{"n":{accepted}}},"codex/sandbox-state-meta":{{"n":{accepted}}}"#
                );
                assert!(sent.contains(&wanted) && !sent.contains(r#"{"n":-1}"#), "{sent}");
                seen.push(accepted);
            }
            seen
        });
    }
    for number in 1..=SWITCHES {
        switch.send(number).unwrap();
        if number % 8 == 0 {
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
    }
    drop(switch);
    let (mut calls, mut policies) = (0, std::collections::BTreeSet::new());
    while let Some(seen) = callers.join_next().await {
        let seen = seen.unwrap();
        calls += seen.len();
        policies.extend(seen);
    }
    assert!(calls > 100 && policies.len() > 20, "{calls} calls under {} policies", policies.len());
    connection.shut_down().await;
}

/// The server of `fake` in environment `id`, whose command sets a variable with this name.
fn place(fake: &Fake, id: &str, variable: &str) -> Endpoint {
    let mut prefix = StdioCommand::new("/usr/bin/env");
    prefix.args([format!("{variable}={}", fake.marker)]).environment(fake.command.variables());
    let mut server = StdioCommand::new(fake.command.program());
    server.args(fake.command.arguments());
    let place = Environment::new(EnvironmentId::new(id), prefix, Quoting::Argv);
    Endpoint::from(place.without_watchdog().bind(&server).unwrap())
}

/// A configuration is read again while calls are made: what was sent ends where it was sent, what comes goes to the new
/// place, and an authority of the old one is worth nothing there.
#[tokio::test]
async fn a_changed_environment_makes_a_new_generation_and_calls_end_on_the_old_one() {
    let fake = Fake::new("peer", &[OPTED_IN]);
    let options = |id: &str| {
        let mut options = fake.options.clone();
        options.environment = EnvironmentId::new(id);
        options
    };
    let name = ServerName::new("fake").unwrap();
    let server = Server::open(name, place(&fake, "a", "PLACE_A"), options("a")).await.unwrap();
    let state = || Some(SandboxState::capture(r#"{"n":1}"#).unwrap());
    let call = async |tool: &str, arguments: &str| {
        let authority = server.capture(state()).await?;
        let arguments = Fragment::parse(arguments).unwrap();
        let called = server.call(CallRequest::new(tool, Some(arguments), authority)).await?;
        Ok::<_, plenipo_connect::ConnectError>(text(&called))
    };
    assert!(call("env", "{}").await.unwrap().contains("PLACE_A"));
    // Nothing that a server is: the connection stays.
    let mut other = options("a");
    other.tool_timeout *= 2;
    assert_eq!(server.change(place(&fake, "a", "PLACE_A"), other).await.unwrap(), 1);
    let captured = server.capture(state()).await.unwrap();
    let old = format!("PLACE_A={}", fake.marker);
    let (slept, changed) = tokio::join!(call("doze", r#"{"seconds":1}"#), async {
        until(|| fake.params("tools/call").len() == 2).await;
        let changed = server.change(place(&fake, "b", "PLACE_B"), options("b")).await;
        assert!(!processes_with_marker(&old).is_empty(), "a call is still there");
        changed
    });
    assert_eq!((slept.unwrap().as_str(), changed.unwrap()), ("awake", 2));
    assert_eq!(server.generation(), 2);
    let seen = call("env", "{}").await.unwrap();
    assert!(seen.contains("PLACE_B") && !seen.contains("PLACE_A"), "{seen}");
    let refused = server.call(CallRequest::new("env", None, captured)).await.unwrap_err();
    let Fault::AuthorityChanged { actual, .. } = refused.fault() else { panic!("{refused}") };
    assert!(actual.contains("environment"), "{actual}");
    // The same environment by another command is another place too.
    assert_eq!(server.change(place(&fake, "b", "PLACE_C"), options("b")).await.unwrap(), 3);
    assert!(call("env", "{}").await.unwrap().contains("PLACE_C"));
    // One that nobody gets to changes nothing.
    let nowhere = Endpoint::from(StdioCommand::new("/nonexistent/command"));
    server.change(nowhere, options("c")).await.unwrap_err();
    assert!(call("env", "{}").await.unwrap().contains("PLACE_C"));
    let gone = || processes_with_marker(&old).is_empty();
    let limit = std::time::Duration::from_secs(20);
    assert!(Deadline::poll_until(limit, gone), "the old one is shut down");
    server.shut_down().await;
    assert!(server.change(place(&fake, "d", "PLACE_D"), options("d")).await.is_err(), "for good");
    assert!(Deadline::poll_until(limit, || fake.processes() == 0));
}
