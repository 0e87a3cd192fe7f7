//! Troubles of real servers, each with the script that has it.

use std::time::{Duration, Instant};

use plenipo_connect::{EraHint, ErrorKind, Fault};
use plenipo_redact::Secret;
use plenipo_testkit::Deadline;

use crate::support::{Fake, Script, call, member, said, text, until};

const MANY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn noise_bom_and_crlf_on_stdout_are_skipped_with_one_warning() {
    let fake = Fake::new("01", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "echo", r#"{"s":"hi"}"#).await, "echo:hi");
    assert_eq!(said(&connection, "echo", r#"{"s":"hi"}"#).await, "echo:hi");
    let warnings = fake.seen.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].ends_with("are skipped: Server 1.2.3 started successfully!"));
    connection.shut_down().await;
}

#[tokio::test]
async fn utf8_cut_between_writes_big_lines_and_bad_bytes_arrive_exactly() {
    let fake = Fake::new("02", &[]);
    let connection = fake.start().await.unwrap();
    let exact = "\u{8bfb}\u{53d6} \u{1f600}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} na\u{ef}ve \u{2028} end";
    let catalog = connection.catalog().await.unwrap();
    let first = catalog.tools().next().unwrap();
    assert_eq!(first.view().unwrap().description.as_deref(), Some(exact));
    assert_eq!(said(&connection, "read", "{}").await, exact);
    assert_eq!(said(&connection, "big", "{}").await, exact.repeat(100_000));
    assert_eq!(said(&connection, "badbytes", "{}").await, "after bad bytes");
    assert_eq!(said(&connection, "read", "{}").await, exact);
    connection.shut_down().await;
}

#[tokio::test]
async fn an_id_echoed_as_a_string_is_accepted() {
    let fake = Fake::new("03", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    let error = call(&connection, "refuse", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("R-1"), "{error}");
    connection.shut_down().await;
}

#[tokio::test]
async fn an_error_with_id_null_goes_to_the_only_call_that_waits() {
    let fake = Fake::new("03", &[("F_MODE", "null")]);
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "refuse", "{}").await.unwrap_err();
    assert!(error.to_string().contains("R-1"), "{error}");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_server_that_cannot_stand_the_probe_is_connected_all_the_same() {
    for (mode, starts) in [("die", 2), ("mute", 1), ("params", 1)] {
        let mut fake = Fake::new("04", &[("F_MODE", mode)]);
        fake.options.probe_timeout = Duration::from_millis(400);
        let begin = Instant::now();
        let connection = fake.start().await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "{mode}");
        assert!(begin.elapsed() < MANY, "{mode}");
        assert_eq!(fake.log("start").len(), starts, "{mode}");
        let hint = connection.era().hint();
        assert_eq!(hint, EraHint::Legacy);
        connection.shut_down().await;

        fake.options.era = hint;
        let again = fake.start().await.unwrap();
        assert_eq!(fake.log("start").len(), starts + 1, "{mode}: the era is remembered");
        again.shut_down().await;
        assert_eq!(fake.processes(), 0);
    }
}

#[tokio::test]
async fn questions_during_a_call_are_answered_at_once() {
    let fake = Fake::new("05", &[]);
    let connection = fake.start().await.unwrap();
    let begin = Instant::now();
    insta::assert_snapshot!(
        said(&connection, "ask", "{}").await,
        @r#"{"ping": "result", "roots/list": -32601, "sampling/createMessage": -32601, "vendor/strange": -32601}"#
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
    connection.shut_down().await;
}

#[tokio::test]
async fn a_crash_fails_every_waiting_call_at_once_with_code_and_last_words() {
    let fake = Fake::new("06", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    let begin = Instant::now();
    let (first, second) =
        tokio::join!(call(&connection, "crash", "{}"), call(&connection, "crash", "{}"));
    for error in [first.unwrap_err(), second.unwrap_err()] {
        assert!(matches!(error.fault(), Fault::Exited { how } if how.code() == Some(42)));
        assert_eq!(error.kind(), ErrorKind::Transport);
        insta::allow_duplicates! {
            insta::assert_snapshot!(
                error,
                @"call tool `crash` of server `fake`: the server exited with code 42; last line on stderr: Traceback: KeyError 'API_KEY'"
            );
        }
    }
    assert!(begin.elapsed() < MANY);
    assert_eq!(connection.stderr_tail(), ["Traceback: KeyError 'API_KEY'"]);
    let late = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(late.fault(), Fault::Exited { .. }));
    assert!(late.hint().unwrap().contains("stderr"));
}

#[tokio::test]
async fn a_signal_is_named() {
    let fake = Fake::new("06", &[]);
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "segv", "{}").await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"call tool `segv` of server `fake`: the server was ended by signal 11 (SIGSEGV)"
    );
}

#[tokio::test]
async fn a_stubborn_server_is_killed_in_bounded_time() {
    let fake = Fake::new("06", &[]);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    let begin = Instant::now();
    let report = connection.shut_down().await;
    assert!(begin.elapsed() < MANY);
    assert!(report.terminated && report.killed, "{report:?}");
    assert_eq!(report.exit.unwrap().signal(), Some(9));
    assert_eq!(fake.log("stdin_eof").len(), 1);
    assert_eq!(fake.log("sigterm_ignored").len(), 1);
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[tokio::test]
async fn a_changed_list_is_listed_again_and_nothing_unadvertised_is_asked() {
    let fake = Fake::new("08", &[]);
    let connection = fake.start().await.unwrap();
    let tools = || async { connection.catalog().await.unwrap().tools().count() };
    assert_eq!(tools().await, 2);
    said(&connection, "unlock", "{}").await;
    assert_eq!(tools().await, 3);
    assert_eq!(said(&connection, "secret_tool", "{}").await, "tools: unlock,lock,secret_tool");
    said(&connection, "lock", "{}").await;
    assert_eq!(tools().await, 2);
    let error = call(&connection, "secret_tool", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::NoSuchTool { .. }), "{error}");
    connection.shut_down().await;
    let asked: Vec<_> =
        fake.log("UNADVERTISED").iter().map(|entry| member(entry, "method").unwrap()).collect();
    assert_eq!(asked, ["server/discover"], "the probe alone");
}

#[tokio::test]
async fn odd_results_are_results() {
    let fake = Fake::new("09", &[]);
    let connection = fake.start().await.unwrap();
    for (tool, is_error, raw) in [
        ("error_no_structured", true, "quota used up (Q-9)"),
        ("error_wrong_structured", true, "bad id (B-3)"),
        ("structured_only", false, r#"{"structuredContent": {"n": 5}}"#),
        ("structured_null", false, r#""structuredContent": null"#),
        ("violates_schema", false, "n=five"),
        ("unknown_block", false, r#"{"type": "json", "json": {"a": 1}}"#),
        ("empty", false, r#"{"content": []}"#),
        ("no_content", false, "{}"),
        ("image", false, r#""_meta": {"vendor/x": 1}"#),
    ] {
        let outcome = call(&connection, tool, "{}").await.unwrap();
        assert_eq!(outcome.is_error(), is_error, "{tool}");
        assert!(outcome.result().get().contains(raw), "{tool}: {}", outcome.result());
        outcome.view().unwrap();
    }
    connection.shut_down().await;
}

#[tokio::test]
async fn the_event_stream_grammar_is_understood_to_the_letter() {
    let script = Script::start("10");
    let connection = script.connect(&script.endpoint("mcp")).await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    for tool in catalog.tools() {
        let begin = Instant::now();
        let outcome = call(&connection, tool.name(), "{}").await;
        if tool.name() == "no_final_blank" {
            let error = outcome.unwrap_err();
            assert!(error.to_string().ends_with("ended without the answer"), "{error}");
            assert!(begin.elapsed() < MANY);
            continue;
        }
        assert_eq!(text(&outcome.unwrap()), format!("ok \u{2713} {}", tool.name()));
    }
    connection.shut_down().await;
    let posts = script.log("post");
    assert!(posts.iter().any(|post| member(post, "method").is_none()), "the ping was answered");
    assert_eq!(script.seen.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_or_silent_server_stream_is_no_failure() {
    let script = Script::start("11");
    for path in ["g405", "g404", "g400", "g406", "ghang"] {
        let connection = script.connect(&script.endpoint(path)).await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "{path}");
        let asked = || {
            let mut gets = script.log("get");
            gets.retain(|get| member(get, "path").unwrap().starts_with(&format!("/{path}/")));
            gets.len()
        };
        until(|| asked() == 1).await;
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "{path}");
        connection.shut_down().await;
        assert_eq!(asked(), 1, "{path}");
    }
}

#[tokio::test]
async fn older_revisions_are_found_and_kept_to() {
    let script = Script::start("11");
    for (path, version) in [("old", "2025-06-18"), ("oldneg", "2024-11-05")] {
        let connection = script.connect(&script.endpoint(path)).await.unwrap();
        assert_eq!(connection.era().version(), version, "{path}");
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "{path}");
        let posts = script.log("post");
        let last =
            posts.iter().rev().find(|post| member(post, "method").as_deref() == Some("tools/call"));
        assert_eq!(member(last.unwrap(), "version_header").as_deref(), Some(version));
    }
}

#[tokio::test]
async fn headers_arrive_as_they_are_and_are_never_shown() {
    const TOKEN: &str = "s3cr3t-VALUE-99";
    let script = Script::start("14");
    let with_headers = |name: &str| {
        let mut endpoint = script.endpoint(name);
        endpoint.bearer(&Secret::new(TOKEN.to_owned())).unwrap();
        endpoint.header("X-Cash", &Secret::new("a$b${c}".to_owned())).unwrap();
        endpoint.header("X-Literal", &Secret::new("$5 and 100%".to_owned())).unwrap();
        endpoint
    };
    let connection = script.connect(&with_headers("mcp")).await.unwrap();
    insta::assert_snapshot!(
        said(&connection, "headers", "{}").await,
        @r#"{"authorization": "Bearer s3cr3t-VALUE-99", "x-cash": "a$b${c}", "x-literal": "$5 and 100%"}"#
    );
    let leak = call(&connection, "leak", "{}").await.unwrap_err();
    let deny = script.connect(&with_headers("deny")).await.unwrap_err();
    assert_eq!(deny.kind(), ErrorKind::SignIn);
    for shown in [format!("{leak} {leak:?}"), format!("{deny} {deny:?}")] {
        assert!(!shown.contains(TOKEN), "{shown}");
    }
    assert!(leak.to_string().ends_with("invalid credential [redacted]"), "{leak}");
}

#[tokio::test]
async fn a_tools_own_limit_goes_before_the_servers_whatever_the_transport() {
    use crate::web::{Answer, Web};
    let limits = |options: &mut plenipo_connect::ConnectOptions| {
        options.tool_timeout = Duration::from_secs(60);
        options.tool_timeouts.insert("silent".to_owned(), Duration::from_millis(300));
    };
    let mut fake = Fake::new("peer", &[]);
    limits(&mut fake.options);
    let mut web = Web::modern(|seen| match seen.method()?.as_str() {
        "tools/call" => Some(Answer::stream("").hold()),
        "tools/list" => Some(Answer::json(&seen.result(
            r#"{"tools":[{"name":"silent","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}]}"#,
        ))),
        _ => None,
    })
    .await;
    limits(&mut web.options);
    for connection in [fake.start().await.unwrap(), web.connect().await.unwrap()] {
        let error = call(&connection, "silent", "{}").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().ends_with("no answer within 0.3 s"), "{error}");
        // What the call itself says goes before both.
        let mut own = crate::support::request(&connection, "silent", "{}").await;
        own.timeout = Some(Duration::from_millis(100));
        let error = connection.call(own).await.unwrap_err();
        assert!(error.to_string().ends_with("no answer within 0.1 s"), "{error}");
        connection.shut_down().await;
    }
    // The control: the server's own limit is for the others.
    web.options.tool_timeout = Duration::from_millis(200);
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "other", "{}").await.unwrap_err();
    assert!(error.to_string().ends_with("no answer within 0.2 s"), "{error}");
}

#[tokio::test]
async fn errors_of_all_kinds_over_http_leave_the_connection_as_it_was() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::web::{Answer, Web};
    let calls = AtomicUsize::new(0);
    let web = Web::modern(move |seen| match seen.method()?.as_str() {
        "tools/call" => Some(match calls.fetch_add(1, Ordering::SeqCst) {
            0 | 4 => Answer::json(&seen.says("fine")),
            1 => Answer::new(502, "Content-Type: text/html\r\n", "<h1>Bad gateway</h1>"),
            2 => Answer::new(422, "", "cannot process that"),
            _ => Answer::new(418, "", &seen.error(r#"{"code":-32000,"message":"E-418"}"#)),
        }),
        _ => None,
    })
    .await;
    let connection = web.connect().await.unwrap();
    let mut said = Vec::new();
    for _ in 0..5 {
        said.push(match call(&connection, "hi", "{}").await {
            Ok(outcome) => text(&outcome),
            Err(error) => error.to_string(),
        });
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    fine
    call tool `hi` of server `web`: the server answered 502: <h1>Bad gateway</h1>
    call tool `hi` of server `web`: the server answered 422: cannot process that
    call tool `hi` of server `web`: the server answered with error -32000: E-418
    fine
    ");
    assert_eq!(web.count("tools/call"), 5, "no call is made twice");
}

#[tokio::test]
async fn cancelling_one_call_leaves_the_other_and_the_server() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let canceller = plenipo_connect::Canceller::new();
    let mut silent = crate::support::request(&connection, "silent", "{}").await;
    silent.cancel = Some(canceller.cancellation());
    let (cancelled, first, ()) = tokio::join!(
        connection.call(silent),
        call(&connection, "steps", r#"{"steps":5,"every":0.1}"#),
        async {
            until(|| fake.params("tools/call").len() == 2).await;
            canceller.cancel("enough");
        }
    );
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(text(&first.unwrap()), "done");
    assert!(said(&connection, "line", "{}").await.contains("line"), "the next call works");
    connection.shut_down().await;
    assert_eq!(fake.params("initialize").len(), 1, "in the same process");
}
