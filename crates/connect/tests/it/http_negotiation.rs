use std::sync::atomic::{AtomicUsize, Ordering};

use plenipo_connect::{EraHint, ErrorKind, Fault, HttpFault};

use crate::support::{call, said};
use crate::web::{Answer, Seen, Web};

const JSON: &str = "Content-Type: application/json\r\n";

fn at(method: &'static str, answer: Answer) -> impl Fn(&Seen) -> Option<Answer> + Send + Sync {
    move |seen| (seen.method().as_deref() == Some(method)).then(|| answer.clone())
}

#[tokio::test]
async fn http_400_without_modern_error_falls_back() {
    let answers = [
        Answer::empty(400),
        Answer::new(400, "Content-Type: text/plain\r\n", "Bad Request: No sessionId"),
        Answer::new(400, JSON, r#"{"error":"unknown method"}"#),
        Answer::new(
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}"#,
        ),
        Answer::new(400, JSON, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"x"}}"#),
        Answer::empty(404),
        Answer::new(404, JSON, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"x"}}"#),
        Answer::empty(405),
        Answer::empty(403),
        Answer::empty(406),
        Answer::empty(500),
        Answer::empty(202),
        Answer::new(200, JSON, ""),
        Answer::new(200, JSON, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"x"}}"#),
        Answer::new(200, JSON, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
        Answer::new(200, JSON, "[]"),
        Answer::new(200, "Content-Type: text/html\r\n", "<html>"),
        Answer::stream("data: 1\n\n"),
        Answer::default().close(),
        Answer::new(
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"v","data":{"supported":["2025-06-18"]}}}"#,
        ),
    ];
    for answer in answers {
        let web = Web::legacy(at("server/discover", answer.clone())).await;
        let connection = web.connect().await.unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        assert_eq!(connection.era().version(), "2025-06-18", "{answer:?}");
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        connection.shut_down().await;
        let mut log = web.log();
        // A closed connection is met once more: the probe may be repeated.
        log.dedup();
        assert_eq!(
            log,
            [
                "server/discover",
                "initialize",
                "notifications/initialized",
                "tools/list",
                "tools/call"
            ]
        );
    }
}

#[tokio::test]
async fn http_400_header_mismatch_does_not_fall_back() {
    for (code, status) in [(-32020, 400), (-32021, 400), (-32020, 200)] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":{code},"message":"Mcp-Method is missing"}}}}"#
        );
        let web = Web::legacy(at("server/discover", Answer::new(status, JSON, &body))).await;
        let error = web.connect().await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == code), "{error}");
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(web.log(), ["server/discover"]);
    }
    let body = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"v","data":{"supported":["2027-01-01"]}}}"#;
    let web = Web::legacy(at("server/discover", Answer::new(400, JSON, body))).await;
    let error = web.connect().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::UnsupportedVersion { .. }), "{error}");
    assert_eq!(web.log(), ["server/discover"]);
}

#[tokio::test]
async fn http_404_with_32601_is_method_not_found() {
    let refuse = |seen: &Seen| {
        let body = seen.error(r#"{"code":-32601,"message":"tools/call is not implemented"}"#);
        (seen.method()? == "tools/call").then(|| Answer::new(404, JSON, &body))
    };
    let web = Web::modern(refuse).await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == -32601), "{error}");

    // Also where a 404 could mean that a session is over.
    let web = Web::legacy(move |seen| match seen.method().as_deref() {
        Some("initialize") => Some(with_session(seen, "one")),
        _ => refuse(seen),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == -32601), "{error}");
    assert_eq!(web.count("initialize"), 1);
}

fn with_session(seen: &Seen, id: &str) -> Answer {
    let result = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{}}"#;
    Answer::new(200, &format!("{JSON}Mcp-Session-Id: {id}\r\n"), &seen.result(result))
}

#[tokio::test]
async fn era_cache_reprobes_on_failure() {
    let mut web = Web::legacy(|_| None).await;
    web.options.era = EraHint::Modern;
    let connection = web.connect().await.unwrap();
    assert_eq!(connection.era().hint(), EraHint::Legacy);

    let mut web = Web::modern(|_| None).await;
    web.options.era = EraHint::Legacy;
    let connection = web.connect().await.unwrap();
    assert_eq!(connection.era().hint(), EraHint::Modern);
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    assert_eq!(web.log(), ["initialize", "server/discover", "tools/list", "tools/call"]);

    let mut web = Web::legacy(|_| None).await;
    web.options.era = EraHint::Legacy;
    web.connect().await.unwrap();
    assert_eq!(web.log(), ["initialize", "notifications/initialized"], "no probe when it is right");
}

#[tokio::test]
async fn a_modern_server_that_takes_a_legacy_ones_place_is_discovered_once() {
    let replaced = std::sync::Arc::new(AtomicUsize::new(0));
    for with_session in [false, true] {
        replaced.store(0, Ordering::SeqCst);
        let web = Web::start({
            let replaced = std::sync::Arc::clone(&replaced);
            move |seen| Some(legacy_then_modern(seen, &replaced, with_session))
        })
        .await;
        let connection = web.connect().await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        assert_eq!(connection.era().version(), "2025-06-18");
        replaced.store(1, Ordering::SeqCst);
        let (a, b) = tokio::join!(call(&connection, "hi", "{}"), call(&connection, "hi", "{}"));
        assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
        assert_eq!(connection.era().version(), "2026-07-28");
        assert_eq!(web.count("server/discover"), 2, "the first probe, and one for both calls");
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        let last = web.requests().pop().unwrap();
        assert_eq!(last.header("mcp-protocol-version"), Some("2026-07-28"));
        assert!(last.header("mcp-session-id").is_none());
    }
}

fn legacy_then_modern(seen: &Seen, replaced: &AtomicUsize, has_session: bool) -> Answer {
    if replaced.load(Ordering::SeqCst) == 0 {
        return match seen.method().as_deref() {
            Some("initialize") if has_session => with_session(seen, "s-1"),
            _ => crate::web::legacy(seen),
        };
    }
    if seen.header("mcp-protocol-version") == Some("2026-07-28") {
        return crate::web::modern(seen);
    }
    let (status, code) = if has_session { (404, -32601) } else { (400, -32022) };
    let data = r#"{"supported":["2026-07-28"]}"#;
    let error = format!("{{\"code\":{code},\"message\":\"v\",\"data\":{data}}}");
    if has_session && seen.method().as_deref() != Some("initialize") {
        return Answer::empty(404);
    }
    Answer::new(status, JSON, &seen.error(&error))
}

#[tokio::test]
async fn a_server_that_refuses_what_it_offers_is_asked_a_second_time_and_no_third() {
    for refusals in [1, 2] {
        let refused = AtomicUsize::new(0);
        let web = Web::modern(move |seen| {
            let body = seen.error(r#"{"code":-32022,"message":"v","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}"#);
            (refused.fetch_add(1, Ordering::SeqCst) < refusals)
                .then(|| Answer::new(400, JSON, &body))
        })
        .await;
        let connected = web.connect().await;
        assert_eq!(connected.is_ok(), refusals == 1);
        assert_eq!(web.log(), ["server/discover", "server/discover"]);
        if let Err(error) = connected {
            assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == -32022), "{error}");
        }
    }
}

#[tokio::test]
async fn version_header_equals_meta() {
    let web = Web::modern(|_| None).await;
    let connection = web.connect().await.unwrap();
    said(&connection, "hi", "{}").await;
    for seen in web.requests() {
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        let params = seen.params().unwrap().get().to_owned();
        assert!(params.contains(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#));
        assert!(params.contains(r#""io.modelcontextprotocol/clientCapabilities":{}"#));
    }
}

#[tokio::test]
async fn standard_headers_table() {
    let names = ["plain", "two words", " led", "n\u{e9}", "=?base64?eA==?="];
    let web = Web::modern(move |seen| {
        let tools = names.map(|name| {
            let name = plenipo_wire::Fragment::string(name);
            format!(r#"{{"name":{name},"inputSchema":{{"type":"object"}}}}"#)
        });
        let tools = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
        let result = match seen.method()?.as_str() {
            "server/discover" => {
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}}"#
            }
            "tools/list" => &tools,
            "resources/read" => r#"{"contents":[]}"#,
            "prompts/get" => r#"{"messages":[]}"#,
            _ => return None,
        };
        Some(Answer::json(&seen.result(result)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    for name in names {
        call(&connection, name, "{}").await.unwrap();
    }
    let options = plenipo_connect::RequestOptions::default();
    connection.read_resource("note:\u{e9}", &options).await.unwrap();
    connection.prompt("greet", &[("who", "me")], &options).await.unwrap();
    let sent: Vec<_> = web
        .requests()
        .iter()
        .map(|seen| {
            let header = |name| seen.header(name).unwrap_or("-").to_owned();
            format!("{} {}", header("mcp-method"), header("mcp-name"))
        })
        .collect();
    insta::assert_snapshot!(sent.join("\n"), @r"
    server/discover -
    tools/list -
    tools/call plain
    tools/call two words
    tools/call =?base64?IGxlZA==?=
    tools/call =?base64?bsOp?=
    tools/call =?base64?PT9iYXNlNjQ/ZUE9PT89?=
    resources/read =?base64?bm90ZTrDqQ==?=
    prompts/get greet
    ");
}

#[tokio::test]
async fn modern_peer_behind_a_url_never_sees_legacy_methods() {
    let web = Web::modern(|seen| {
        let result =
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#;
        let head = format!("{JSON}Mcp-Session-Id: forbidden\r\n");
        (seen.method()? == "server/discover").then(|| Answer::new(200, &head, &seen.result(result)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    said(&connection, "hi", "{}").await;
    connection.shut_down().await;
    assert_eq!(web.log(), ["server/discover", "tools/list", "tools/call"]);
    assert!(web.requests().iter().all(|seen| seen.header("mcp-session-id").is_none()));
    assert!(web.requests().iter().all(|seen| seen.verb == "POST"));
}

#[tokio::test]
async fn a_legacy_session_is_echoed_and_given_back() {
    let web =
        Web::legacy(|seen| (seen.method()? == "initialize").then(|| with_session(seen, "s-1")))
            .await;
    let connection = web.connect().await.unwrap();
    said(&connection, "hi", "{}").await;
    connection.shut_down().await;
    connection.shut_down().await;
    let sent: Vec<_> = web
        .requests()
        .iter()
        .map(|seen| {
            let header = |name| seen.header(name).unwrap_or("-").to_owned();
            let what = seen.method().unwrap_or_else(|| seen.verb.clone());
            format!(
                "{what}: {} {} {}",
                header("mcp-session-id"),
                header("mcp-protocol-version"),
                header("mcp-method")
            )
        })
        .collect();
    insta::assert_snapshot!(sent.join("\n"), @r"
    server/discover: - 2026-07-28 server/discover
    initialize: - - -
    notifications/initialized: s-1 2025-06-18 -
    tools/list: s-1 2025-06-18 -
    tools/call: s-1 2025-06-18 -
    DELETE: s-1 2025-06-18 -
    ");
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ShutDown), "{error}");
}

#[tokio::test]
async fn a_version_list_in_the_text_of_an_error_is_understood() {
    let web = Web::legacy(|seen| {
        let params = seen.params()?;
        let body = seen.error(r#"{"code":-32000,"message":"Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26)"}"#);
        (seen.method()? == "initialize" && params.get().contains("2025-11-25"))
            .then(|| Answer::new(400, JSON, &body))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(connection.era().version(), "2025-06-18");
    assert_eq!(web.count("initialize"), 2);
}

#[tokio::test]
async fn missing_credentials_are_said_at_once_with_the_challenge() {
    for status in [401, 403] {
        let head = "WWW-Authenticate: Bearer resource_metadata=\"http://h/.well-known/x\"\r\n";
        let web = Web::start(move |_| Some(Answer::new(status, head, "secret page"))).await;
        let error = web.connect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SignIn);
        assert!(error.hint().is_some());
        assert!(!error.to_string().contains("secret page"), "{error}");
        let Fault::Http(HttpFault::SignInNeeded { challenge, .. }) = error.fault() else {
            panic!("{error}");
        };
        assert!(challenge.as_ref().unwrap().contains("resource_metadata"));
        assert_eq!(web.log(), ["server/discover"], "nothing else is tried");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let attempts = AtomicUsize::new(0);
    let web = Web::legacy(move |_| {
        (attempts.fetch_add(1, Ordering::Relaxed) < 2).then(|| Answer::empty(503))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(web.count("server/discover"), 3);
    assert_eq!(said(&connection, "hi", "{}").await, "hi");

    let attempts = AtomicUsize::new(0);
    let web = Web::legacy(move |seen| {
        let lists = seen.method()? == "tools/list";
        (lists && attempts.fetch_add(1, Ordering::Relaxed) < 1).then(|| Answer::empty(429))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    assert_eq!(web.count("tools/list"), 2);
}

#[tokio::test]
async fn a_modern_server_that_was_only_slow_is_recognised() {
    let asked = AtomicUsize::new(0);
    let mut web = Web::modern(move |seen| {
        let first =
            seen.method()? == "server/discover" && asked.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| Answer::default().hold())
    })
    .await;
    web.options.start_timeout = std::time::Duration::from_millis(1500);
    let connection = web.connect().await.unwrap();
    assert_eq!(connection.era().hint(), EraHint::Modern);
    let mut log = web.log();
    log.retain(|entry| entry != "CLOSED");
    assert_eq!(log, ["server/discover", "initialize", "server/discover"]);
}

#[tokio::test]
async fn a_session_offered_by_a_server_that_turns_out_modern_is_not_used() {
    let mut web = Web::modern(|seen| {
        let body = seen.error(r#"{"code":-32601,"message":"Method not found"}"#);
        let head = format!("{JSON}Mcp-Session-Id: stray\r\n");
        (seen.method()? == "initialize").then(|| Answer::new(200, &head, &body))
    })
    .await;
    web.options.era = EraHint::Legacy;
    let connection = web.connect().await.unwrap();
    said(&connection, "hi", "{}").await;
    assert!(web.requests().iter().all(|seen| seen.header("mcp-session-id").is_none()));
}

#[tokio::test]
async fn nobody_there_is_said_with_the_origin() {
    let web = Web::legacy(|_| None).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp?key=s3cr3t");
    let endpoint = plenipo_connect::HttpEndpoint::new(&url).unwrap();
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("start server `web`: http://127.0.0.1:{port} cannot be reached")
    );
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("refused"), "{why}");
    assert_eq!(error.kind(), ErrorKind::Transport);
}

#[tokio::test]
async fn a_mute_server_is_given_up_in_time() {
    let mut web = Web::start(|_| Some(Answer::default().hold())).await;
    web.options.start_timeout = std::time::Duration::from_millis(400);
    let error = web.connect().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::NoAnswer { .. }), "{error}");
}

#[tokio::test]
async fn version_error_midlife_renegotiates_once() {
    let downgraded = std::sync::Arc::new(AtomicUsize::new(0));
    let web = Web::start({
        let downgraded = std::sync::Arc::clone(&downgraded);
        move |seen| {
            if downgraded.load(Ordering::Relaxed) == 0 {
                return Some(crate::web::modern(seen));
            }
            let is_modern = seen.header("mcp-protocol-version") == Some("2026-07-28");
            let body = seen.error(r#"{"code":-32022,"message":"v","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}"#);
            Some(if is_modern { Answer::new(400, JSON, &body) } else { crate::web::legacy(seen) })
        }
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    downgraded.store(1, Ordering::Relaxed);
    let (a, b) = tokio::join!(call(&connection, "hi", "{}"), call(&connection, "hi", "{}"));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(connection.era().version(), "2025-06-18");
    assert_eq!(web.count("initialize"), 1);
    said(&connection, "hi", "{}").await;
    let last = web.of("tools/call").pop().unwrap();
    assert_eq!(last.header("mcp-protocol-version"), Some("2025-06-18"));
    assert!(last.header("mcp-method").is_none() && !last.body.contains("_meta"), "{}", last.body);
    let ids: std::collections::HashSet<_> = web.of("tools/call").iter().map(Seen::id).collect();
    assert_eq!(ids.len(), web.count("tools/call"), "ids_unique_inflight_and_fresh_on_retry");

    let web = Web::modern(|seen| {
        let body =
            seen.error(r#"{"code":-32022,"message":"v","data":{"supported":["2027-01-01"]}}"#);
        (seen.method()? == "tools/call").then(|| Answer::new(400, JSON, &body))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::UnsupportedVersion { .. }), "{error}");
    assert_eq!(web.count("tools/call"), 1);
}

#[tokio::test]
async fn discover_result_parsed_and_cached() {
    let web = Web::modern(|seen| {
        let result = r#"{"supportedVersions":["2027-01-01","2026-07-28"],"capabilities":{"tools":{},"x":[1.10]},
            "instructions":"ask first","ttlMs":60000,"cacheScope":"public","resultType":"complete",
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","title":"T","version":"3"}}}"#;
        (seen.method()? == "server/discover").then(|| Answer::json(&seen.result(result)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    assert_eq!(connection.era().version(), "2026-07-28");
    assert_eq!(connection.capabilities().as_str(), r#"{"tools":{},"x":[1.10]}"#);
    assert_eq!(connection.instructions(), Some("ask first"));
    let identity = connection.identity();
    assert_eq!(
        (&*identity.name, identity.title.as_deref(), &*identity.version),
        ("n", Some("T"), "3")
    );
    for _ in 0..3 {
        said(&connection, "hi", "{}").await;
    }
    assert_eq!(web.count("server/discover"), 1);
}

#[tokio::test]
async fn extension_absent_reverts_to_core() {
    let offering = |extensions: &'static str| {
        Web::modern(move |seen| {
            let result = format!(
                r#"{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}{extensions}}}}}"#
            );
            (seen.method()? == "server/discover").then(|| Answer::json(&seen.result(&result)))
        })
    };
    let tasks = "io.modelcontextprotocol/tasks";
    for (extensions, settings) in [
        ("", None),
        (r#","extensions":null"#, None),
        (r#","extensions":{"com.example/other":{}}"#, None),
        (r#","extensions":{"io.modelcontextprotocol/tasks":true}"#, None),
        (r#","extensions":{"io.modelcontextprotocol/tasks":{"a":1.0}}"#, Some(r#"{"a":1.0}"#)),
    ] {
        let web = offering(extensions).await;
        let connection = web.connect().await.unwrap();
        assert_eq!(connection.extension(tasks).map(|raw| raw.get()), settings, "{extensions}");
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "the core works without");
    }
    let web = offering(r#","extensions":{"tasks":{},"-/tasks":{}}"#).await;
    let connection = web.connect().await.unwrap();
    assert!(connection.extension("tasks").is_none(), "the prefix is mandatory");
    assert!(connection.extension("-/tasks").is_none());
}

#[tokio::test]
async fn the_transport_before_is_recognised_and_named() {
    let endpoint = "event: endpoint\ndata: /messages?session=1\n\n";
    for (posted, got, is_old) in [
        (405, Answer::stream(endpoint).hold(), true),
        (404, Answer::stream(&format!(": hello\n\n{endpoint}")).hold(), true),
        (405, Answer::stream("data: 1\n\n").hold(), false),
        (405, Answer::stream("").close(), false),
        (400, Answer::stream(&"x".repeat(20_000)).hold(), false),
        (404, Answer::empty(404), false),
    ] {
        let web = Web::start(move |seen| {
            Some(if seen.verb == "GET" { got.clone() } else { Answer::empty(posted) })
        })
        .await;
        let error = web.connect().await.unwrap_err();
        let named = matches!(error.fault(), Fault::Http(HttpFault::OldTransport));
        assert_eq!(named, is_old, "{error}");
        assert_eq!(web.count("GET"), 1);
        assert!(error.hint().is_some() || posted == 400, "{error}");
    }
}
