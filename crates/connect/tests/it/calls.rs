use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plenipo_connect::call::ProgressUpdate;
use plenipo_connect::{Canceller, ErrorKind, Fault};
use plenipo_testkit::Deadline;
use plenipo_wire::Fragment;
use tokio::task::JoinSet;

use crate::support::{Fake, call, request, said, text, until};

const MANY: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_interleaved_answers_reach_their_calls() {
    let fake = Fake::new("peer", &[]);
    let connection = Arc::new(fake.start().await.unwrap());
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let connection = Arc::clone(&connection);
        calls.spawn(async move {
            let arguments = format!(r#"{{"token":"call-{number}","of":100}}"#);
            assert_eq!(said(&connection, "hold", &arguments).await, format!("call-{number}"));
        });
    }
    assert_eq!(calls.join_all().await.len(), 100);
    connection.shut_down().await;
}

#[tokio::test]
async fn ids_unique_inflight_and_fresh_on_retry() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    for _ in 0..3 {
        said(&connection, "line", "{}").await;
    }
    call(&connection, "rpc_error", r#"{"code":-32000}"#).await.unwrap_err();
    said(&connection, "line", "{}").await;
    connection.shut_down().await;
    let entries = fake.log("in");
    let ids: Vec<_> = entries
        .iter()
        .filter_map(|entry| plenipo_wire::object::member(entry, "id"))
        .map(|id| id.get().to_owned())
        .filter(|id| id != "null")
        .collect();
    assert!(ids.len() >= 8);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{ids:?}");
    assert!(ids.iter().all(|id| id.parse::<i64>().is_ok()), "{ids:?}");
}

#[tokio::test]
async fn stdio_framing() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let mut forged = request(&connection, "line", "{}").await;
    forged.tool = "line".to_owned();
    let text_with_break = "{\"a\":\n1,\"b\":\"x\\ny\",\r\n\"c\":[\n]}";
    forged.arguments = Some(Fragment::parse(text_with_break).unwrap());
    forged.meta = Some(Fragment::parse("{\n\"trace\":\r\n1.10}").unwrap());
    let line = text(&connection.call(forged).await.unwrap());
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.contains(r#""arguments":{"a": 1,"b":"x\ny",  "c":[ ]}"#), "{line}");
    assert!(line.contains(r#""_meta":{"trace":1.10}"#), "{line}");
    connection.shut_down().await;
    assert_eq!(fake.params("tools/call").len(), 1);
}

#[tokio::test]
async fn stderr_noise_is_not_error() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "stderr", "{}").await, "fine");
    assert!(Deadline::poll_until(MANY, || connection.stderr_tail().len() == 100));
    assert!(Deadline::poll_until(MANY, || fake.seen.stderr.lock().unwrap().len() == 100));
    assert!(fake.seen.warnings().is_empty());
    connection.shut_down().await;
}

#[tokio::test]
async fn stdio_cancel_then_late_reply_ignored() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let mut silent = request(&connection, "silent", "{}").await;
    silent.timeout = Some(Duration::from_millis(200));
    let error = connection.call(silent.clone()).await.unwrap_err();
    insta::assert_snapshot!(error, @"call tool `silent` of server `fake`: no answer within 0.2 s");
    assert_eq!(error.kind(), ErrorKind::Timeout);

    let canceller = Canceller::new();
    silent.timeout = None;
    silent.cancel = Some(canceller.cancellation());
    let (cancelled, ()) = tokio::join!(connection.call(silent.clone()), async {
        until(|| fake.params("tools/call").len() == 2).await;
        canceller.cancel("Ctrl-C");
    });
    let error = cancelled.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    insta::assert_snapshot!(error, @"call tool `silent` of server `fake`: cancelled: Ctrl-C");

    silent.cancel = None;
    let dropped = tokio::time::timeout(Duration::from_millis(200), connection.call(silent)).await;
    assert!(dropped.is_err());

    assert!(
        said(&connection, "line", "{}").await.contains("tools/call"),
        "late replies do no harm"
    );
    let notices = fake.params("notifications/cancelled");
    assert_eq!(notices.len(), 3, "{notices:?}");
    assert_eq!(notices[0], r#"{"requestId": 3, "reason": "no answer within 0.2 s"}"#);
    assert_eq!(notices[1], r#"{"requestId": 4, "reason": "cancelled: Ctrl-C"}"#);
    assert_eq!(notices[2], r#"{"requestId": 5, "reason": "the caller went away"}"#);
    assert!(fake.seen.warnings().is_empty(), "{:?}", fake.seen.warnings());
    connection.shut_down().await;
}

#[tokio::test]
async fn progress_tokens_unique_and_stop() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let mut steps = request(&connection, "steps", r#"{"steps":3,"every":0}"#).await;
        let into = Arc::clone(&seen);
        steps.progress = Some(Arc::new(move |update: &ProgressUpdate| {
            into.lock().unwrap().push(update.clone())
        }));
        assert_eq!(text(&connection.call(steps).await.unwrap()), "done");
    }
    said(&connection, "line", "{}").await;
    let seen = seen.lock().unwrap().clone();
    let shown: Vec<_> = seen.iter().map(|update| (update.progress, update.total)).collect();
    let once = [(0.0, Some(3.0)), (1.0, Some(3.0)), (2.0, Some(3.0))];
    assert_eq!(shown, [once, once].concat(), "nothing after the end");
    assert_eq!(seen[0].message.as_deref(), Some("step 0"));
    let tokens: HashSet<_> = fake.log("token").iter().map(|entry| entry.get().to_owned()).collect();
    assert_eq!(tokens.len(), 2);
    connection.shut_down().await;
}

#[tokio::test]
async fn progress_resets_but_max_holds() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let limit = Duration::from_millis(400);
    let with_limit = async |tool: &str, arguments: &str, watched: bool| {
        let mut call = request(&connection, tool, arguments).await;
        call.timeout = Some(limit);
        call.max_total = Some(limit * 4);
        if watched {
            call.progress = Some(Arc::new(|_: &ProgressUpdate| {}));
        }
        let begin = Instant::now();
        (connection.call(call).await, begin.elapsed())
    };
    let (long, took) = with_limit("steps", r#"{"steps":8,"every":0.1}"#, true).await;
    assert_eq!(text(&long.unwrap()), "done");
    assert!(took > limit);

    let (endless, took) = with_limit("forever", r#"{"every":0.05}"#, true).await;
    let error = endless.unwrap_err();
    assert!(matches!(error.fault(), Fault::TimedOut { total: true, .. }), "{error}");
    assert!(took >= limit * 4 && took < limit * 12, "{took:?}");

    let (stuck, took) = with_limit("stuck", r#"{"every":0.05}"#, true).await;
    let error = stuck.unwrap_err();
    assert!(matches!(error.fault(), Fault::TimedOut { total: false, .. }), "{error}");
    assert!(took < limit * 4, "progress that does not grow extends nothing");
    connection.shut_down().await;
}

#[tokio::test]
async fn tool_error_vs_protocol_error() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let outcome = call(&connection, "tool_error", "{}").await.unwrap();
    assert!(outcome.is_error());
    assert_eq!(text(&outcome), "broken");
    let error = call(&connection, "rpc_error", r#"{"code":-32602}"#).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    insta::assert_snapshot!(
        error,
        @"call tool `rpc_error` of server `fake`: the server answered with error -32602 (invalid params): no"
    );
    let error = call(&connection, "nothing", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::BadAnswer { .. }));
    connection.shut_down().await;
}

#[tokio::test]
async fn error_code_table() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let mut table = Vec::new();
    for code in [-32700, -32602, -32020, -32021, -32022, -32002, -32042, -32010, 7] {
        let arguments = format!("{{\"code\":{code}}}");
        let error = call(&connection, "rpc_error", &arguments).await.unwrap_err();
        let Fault::Peer(peer) = error.fault() else { panic!("{error}") };
        assert_eq!(peer.code, code);
        assert_eq!(peer.data.as_ref().unwrap().as_str(), r#"{"why": "because"}"#);
        table.push(peer.to_string());
    }
    insta::assert_snapshot!(table.join("\n"), @"
    the server answered with error -32700 (parse error): no
    the server answered with error -32602 (invalid params): no
    the server answered with error -32020 (header mismatch): no
    the server answered with error -32021 (missing required client capability): no
    the server answered with error -32022 (unsupported protocol version): no
    the server answered with error -32002 (resource not found): no
    the server answered with error -32042 (URL elicitation required): no
    the server answered with error -32010: no
    the server answered with error 7: no
    ");
    connection.shut_down().await;
}

#[tokio::test]
async fn unknown_result_type_is_error_not_empty_success() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "typed", r#"{"type":"complete"}"#).await, "half");
    for (value, shown) in
        [("\"later\"", "later"), ("\"input_required\"", "input_required"), ("3", "3")]
    {
        let arguments = format!("{{\"type\":{value}}}");
        let error = call(&connection, "typed", &arguments).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::ResultType { found } if found == shown), "{error}");
    }
    connection.shut_down().await;
}

#[tokio::test]
async fn unknown_fields_survive() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let outcome = call(&connection, "fields", "{}").await.unwrap();
    let exact = r#"{"content":[],"messages":[1.10,-0,1E2],"z":{"b":1,"a":12345678901234567890}}"#;
    assert_eq!(outcome.result().get(), exact);
    connection.shut_down().await;
}

#[tokio::test]
async fn a_second_answer_is_ignored_and_a_stray_one_warned_about() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "double", "{}").await, "first");
    assert!(said(&connection, "line", "{}").await.contains("line"));
    assert_eq!(fake.seen.warnings(), ["it answers a request that was never sent (id 99999)"]);
    connection.shut_down().await;
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_and_no_other() {
    let mut fake = Fake::new("peer", &[]);
    fake.options.max_message_bytes = 100_000;
    let connection = fake.start().await.unwrap();
    let (huge, hold) = tokio::join!(call(&connection, "huge", r#"{"size":300000}"#), async {
        said(&connection, "hold", r#"{"token":"t","of":1}"#).await
    });
    let error = huge.unwrap_err();
    insta::assert_snapshot!(error, @"call tool `huge` of server `fake`: the answer is too long (`max_message_bytes`)");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("100000 bytes"));
    assert_eq!(hold, "t");
    assert!(said(&connection, "line", "{}").await.contains("line"));
    connection.shut_down().await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "line", "[1]").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let mut none = request(&connection, "line", "{}").await;
    none.arguments = None;
    let line = text(&connection.call(none).await.unwrap());
    assert!(!line.contains("arguments"), "{line}");
    connection.shut_down().await;
    assert_eq!(fake.params("tools/call").len(), 1);
}

#[tokio::test]
async fn the_child_gets_its_own_environment_and_directory() {
    let mut fake = Fake::new("peer", &[("ONLY_THIS", "1")]);
    fake.command.current_dir("/usr");
    let connection = fake.start().await.unwrap();
    let names = said(&connection, "env", "{}").await;
    let own = ["F_LOG", "F_MARKER", "ONLY_THIS", "PATH", "PYTHONDONTWRITEBYTECODE"];
    let foreign: Vec<_> = names
        .split(' ')
        .filter(|name| !own.contains(name) && !["LC_CTYPE", "PWD", "_"].contains(name))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!(said(&connection, "cwd", "{}").await, "/usr");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_server_that_does_not_read_for_a_while_gets_whole_frames_in_the_end() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let big = format!(r#"{{"token":"{}","of":1}}"#, "x".repeat(300_000));
    let mut blocked = request(&connection, "hold", &big).await;
    blocked.timeout = Some(Duration::from_millis(300));
    let (dozed, ()) = tokio::join!(said(&connection, "doze", r#"{"seconds":1.2}"#), async {
        until(|| fake.params("tools/call").len() == 1).await;
        let error = connection.call(blocked.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        let dropped = tokio::time::timeout(Duration::from_millis(100), connection.call(blocked));
        assert!(dropped.await.is_err());
    });
    assert_eq!(dozed, "awake");
    assert!(said(&connection, "line", "{}").await.contains("line"));
    connection.shut_down().await;
    assert_eq!(fake.params("tools/call").len(), 4);
    assert_eq!(fake.params("notifications/cancelled").len(), 2);
}

#[tokio::test]
async fn cancelling_works_while_the_tools_are_being_listed() {
    let fake = Fake::new("peer", &[("F_LIST", "mute")]);
    let connection = fake.start().await.unwrap();
    let canceller = Canceller::new();
    let mut waiting = request(&connection, "line", "{}").await;
    waiting.cancel = Some(canceller.cancellation());
    let mut behind = request(&connection, "line", "{}").await;
    behind.timeout = Some(Duration::from_millis(200));
    let (cancelled, ()) = tokio::join!(connection.call(waiting), async {
        until(|| !fake.params("tools/list").is_empty()).await;
        let error = connection.call(behind).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::NoAnswer { .. }), "its own limit holds: {error}");
        canceller.cancel("enough");
    });
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    connection.shut_down().await;
}

#[tokio::test]
async fn odd_notices_batches_and_json_that_is_no_message_harm_no_call() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "notices", "{}").await, "batched");
    assert!(said(&connection, "line", "{}").await.contains("line"));
    assert_eq!(fake.seen.warnings(), ["it sends JSON that is no message: 1"]);
    until(|| fake.log("answer").len() == 1).await;
    connection.shut_down().await;
}
