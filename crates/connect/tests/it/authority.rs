use std::sync::Arc;

use plenipo_authority::{
    AuthorityParts, CapturedAuthority, EnvironmentId, SandboxState, ServerReach,
};
use plenipo_connect::{CallRequest, Connection, ErrorKind, Fault};
use plenipo_wire::{Fragment, object};
use tokio::task::JoinSet;

use crate::support::{Fake, request, text};

const OPTED_IN: (&str, &str) =
    ("F_CAPS", r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#);
const CALLS: usize = 10_000;
const WORKERS: usize = 50;

fn state(number: usize) -> String {
    // Spelled so that any re-encoding would show.
    match number % 2 {
        0 => r#"{"z":1.10,"permissionProfile":{"type":"disabled"} ,"n":12345678901234567890}"#,
        _ => r#"{"permissionProfile":{"type":"managed"},"e":1E2,"s":"\u00e9\/","s":-0}"#,
    }
    .to_owned()
}

async fn received(connection: &Connection, state: Option<&str>) -> String {
    let state = state.map(|text| SandboxState::capture(text).unwrap());
    let authority = connection.capture(state).await;
    text(&connection.call(CallRequest::new("line", None, authority)).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_ten_thousand_alternating_calls_carries_its_own_state() {
    let fake = Fake::new("peer", &[OPTED_IN]);
    let connection = Arc::new(fake.start().await.unwrap());
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let connection = Arc::clone(&connection);
        workers.spawn(async move {
            for number in (worker..CALLS).step_by(WORKERS) {
                let number = number / WORKERS + worker;
                let line = received(&connection, Some(&state(number))).await;
                let line = Fragment::parse(&line).unwrap();
                let params = object::member(line.as_raw(), "params").unwrap();
                let meta = object::member(params, "_meta").unwrap();
                for key in ["codex/sandbox-state", "codex/sandbox-state-meta"] {
                    assert_eq!(object::member(meta, key).unwrap().get(), state(number));
                }
                assert_eq!(object::entries(meta).unwrap().len(), 2, "no launcher, nothing else");
            }
        });
    }
    assert_eq!(workers.join_all().await.len(), WORKERS);
    connection.shut_down().await;
}

#[tokio::test]
async fn a_server_that_did_not_opt_in_gets_no_state() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let line = received(&connection, Some(&state(0))).await;
    assert!(!line.contains("sandbox") && !line.contains("_meta"), "{line}");
    connection.shut_down().await;
}

#[tokio::test]
async fn authority_captured_for_something_else_is_refused_and_nothing_sent() {
    let fake = Fake::new("peer", &[OPTED_IN]);
    let connection = fake.start().await.unwrap();
    let mut parts = AuthorityParts::new(EnvironmentId::local(), ServerReach::LocalStdio);
    parts.opt_in = false;
    let not_opted_in = CapturedAuthority::capture(parts);
    let mut parts = AuthorityParts::new(EnvironmentId::new("remote"), ServerReach::LocalStdio);
    parts.opt_in = true;
    let elsewhere = CapturedAuthority::capture(parts);
    for authority in [not_opted_in, elsewhere] {
        let error = connection.call(CallRequest::new("line", None, authority)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("authority changed"), "{error}");
    }
    connection.shut_down().await;
    assert!(fake.params("tools/call").is_empty());
}

#[tokio::test]
async fn caller_cannot_forge_reserved_meta() {
    let fake = Fake::new("peer", &[OPTED_IN]);
    let connection = fake.start().await.unwrap();
    for forged in [
        r#"{"progressToken":1}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"x"}"#,
        r#"{"io.modelcontextprotocol\/clientInfo":{}}"#,
    ] {
        let mut call = request(&connection, "line", "{}").await;
        call.meta = Some(Fragment::parse(forged).unwrap());
        let error = connection.call(call).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Attach(_)), "{forged}: {error}");
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
    let mut call = request(&connection, "line", "{}").await;
    let stale = r#"{"b":1.10,"codex/sandbox-launcher":{"codexExecutable":"/evil"},"a":{"x":1}}"#;
    call.meta = Some(Fragment::parse(stale).unwrap());
    let line = text(&connection.call(call).await.unwrap());
    assert!(line.contains(r#""_meta":{"b":1.10,"a":{"x":1}}"#), "{line}");
    connection.shut_down().await;
    assert_eq!(fake.params("tools/call").len(), 1);
}
