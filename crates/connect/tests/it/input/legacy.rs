//! Requests of legacy servers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plenipo_connect::input::{InputAnswer, InputKind, InputOffer, Root};
use plenipo_connect::{Canceller, ErrorKind, Fault, InputFault, Operation};
use plenipo_wire::object;

use super::puppet::{Puppet, accept};
use crate::support::{Fake, call, request, said, until};
use crate::web::{Answer, Web, event};

const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"John"}}}}}"#;
const URL: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","elicitationId":"e","url":"https://example.com/"}}"#;

#[tokio::test]
async fn a_legacy_servers_questions_reach_the_same_handler() {
    let mut fake = Fake::new("asks", &[]);
    let mut offer = InputOffer::ELICITATION;
    (offer.roots, offer.sampling) = (true, true);
    let puppet = Arc::new(Puppet::new(offer, |request| {
        Some(Ok(match request.kind {
            InputKind::Form { .. } => accept("{}"),
            InputKind::Url { .. } => InputAnswer::Accept(None),
            InputKind::Roots => InputAnswer::Roots(vec![Root::new("file:///srv", None)]),
            _ => InputAnswer::Decline,
        }))
    }));
    fake.options.input = Some(Arc::clone(&puppet) as _);
    let connection = fake.start().await.unwrap();
    let caps = fake.log("client_caps");
    insta::assert_snapshot!(
        object::member(&caps[0], "caps").unwrap().get(),
        @r#"{"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}"#
    );
    let mut answers = Vec::new();
    for question in [
        FORM,
        URL,
        r#"{"method":"roots/list"}"#,
        r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#,
        r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#,
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"file:///x"}}"#,
        r#"{"method":"ping"}"#,
        r#"{"method":"vendor/strange","params":{}}"#,
    ] {
        answers.push(said(&connection, "ask", question).await);
    }
    insta::assert_snapshot!(answers.join("\n"), @r#"
    {"result": {"action": "accept", "content": {"name": "John"}}}
    {"result": {"action": "accept"}}
    {"result": {"roots": [{"uri": "file:///srv"}]}}
    {"error": {"code": -1, "message": "the message was rejected"}}
    {"error": {"code": -32602, "message": "`sampling/createMessage` with tools was not offered"}}
    {"error": {"code": -32602, "message": "its URL may not be opened: it is neither http nor https"}}
    {"result": {}}
    {"error": {"code": -32601, "message": "Method not found"}}
    "#);
    let seen = puppet.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|request| request.server.as_str() == "fake"));
    assert_eq!(seen[0].during, Some(Operation::Call { tool: "ask".to_owned() }));
    connection.shut_down().await;
}

#[tokio::test]
async fn url_elicitation_never_prefetched() {
    // Whoever fetched the URL would be seen here.
    let web = Web::legacy(|_| None).await;
    let mut fake = Fake::new("asks", &[]);
    let puppet = Arc::new(Puppet::new(InputOffer::ELICITATION, |_| Some(Ok(InputAnswer::Decline))));
    fake.options.input = Some(Arc::clone(&puppet) as _);
    let connection = fake.start().await.unwrap();
    let url = web.url();
    let question = URL.replace("https://example.com/", &url);
    let answer = said(&connection, "ask", &question).await;
    assert_eq!(answer, r#"{"result": {"action": "decline"}}"#);
    let seen = puppet.seen.lock().unwrap().clone();
    assert!(matches!(&seen[0].kind, InputKind::Url { url: shown, .. } if shown.as_str() == url));
    connection.shut_down().await;
    assert_eq!(web.connections(), 0);
}

#[tokio::test]
async fn without_a_handler_nothing_is_declared_and_questions_are_refused() {
    let fake = Fake::new("asks", &[]);
    let connection = fake.start().await.unwrap();
    let caps = fake.log("client_caps");
    assert_eq!(object::member(&caps[0], "caps").unwrap().get(), "{}");
    for question in [FORM, URL, r#"{"method":"roots/list"}"#] {
        let answer = said(&connection, "ask", question).await;
        assert!(answer.contains("-32601"), "{answer}");
    }
    connection.shut_down().await;
    let warnings = fake.seen.warnings();
    assert_eq!(warnings.len(), 1, "once for all of them: {warnings:?}");
    assert!(
        warnings[0].contains("it asks a question (`elicitation/create`) that is refused"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_cancelled_call_and_a_withdrawn_question_end_the_prompt() {
    let mut fake = Fake::new("asks", &[]);
    let silent = Arc::new(Puppet::new(InputOffer::ELICITATION, |_| None));
    fake.options.input = Some(Arc::clone(&silent) as _);
    let connection = fake.start().await.unwrap();
    let canceller = Canceller::new();
    let mut asks = request(&connection, "ask", FORM).await;
    asks.cancel = Some(canceller.cancellation());
    let (ended, ()) = tokio::join!(connection.call(asks), async {
        until(|| silent.asked() == 1).await;
        canceller.cancel("enough");
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    until(|| silent.dropped.load(Ordering::SeqCst) == 1).await;

    assert_eq!(said(&connection, "drop", "{}").await, "unanswered");
    until(|| silent.dropped.load(Ordering::SeqCst) == 2).await;
    connection.shut_down().await;
}

#[tokio::test]
async fn a_slow_person_does_not_time_the_call_out() {
    let mut fake = Fake::new("asks", &[]);
    let mut slow = Puppet::new(InputOffer::ELICITATION, |_| Some(Ok(accept("{}"))));
    slow.delay = Duration::from_secs(3);
    fake.options.input = Some(Arc::new(slow));
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let mut asks = request(&connection, "ask", FORM).await;
    (asks.timeout, asks.max_total) = (Some(Duration::from_secs(2)), Some(Duration::from_secs(2)));
    assert!(connection.call(asks).await.is_ok());
    connection.shut_down().await;
}

#[tokio::test]
async fn a_url_that_has_to_be_opened_first_is_and_the_call_repeated() {
    let mut fake = Fake::new("asks", &[]);
    let puppet =
        Arc::new(Puppet::new(InputOffer::ELICITATION, |_| Some(Ok(InputAnswer::Accept(None)))));
    fake.options.input = Some(Arc::clone(&puppet) as _);
    let connection = fake.start().await.unwrap();
    let (text, ()) = tokio::join!(said(&connection, "urls", "{}"), async {
        until(|| puppet.asked() == 1).await;
        assert_eq!(said(&connection, "done", "{}").await, "done");
    });
    assert_eq!(text, "opened");
    assert_eq!(fake.methods().iter().filter(|method| *method == "tools/call").count(), 3);
    connection.shut_down().await;

    let mut fake = Fake::new("asks", &[]);
    let declines = Puppet::new(InputOffer::ELICITATION, |_| Some(Ok(InputAnswer::Decline)));
    fake.options.input = Some(Arc::new(declines));
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "urls", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Input(InputFault::UrlDeclined)));
    assert_eq!(error.kind(), ErrorKind::Refused);
    connection.shut_down().await;

    let fake = Fake::new("asks", &[]);
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "urls", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(error) if error.code == -32042));
    assert!(error.hint().unwrap().contains("terminal"));
    connection.shut_down().await;
}

#[tokio::test]
async fn a_legacy_result_cannot_ask_for_input() {
    let mut fake = Fake::new("asks", &[]);
    fake.options.input = Some(Puppet::accepting("{}"));
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "needs_input", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ResultType { .. }), "{error}");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_question_on_a_calls_own_stream_is_answered_by_a_post() {
    let question = r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":7}}}}}"#;
    let mut web = Web::legacy(move |seen| {
        (seen.method().as_deref() == Some("tools/call"))
            .then(|| Answer::stream(&event(question)).hold())
    })
    .await;
    let puppet = Puppet::accepting("{}");
    web.options.input = Some(Arc::clone(&puppet) as _);
    let connection = web.connect().await.unwrap();
    tokio::select! {
        _ = call(&connection, "hi", "{}") => panic!("the stream is held"),
        () = until(|| web.requests().iter().any(|seen| seen.body.contains("\"q1\""))) => {}
    }
    let answer = web.requests().into_iter().find(|seen| seen.body.contains("\"q1\"")).unwrap();
    assert_eq!(
        answer.body,
        r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"accept","content":{"n":7}}}"#
    );
    assert_eq!(
        puppet.seen.lock().unwrap()[0].during,
        Some(Operation::Call { tool: "hi".to_owned() })
    );
    connection.shut_down().await;
}
