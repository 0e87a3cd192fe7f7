//! Being told about changes, over both transports and in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plenipo_connect::changes::List;
use plenipo_connect::{
    Change, ChangeFilter, ConnectOptions, Connection, ErrorKind, Fault, Subscription,
};
use plenipo_wire::{RawValue, object};

use crate::support::{Fake, call, request, said, text, until};
use crate::web::{Answer, Seen, Web, event};

const MANY: Duration = Duration::from_secs(10);
const CAPS: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}"#;
const TOOLS: Change = Change::List(List::Tools);
const PROMPTS: Change = Change::List(List::Prompts);

fn modern(variables: &[(&str, &str)]) -> Fake {
    let all: Vec<_> = [("F_ERA", "modern"), ("F_CAPS", CAPS)]
        .into_iter()
        .chain(variables.iter().copied())
        .collect();
    Fake::new("peer", &all)
}

async fn next(subscription: &mut Subscription) -> Option<Change> {
    tokio::time::timeout(MANY, subscription.next()).await.expect("a change in time")
}

/// Whatever was announced before has arrived, and nothing of it is waiting.
async fn assert_quiet(connection: &Connection, subscription: &mut Subscription) {
    said(connection, "line", "{}").await;
    let waited = tokio::time::timeout(Duration::from_millis(20), subscription.next()).await;
    assert!(waited.is_err(), "{waited:?}");
}

fn wanted(params: &RawValue) -> String {
    object::member(params, "notifications").unwrap().get().replace(": ", ":").replace(", ", ",")
}

#[tokio::test]
async fn listen_filter_wire() {
    let fake = modern(&[]);
    let connection = fake.start().await.unwrap();
    let filter = ChangeFilter::lists().with_uris(["file:///b".to_owned(), "file:///a".to_owned()]);
    let all = connection.subscribe(filter.clone()).await.unwrap();
    assert_eq!(all.granted(), filter);
    let tools = connection.subscribe(ChangeFilter::tools()).await.unwrap();
    let sent = fake.params("subscriptions/listen");
    let parse = |text: &String| serde_json::from_str::<Box<RawValue>>(text).unwrap();
    let sent: Vec<_> = sent.iter().map(parse).collect();
    assert_eq!(
        wanted(&sent[0]),
        r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a","file:///b"]}"#
    );
    assert_eq!(wanted(&sent[1]), r#"{"toolsListChanged":true}"#, "nothing that was not asked for");
    for params in &sent {
        let entries = object::member(params, "_meta").unwrap().get();
        assert!(entries.contains("io.modelcontextprotocol/protocolVersion"), "{entries}");
    }
    drop((all, tools));
    until(|| fake.params("notifications/cancelled").len() == 2).await;
    connection.shut_down().await;
}

#[tokio::test]
async fn ack_subset_handled() {
    let fake = modern(&[("F_LISTEN", "subset")]);
    let connection = fake.start().await.unwrap();
    let filter = ChangeFilter::lists().with_uris(["file:///a".to_owned()]);
    let mut some = connection.subscribe(filter).await.unwrap();
    assert_eq!(some.granted(), ChangeFilter::tools());
    said(&connection, "announce", r#"{"what":"tools/list_changed","to":0}"#).await;
    assert_eq!(next(&mut some).await, Some(TOOLS));
    connection.shut_down().await;
    assert_eq!(next(&mut some).await, None, "it ends with the connection");

    let refusing = modern(&[("F_LISTEN", "refuse")]);
    let connection = refusing.start().await.unwrap();
    let error = connection.subscribe(ChangeFilter::tools()).await.unwrap_err();
    insta::assert_snapshot!(error, @"subscribe to changes of server `fake`: the server answered with error -32601 (method not found): method not found");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(said(&connection, "line", "{}").await.contains("line"));
    connection.shut_down().await;
    assert_eq!(refusing.params("subscriptions/listen").len(), 1, "it is not asked again");
}

#[tokio::test]
async fn a_server_that_forgets_to_acknowledge_is_waited_for_or_heard() {
    let mut fake = modern(&[("F_LISTEN", "silent")]);
    fake.options.start_timeout = Duration::from_secs(2);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let error = connection.subscribe(ChangeFilter::tools()).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::NoAnswer { .. }), "{error}");
    let (subscription, said) = tokio::join!(connection.subscribe(ChangeFilter::tools()), async {
        until(|| fake.params("subscriptions/listen").len() == 2).await;
        said(&connection, "announce", r#"{"what":"tools/list_changed","to":0}"#).await
    });
    assert_eq!(said, "announced");
    assert_eq!(next(&mut subscription.unwrap()).await, Some(TOOLS));
    connection.shut_down().await;
}

#[tokio::test]
async fn two_listens_demultiplexed_on_stdio() {
    let fake = modern(&[]);
    let connection = fake.start().await.unwrap();
    let mut first = connection.subscribe(ChangeFilter::lists()).await.unwrap();
    let filter = ChangeFilter::tools().with_uris(["file:///a".to_owned()]);
    let mut second = connection.subscribe(filter).await.unwrap();
    said(&connection, "announce", r#"{"what":"tools/list_changed","to":1,"times":500}"#).await;
    assert_eq!(next(&mut second).await, Some(TOOLS));
    assert_quiet(&connection, &mut first).await;
    assert_quiet(&connection, &mut second).await;
    said(&connection, "announce", r#"{"what":"prompts/list_changed","to":0}"#).await;
    assert_eq!(next(&mut first).await, Some(PROMPTS));
    let updated = r#"{"what":"resources/updated","to":1,"params":{"uri":"file:///a"}}"#;
    said(&connection, "announce", updated).await;
    assert_eq!(next(&mut second).await, Some(Change::Resource { uri: "file:///a".to_owned() }));
    // Named by nobody, or by a subscription that is over.
    said(&connection, "announce", r#"{"what":"tools/list_changed"}"#).await;
    assert_quiet(&connection, &mut first).await;
    drop(second);
    until(|| fake.params("notifications/cancelled").len() == 1).await;
    assert_quiet(&connection, &mut first).await;
    connection.shut_down().await;
}

fn acknowledge(seen: &Seen) -> String {
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},"notifications":{{"toolsListChanged":true}}}}}}"#,
        seen.id()
    ))
}

#[tokio::test]
async fn listen_abrupt_reconnects_and_relists() {
    let asked = Arc::new(AtomicUsize::new(0));
    let web = Web::modern({
        let asked = Arc::clone(&asked);
        move |seen| {
            if seen.method()? != "subscriptions/listen" {
                return None;
            }
            let stream = Answer::stream(&acknowledge(seen));
            Some(match asked.fetch_add(1, Ordering::Relaxed) {
                0 => stream.close(),
                1 => Answer::empty(503),
                2 => stream.hold(),
                _ => stream.bytes(event(&seen.result(r#"{"resultType":"complete"}"#))),
            })
        }
    })
    .await;
    let connection = web.connect().await.unwrap();
    connection.catalog().await.unwrap();
    let mut subscription = connection.subscribe(ChangeFilter::tools()).await.unwrap();
    assert_eq!(web.count("tools/list"), 1);
    assert_eq!(next(&mut subscription).await, Some(TOOLS), "something may have been missed");
    connection.catalog().await.unwrap();
    assert_eq!(web.count("tools/list"), 2);
    let listens = web.of("subscriptions/listen");
    assert_eq!(listens.len(), 3);
    let ids: std::collections::HashSet<_> = listens.iter().map(Seen::id).collect();
    assert_eq!(ids.len(), 3, "each attempt has an id of its own");
    assert!(listens.iter().all(|seen| seen.header("Mcp-Method") == Some("subscriptions/listen")));
    assert!(listens.iter().all(|seen| seen.header("Last-Event-ID").is_none()));
    drop(subscription);
    until(|| web.count("CLOSED") == 1).await;
    assert_eq!(web.count("notifications/cancelled"), 0, "over HTTP the stream is just closed");

    let mut ended = connection.subscribe(ChangeFilter::tools()).await.unwrap();
    assert_eq!(next(&mut ended).await, None, "an end in good order is the end");
    assert_eq!(web.count("subscriptions/listen"), 4);
    connection.shut_down().await;
}

#[tokio::test]
async fn server_cancel_of_call_ignored() {
    let fake = modern(&[]);
    let connection = fake.start().await.unwrap();
    let mut subscription = connection.subscribe(ChangeFilter::tools()).await.unwrap();
    assert_eq!(said(&connection, "withdraw", "{}").await, "withdrawn", "the call is answered");
    assert_eq!(next(&mut subscription).await, Some(TOOLS), "the subscription is asked for again");
    assert_eq!(fake.params("subscriptions/listen").len(), 2);
    assert_eq!(said(&connection, "complete", "{}").await, "completed");
    assert_eq!(next(&mut subscription).await, None);
    connection.shut_down().await;
}

#[tokio::test]
async fn notification_beats_ttl() {
    let fake = modern(&[("F_TTL", "3600000")]);
    let connection = fake.start().await.unwrap();
    let mut subscription = connection.subscribe(ChangeFilter::tools()).await.unwrap();
    let before = connection.catalog().await.unwrap();
    connection.catalog().await.unwrap();
    assert_eq!(fake.params("tools/list").len(), 1, "it is fresh");
    said(&connection, "announce", r#"{"what":"tools/list_changed","to":0,"grow":["more"]}"#).await;
    assert_eq!(next(&mut subscription).await, Some(TOOLS));
    let after = connection.catalog().await.unwrap();
    assert_eq!(after.tools().count(), before.tools().count() + 1);
    assert!(after.revision() > before.revision());
    connection.shut_down().await;
}

#[tokio::test]
async fn a_storm_of_notices_leads_to_one_listing_and_one_event() {
    let fake = modern(&[]);
    let connection = fake.start().await.unwrap();
    let mut watch = connection.watch_catalog().await.unwrap();
    let before = watch.current().tools().count();
    let storm = r#"{"what":"tools/list_changed","to":0,"times":3000,"grow":["more"]}"#;
    let (after, said) = tokio::join!(watch.next(), said(&connection, "announce", storm));
    assert_eq!(said, "announced");
    assert_eq!(after.unwrap().tools().count(), before + 1);
    let listings = fake.params("tools/list").len();
    assert!(listings <= 4, "{listings} listings");
    assert!(connection.revisions().tools >= 3000);
    connection.shut_down().await;
}

#[tokio::test]
async fn a_legacy_server_is_heard_unasked_and_subscribed_to_by_resource() {
    let fake = Fake::new("peer", &[("F_CAPS", CAPS)]);
    let connection = fake.start().await.unwrap();
    let filter = ChangeFilter::tools().with_uris(["file:///a".to_owned(), "file:///no".to_owned()]);
    let mut subscription = connection.subscribe(filter).await.unwrap();
    let granted = ChangeFilter::tools().with_uris(["file:///a".to_owned()]);
    assert_eq!(subscription.granted(), granted);
    said(&connection, "announce", r#"{"what":"tools/list_changed"}"#).await;
    assert_eq!(next(&mut subscription).await, Some(TOOLS));
    let updated = r#"{"what":"resources/updated","params":{"uri":"file:///a/part"}}"#;
    said(&connection, "announce", updated).await;
    let part = Change::Resource { uri: "file:///a/part".to_owned() };
    assert_eq!(next(&mut subscription).await, Some(part));
    said(&connection, "announce", r#"{"what":"prompts/list_changed"}"#).await;
    assert_quiet(&connection, &mut subscription).await;
    drop(subscription);
    until(|| fake.params("resources/unsubscribe").len() == 1).await;
    connection.shut_down().await;
    assert!(fake.params("subscriptions/listen").is_empty());
}

#[tokio::test]
async fn log_level_only_when_asked() {
    for era in ["modern", "legacy"] {
        let fake = Fake::new("peer", &[("F_ERA", era)]);
        let connection = fake.start().await.unwrap();
        let unasked = said(&connection, "line", "{}").await;
        assert!(!unasked.contains("logLevel"), "{unasked}");
        let mut asked = request(&connection, "line", "{}").await;
        asked.log_level = Some(plenipo_connect::call::LogLevel::Warning);
        let line = text(&connection.call(asked).await.unwrap());
        let sent = line.contains(r#""io.modelcontextprotocol/logLevel":"warning""#);
        assert_eq!(sent, era == "modern", "{line}");
        connection.shut_down().await;
        assert!(fake.params("logging/setLevel").is_empty());
    }
}

#[tokio::test]
async fn an_older_server_is_told_each_level_once_and_called_whether_it_takes_it_or_not() {
    use plenipo_connect::call::LogLevel;
    for (capabilities, takes, told) in [
        (r#"{"tools":{},"logging":{}}"#, "yes", &["warning", "debug", "warning"][..]),
        (r#"{"tools":{},"logging":{}}"#, "no", &["warning", "debug", "warning"]),
        (r#"{"tools":{}}"#, "yes", &[]),
    ] {
        let fake = Fake::new("peer", &[("F_CAPS", capabilities), ("F_LOGS", takes)]);
        let connection = fake.start().await.unwrap();
        let levels = [LogLevel::Warning, LogLevel::Warning, LogLevel::Debug, LogLevel::Warning];
        for level in levels {
            let mut asked = request(&connection, "line", "{}").await;
            asked.log_level = Some(level);
            let line = text(&connection.call(asked).await.unwrap());
            assert!(!line.contains("logLevel"), "an older server is told apart: {line}");
        }
        said(&connection, "line", "{}").await;
        connection.shut_down().await;
        let sent: Vec<_> = told.iter().map(|level| format!(r#"{{"level": "{level}"}}"#)).collect();
        assert_eq!(fake.params("logging/setLevel"), sent, "{capabilities} {takes}");
        let refused =
            fake.seen.warnings().iter().filter(|it| it.contains("does not take the level")).count();
        assert_eq!(refused, usize::from(takes == "no"), "warned once");
    }
}

#[tokio::test]
async fn stdio_never_starts_oauth() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    for code in [401, 403, -32001] {
        let arguments = format!("{{\"code\":{code}}}");
        let error = call(&connection, "rpc_error", &arguments).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "an answer like any other: {error}");
        assert_eq!(error.hint(), None);
    }
    connection.shut_down().await;
    let asked = fake.methods();
    assert_eq!(asked.iter().filter(|method| *method == "tools/call").count(), 3, "asked once each");
    assert_eq!(ConnectOptions::default().environment.as_str(), "local");
}
