//! Servers that end by themselves.

use std::time::Duration;

use plenipo_authority::SandboxState;
use plenipo_connect::changes::List;
use plenipo_connect::{
    CallRequest, Change, ChangeFilter, ConnectError, Endpoint, ErrorKind, Fault, RestartPolicy,
    Server, ServerName,
};
use plenipo_testkit::Deadline;
use plenipo_wire::Fragment;

use crate::support::{Fake, text, until};

const MANY: Duration = Duration::from_secs(20);

async fn open(fake: &Fake) -> Server {
    let name = ServerName::new("fake").unwrap();
    let endpoint = Endpoint::from(fake.command.clone());
    Server::open(name, endpoint, fake.options.clone()).await.unwrap()
}

async fn call(server: &Server, tool: &str, arguments: &str) -> Result<String, ConnectError> {
    let authority = server.capture(None).await?;
    let arguments = Fragment::parse(arguments).unwrap();
    let outcome = server.call(CallRequest::new(tool, Some(arguments), authority)).await?;
    Ok(text(&outcome))
}

#[tokio::test]
async fn stdio_crash_restarts_and_relistens() {
    let fake = Fake::new("peer", &[("F_ERA", "modern")]);
    let server = open(&fake).await;
    let mut subscription = server.subscribe(ChangeFilter::tools()).await.unwrap();
    assert_eq!(server.generation(), 1);
    let held = call(&server, "silent", "{}");
    let (lost, died) = tokio::join!(held, async {
        until(|| fake.params("tools/call").len() == 1).await;
        call(&server, "die", r#"{"code":9}"#).await
    });
    for error in [lost.unwrap_err(), died.unwrap_err()] {
        assert!(matches!(error.fault(), Fault::Exited { how } if how.code() == Some(9)), "{error}");
    }
    assert!(call(&server, "line", "{}").await.unwrap().contains("line"));
    assert_eq!(server.generation(), 2);
    let change = tokio::time::timeout(MANY, subscription.next()).await.unwrap();
    assert_eq!(change, Some(Change::List(List::Tools)), "something may have been missed");
    assert_eq!(fake.params("subscriptions/listen").len(), 2);
    let announce = r#"{"what":"tools/list_changed","to":0}"#;
    assert_eq!(call(&server, "announce", announce).await.unwrap(), "announced");
    assert_eq!(subscription.next().await, Some(Change::List(List::Tools)), "it is heard again");
    assert_eq!(fake.params("tools/call").len(), 4, "nothing was sent twice");
    server.shut_down().await;
    assert_eq!(subscription.next().await, None);
    assert_eq!(call(&server, "line", "{}").await.unwrap_err().kind(), ErrorKind::Transport);
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[tokio::test]
async fn a_server_that_ends_too_often_is_left_alone() {
    let fake = Fake::new("peer", &[]);
    let server = open(&fake).await;
    for generation in 1..=6 {
        assert!(call(&server, "die", r#"{"code":3}"#).await.is_err());
        assert_eq!(server.generation(), generation);
    }
    let error = call(&server, "line", "{}").await.unwrap_err();
    insta::assert_snapshot!(error, @"start server `fake`: it ended 5 times within 60 s, last because the server exited with code 3");
    assert_eq!(fake.params("initialize").len(), 6);
    server.shut_down().await;
}

#[tokio::test]
async fn a_server_that_is_to_stay_away_stays_away() {
    let mut fake = Fake::new("peer", &[]);
    fake.options.restart = RestartPolicy::Never;
    let server = open(&fake).await;
    for _ in 0..2 {
        let error = call(&server, "die", r#"{"code":3}"#).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Exited { .. }), "{error}");
    }
    assert_eq!((server.generation(), fake.params("initialize").len()), (1, 1));
}

#[tokio::test]
async fn authority_captured_before_a_restart_is_compared_with_what_holds_after_it() {
    let opted_in = r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#;
    let fake = Fake::new("peer", &[("F_CAPS", opted_in), ("F_CAPS_LATER", r#"{"tools":{}}"#)]);
    let server = open(&fake).await;
    let state = || Some(SandboxState::capture(r#"{"a":1}"#).unwrap());
    let before = server.capture(state()).await.unwrap();
    assert!(call(&server, "die", r#"{"code":3}"#).await.is_err());
    let error = server.call(CallRequest::new("line", None, before)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    insta::assert_snapshot!(error, @"call tool `line` of server `fake`: authority changed: it was captured for the server as it was before it was started again, the server's is another sandbox opt-in");
    let now = server.capture(state()).await.unwrap();
    assert!(server.call(CallRequest::new("line", None, now)).await.is_ok());
    assert_eq!(fake.params("tools/call").len(), 2, "the refused one was not sent");

    let same = Fake::new("peer", &[("F_CAPS", opted_in)]);
    let server = open(&same).await;
    let before = server.capture(state()).await.unwrap();
    assert!(call(&server, "die", r#"{"code":3}"#).await.is_err());
    assert!(server.call(CallRequest::new("line", None, before)).await.is_ok(), "nothing changed");
}

#[tokio::test]
async fn a_server_that_is_dropped_leaves_nothing() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1"), ("F_STUBBORN", "1")]);
    let server = open(&fake).await;
    assert_eq!(fake.processes(), 2);
    drop(server);
    until(|| fake.processes() == 0).await;
}
