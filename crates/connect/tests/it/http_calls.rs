use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plenipo_authority::SandboxState;
use plenipo_connect::{CallRequest, Canceller, ErrorKind, Fault, HttpFault};
use plenipo_wire::Fragment;

use crate::support::{call, request, said, until};
use crate::web::{Answer, Seen, Web, event};

const JSON: &str = "Content-Type: application/json\r\n";
const PING: &str = r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#;
const SAMPLING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#;

fn is_call(seen: &Seen) -> bool {
    seen.method().as_deref() == Some("tools/call")
}

fn session(seen: &Seen, id: &str, capabilities: &str) -> Option<Answer> {
    let result = format!(
        r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"web"}}}}"#
    );
    let head = format!("{JSON}Mcp-Session-Id: {id}\r\n");
    (seen.method()? == "initialize").then(|| Answer::new(200, &head, &seen.result(&result)))
}

#[tokio::test]
async fn accepts_json_and_sse_reply() {
    for modern in [false, true] {
        let special =
            |seen: &Seen| is_call(seen).then(|| Answer::stream(&event(&seen.says("streamed"))));
        let web = match modern {
            true => Web::modern(special).await,
            false => Web::legacy(special).await,
        };
        let connection = web.connect().await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "streamed");
        for seen in web.requests() {
            assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
            assert_eq!(seen.header("content-type"), Some("application/json"));
            assert!(!seen.body.contains('\n'));
        }
    }
}

#[tokio::test]
async fn modern_server_request_is_rejected() {
    let web = Web::modern(|seen| {
        let events =
            [PING.to_owned(), SAMPLING.to_owned(), seen.says("done")].map(|data| event(&data));
        is_call(seen).then(|| Answer::chunked(&events.concat()))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "done");
    connection.shut_down().await;
    let warnings = web.seen.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("`ping`"), "{warnings:?}");
    assert_eq!(web.log(), ["server/discover", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn modern_client_never_posts_response() {
    let web = Web::modern(|seen| {
        let asks = [PING.to_owned(), SAMPLING.to_owned()].map(|data| event(&data)).concat();
        let answer = match seen.method()?.as_str() {
            // Asked before the era is known, and after.
            "server/discover" => seen.result(
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#,
            ),
            "tools/call" => seen.says("done"),
            _ => return None,
        };
        Some(Answer::chunked(&format!("{asks}{}", event(&answer))))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "done");
    connection.shut_down().await;
    for seen in web.requests() {
        assert_eq!(seen.verb, "POST");
        assert!(seen.method().is_some() && seen.id() != "null", "one request: {}", seen.body);
        assert!(seen.body.starts_with('{'), "no batch: {}", seen.body);
    }
    assert_eq!(web.requests().len(), 3);
}

#[tokio::test]
async fn questions_of_a_legacy_server_are_answered_by_a_post() {
    let web = Web::legacy(|seen| {
        let events =
            [PING.to_owned(), SAMPLING.to_owned(), seen.says("done")].map(|data| event(&data));
        session(seen, "s", r#"{"tools":{}}"#)
            .or_else(|| is_call(seen).then(|| Answer::chunked(&events.concat())))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "done");
    connection.shut_down().await;
    let mut answers: Vec<_> = web.of("POST");
    answers.retain(|seen| seen.method().is_none());
    answers.sort_by_key(|seen| seen.body.len());
    let bodies: Vec<_> = answers.iter().map(|seen| seen.body.as_str()).collect();
    assert_eq!(
        bodies,
        [
            r#"{"jsonrpc":"2.0","id":"q","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#
        ]
    );
    assert!(answers.iter().all(|seen| seen.header("mcp-session-id") == Some("s")));
    assert_eq!(web.log().last().unwrap(), "DELETE", "after the answers");
}

#[tokio::test]
async fn a_lost_session_is_renewed_once_for_everybody_and_the_call_repeated() {
    let alive = std::sync::Arc::new(Mutex::new(String::from("s-1")));
    let web = Web::legacy({
        let alive = std::sync::Arc::clone(&alive);
        let next = AtomicUsize::new(1);
        move |seen| {
            if seen.method().as_deref() == Some("initialize") {
                let id = format!("s-{}", next.fetch_add(1, Ordering::Relaxed));
                *alive.lock().unwrap() = id.clone();
                return session(seen, &id, r#"{"tools":{}}"#);
            }
            let known = seen.header("mcp-session-id").is_none_or(|id| id == *alive.lock().unwrap());
            (!known).then(|| Answer::new(404, JSON, r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#))
        }
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    "gone".clone_into(&mut alive.lock().unwrap());
    let (a, b, c) = tokio::join!(
        call(&connection, "hi", "{}"),
        call(&connection, "hi", "{}"),
        call(&connection, "hi", "{}")
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(web.count("initialize"), 2);
    assert_eq!(web.count("notifications/initialized"), 2);
    let ids: HashSet<_> = web.of("tools/call").iter().map(Seen::id).collect();
    assert_eq!(ids.len(), 4, "a repetition that was not processed keeps its id");
    said(&connection, "hi", "{}").await;
    assert_eq!(web.count("tools/list"), 2, "a new session may have other tools");
    assert_eq!(web.count("initialize"), 2);
}

#[tokio::test]
async fn a_400_that_names_the_session_is_a_lost_session_too() {
    for (message, calls) in [("Bad Request: No valid session ID provided", 2), ("Bad arguments", 1)]
    {
        let refused = AtomicUsize::new(0);
        let web = Web::legacy(move |seen| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":-32000,"message":"{message}"}},"id":null}}"#
            );
            session(seen, "s", r#"{"tools":{}}"#).or_else(|| {
                let first = is_call(seen) && refused.fetch_add(1, Ordering::Relaxed) == 0;
                first.then(|| Answer::new(400, JSON, &body))
            })
        })
        .await;
        let connection = web.connect().await.unwrap();
        assert_eq!(call(&connection, "hi", "{}").await.is_ok(), calls == 2);
        assert_eq!(web.count("tools/call"), calls);
    }
}

#[tokio::test]
async fn a_session_that_does_not_last_is_an_error_not_a_loop() {
    let web = Web::legacy(|seen| {
        session(seen, "s", r#"{"tools":{}}"#).or_else(|| is_call(seen).then(|| Answer::empty(404)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::SessionLost)), "{error}");
    assert_eq!((web.count("tools/call"), web.count("initialize")), (2, 2));
}

#[tokio::test]
async fn a_renewed_session_with_another_opt_in_fails_the_call() {
    let starts = AtomicUsize::new(0);
    let web = Web::legacy(move |seen| {
        if seen.method()? == "initialize" {
            let first = starts.fetch_add(1, Ordering::Relaxed) == 0;
            let capabilities = match first {
                true => r#"{"tools":{}}"#,
                false => r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#,
            };
            return session(seen, if first { "a" } else { "b" }, capabilities);
        }
        (is_call(seen) && seen.header("mcp-session-id") == Some("a")).then(|| Answer::empty(404))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::AuthorityChanged { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(web.count("tools/call"), 1);
    assert!(call(&connection, "hi", "{}").await.is_err());
}

#[tokio::test]
async fn modern_stream_break_never_resumes() {
    let web = Web::modern(|seen| {
        is_call(seen).then(|| Answer::stream("id: e1\nretry: 1\ndata: \n\n").close())
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::StreamEnded)), "{error}");
    assert_eq!(web.log(), ["server/discover", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn nonidempotent_call_not_silently_reissued() {
    let torn = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{";
    let broken = [
        Answer::default().close(),
        Answer::default().bytes(torn).close(),
        Answer::default().bytes("HTTP/1.1 200 OK\r\nContent-").close(),
        Answer::stream("data: {\"jsonrpc\":").close(),
        Answer::empty(502),
        Answer::empty(429),
    ];
    for answer in broken {
        for modern in [false, true] {
            let answer = answer.clone();
            let special = move |seen: &Seen| is_call(seen).then(|| answer.clone());
            let web = match modern {
                true => Web::modern(special).await,
                false => Web::legacy(special).await,
            };
            let connection = web.connect().await.unwrap();
            let error = call(&connection, "hi", "{}").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
            assert_eq!(web.count("tools/call"), 1);
        }
    }
}

#[tokio::test]
async fn a_legacy_stream_is_resumed_after_its_last_event() {
    let resumed = AtomicUsize::new(0);
    let held = Mutex::new(None::<Seen>);
    let web = Web::legacy(move |seen| {
        if is_call(seen) {
            *held.lock().unwrap() = Some(seen.clone());
            return Some(Answer::stream("id: e1\nretry: 1\ndata: \n\n").close());
        }
        if seen.verb != "GET" {
            return None;
        }
        let asked = held.lock().unwrap().clone()?;
        Some(match resumed.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::stream("id: e2\ndata: \n\n").close(),
            _ => Answer::stream(&format!("id: e3\n{}", event(&asked.says("resumed")))),
        })
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "resumed");
    let gets = web.of("GET");
    let from: Vec<_> = gets.iter().map(|seen| seen.header("last-event-id").unwrap()).collect();
    assert_eq!(from, ["e1", "e2"]);
    assert!(gets.iter().all(|seen| seen.header("accept") == Some("text/event-stream")));
    assert_eq!(web.count("tools/call"), 1);
}

#[tokio::test]
async fn a_legacy_stream_that_cannot_be_resumed_is_an_error() {
    let web = Web::legacy(|seen| {
        is_call(seen).then(|| Answer::stream("id: e1\nretry: 1\ndata: \n\n").close())
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::StreamEnded)), "{error}");
    assert_eq!(web.count("GET"), 1);
}

#[tokio::test]
async fn http_cancel_closes_stream_only() {
    let web = Web::modern(|seen| is_call(seen).then(|| Answer::stream(": wait\n\n").hold())).await;
    let connection = web.connect().await.unwrap();
    connection.catalog().await.unwrap();
    let canceller = Canceller::new();
    let mut asked = request(&connection, "hi", "{}").await;
    asked.cancel = Some(canceller.cancellation());
    let (outcome, ()) = tokio::join!(connection.call(asked), async {
        until(|| web.count("tools/call") == 1).await;
        canceller.cancel("enough");
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled);
    until(|| web.count("CLOSED") == 1).await;
    connection.shut_down().await;
    assert_eq!(web.log(), ["server/discover", "tools/list", "tools/call", "CLOSED"]);
}

#[tokio::test]
async fn a_dropped_or_late_modern_call_closes_its_stream() {
    let web = Web::modern(|seen| is_call(seen).then(|| Answer::default().hold())).await;
    let connection = web.connect().await.unwrap();
    connection.catalog().await.unwrap();
    let mut asked = request(&connection, "hi", "{}").await;
    asked.timeout = Some(Duration::from_millis(100));
    let error = connection.call(asked).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    until(|| web.count("CLOSED") == 1).await;
    let asked = request(&connection, "hi", "{}").await;
    tokio::select! {
        _ = connection.call(asked) => panic!("an answer"),
        () = until(|| web.count("tools/call") == 2) => {}
    }
    until(|| web.count("CLOSED") == 2).await;
    assert_eq!(web.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn a_legacy_call_is_cancelled_by_a_notification() {
    let web = Web::legacy(|seen| is_call(seen).then(|| Answer::stream(": wait\n\n").hold())).await;
    let connection = web.connect().await.unwrap();
    connection.catalog().await.unwrap();
    let mut asked = request(&connection, "hi", "{}").await;
    asked.timeout = Some(Duration::from_millis(100));
    assert_eq!(connection.call(asked).await.unwrap_err().kind(), ErrorKind::Timeout);
    connection.shut_down().await;
    let cancelled = web.of("notifications/cancelled");
    let id = web.of("tools/call")[0].id();
    assert_eq!(cancelled.len(), 1);
    let params = cancelled[0].params().unwrap().get().to_owned();
    assert!(params.contains(&format!("\"requestId\":{id}")), "{params}");
}

#[tokio::test]
async fn server_cancel_of_call_ignored() {
    let web = Web::modern(|seen| {
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
            seen.id()
        );
        let events = [cancel, seen.says("done all the same")].map(|data| event(&data));
        is_call(seen).then(|| Answer::stream(&events.concat()))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "done all the same");
}

#[tokio::test]
async fn progress_arrives_on_the_stream_and_extends_the_deadline() {
    let web = Web::modern(|seen| {
        let params = seen.params()?;
        let token = plenipo_wire::object::member(&params, "_meta")
            .and_then(|meta| plenipo_wire::object::member(meta, "progressToken"))?
            .get()
            .to_owned();
        let step = |n: u32| {
            event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
            ))
        };
        let events = [step(1), step(1), step(2), event(&seen.says("done"))];
        is_call(seen).then(|| Answer::stream(&events.concat()))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let steps = std::sync::Arc::new(Mutex::new(Vec::new()));
    let mut asked = request(&connection, "hi", "{}").await;
    asked.progress = Some(std::sync::Arc::new({
        let steps = std::sync::Arc::clone(&steps);
        move |update| steps.lock().unwrap().push(update.progress)
    }));
    connection.call(asked).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
}

#[tokio::test]
async fn an_opted_in_server_behind_a_url_gets_both_states_and_never_a_launcher() {
    let web = Web::legacy(|seen| {
        session(seen, "s", r#"{"tools":{},"experimental":{"codex/sandbox-state-meta":{}}}"#)
    })
    .await;
    let mut web = web;
    let source = plenipo_connect::LauncherSource::Path("/bin/sh".into());
    web.options.launcher = std::sync::Arc::new(plenipo_connect::LauncherProvider::new(source));
    let connection = web.connect().await.unwrap();
    let state = r#"{"permissionProfile":{"type":"disabled"},"n":1.10}"#;
    let authority = connection.capture(Some(SandboxState::capture(state).unwrap())).await;
    assert!(authority.launcher().is_none());
    let meta = r#"{"codex/sandbox-launcher":{"codexExecutable":"/evil"},"keep":1}"#;
    let mut asked = CallRequest::new("hi", None, authority);
    asked.meta = Some(Fragment::parse(meta).unwrap());
    connection.call(asked).await.unwrap();
    let sent = web.of("tools/call")[0].params().unwrap().get().to_owned();
    assert!(sent.contains(&format!("\"codex/sandbox-state\":{state}")), "{sent}");
    assert!(sent.contains(&format!("\"codex/sandbox-state-meta\":{state}")), "{sent}");
    assert!(!sent.contains("launcher") && sent.contains("\"keep\":1"), "{sent}");
    assert!(web.seen.warnings().is_empty(), "a launcher is not even looked for");
}

#[tokio::test]
async fn answers_of_many_calls_are_never_crossed_and_connections_are_kept() {
    for streamed in [false, true] {
        let web = Web::modern(move |seen| {
            let params = seen.params()?;
            let arguments = plenipo_wire::object::member(&params, "arguments")?;
            let says = seen.says(arguments.get());
            is_call(seen).then(|| match streamed {
                true => Answer::chunked(&event(&says)),
                false => Answer::json(&says),
            })
        })
        .await;
        let connection = std::sync::Arc::new(web.connect().await.unwrap());
        for number in 0..40 {
            let arguments = format!("{{\"n\":{number}}}");
            assert_eq!(said(&connection, "hi", &arguments).await, arguments);
        }
        assert!(web.connections() <= 4, "{} for sequential calls", web.connections());
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..200 {
            let connection = std::sync::Arc::clone(&connection);
            calls.spawn(async move {
                let arguments = format!("{{\"t\":{number}}}");
                assert_eq!(said(&connection, "hi", &arguments).await, arguments);
            });
        }
        while let Some(call) = calls.join_next().await {
            call.unwrap();
        }
    }
}

#[tokio::test]
async fn a_changed_list_is_heard_on_the_server_stream() {
    let web = Web::legacy(|seen| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        session(seen, "s", r#"{"tools":{"listChanged":true}}"#)
            .or_else(|| (seen.verb == "GET").then(|| Answer::stream(&event(note)).hold()))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let first = connection.catalog().await.unwrap().revision();
    until(|| web.count("GET") == 1).await;
    let listed = || async { connection.catalog().await.unwrap().revision() };
    while listed().await == first {
        tokio::task::yield_now().await;
    }
    connection.shut_down().await;
    until(|| web.count("CLOSED") == 1).await;
    assert_eq!(web.count("GET"), 1);
    assert_eq!(web.of("GET")[0].header("mcp-session-id"), Some("s"));
}

#[tokio::test]
async fn the_server_stream_is_resumed_after_its_last_event() {
    let opened = AtomicUsize::new(0);
    let web = Web::legacy(move |seen| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        session(seen, "s", r#"{"tools":{"listChanged":true}}"#).or_else(|| {
            (seen.verb == "GET").then(|| match opened.fetch_add(1, Ordering::SeqCst) {
                0 => Answer::stream(&format!("id: g1\nretry: 1\n{}", event(note))).close(),
                1 => Answer::empty(503),
                _ => Answer::stream(&format!("id: g2\n{}", event(note))).hold(),
            })
        })
    })
    .await;
    let connection = web.connect().await.unwrap();
    until(|| web.count("GET") == 3).await;
    let gets = web.of("GET");
    let from: Vec<_> = gets.iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(from, [None, Some("g1"), Some("g1")]);
    connection.shut_down().await;
    assert_eq!(web.count("DELETE"), 1);
}

#[tokio::test]
async fn a_server_that_forgets_its_session_after_each_call_is_called_all_the_same() {
    let current = AtomicUsize::new(0);
    let web = Web::legacy(move |seen| {
        let id = |number: usize| format!("s-{number}");
        let number = current.load(Ordering::SeqCst);
        if seen.method()? == "initialize" {
            return session(seen, &id(number), r#"{"tools":{}}"#);
        }
        if seen.header("mcp-session-id").is_some_and(|given| given != id(number)) {
            return Some(Answer::empty(404));
        }
        if is_call(seen) {
            current.store(number + 1, Ordering::SeqCst);
        }
        None
    })
    .await;
    let connection = web.connect().await.unwrap();
    for _ in 0..4 {
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
    }
    assert!(web.count("initialize") <= 5, "{:?}", web.log());
}

#[tokio::test]
async fn a_window_of_404_fails_calls_and_not_the_connection() {
    for with_session in [false, true] {
        let closed = std::sync::Arc::new(AtomicUsize::new(0));
        let web = Web::legacy({
            let closed = std::sync::Arc::clone(&closed);
            move |seen| match closed.load(Ordering::SeqCst) {
                0 if with_session => session(seen, "s", r#"{"tools":{}}"#),
                0 => None,
                _ => Some(Answer::empty(404)),
            }
        })
        .await;
        let connection = web.connect().await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        closed.store(1, Ordering::SeqCst);
        for _ in 0..2 {
            let error = call(&connection, "hi", "{}").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
        }
        closed.store(0, Ordering::SeqCst);
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        assert_eq!(connection.era().version(), "2025-06-18");
    }
}

#[tokio::test]
async fn a_host_that_makes_one_call_can_do_without_the_server_stream() {
    let web = Web::legacy(|seen| session(seen, "s", r#"{"tools":{"listChanged":true}}"#)).await;
    let mut endpoint = web.endpoint();
    endpoint.server_stream(false);
    let connection = web.connect_to(&endpoint).await.unwrap();
    said(&connection, "hi", "{}").await;
    connection.shut_down().await;
    assert_eq!(web.count("GET"), 0);
}
