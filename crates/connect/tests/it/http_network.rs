use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plenipo_connect::{
    Connection, Endpoint, ErrorKind, Fault, HttpClient, HttpClientOptions, HttpEndpoint, HttpFault,
    ServerName, StdioCommand,
};
use plenipo_redact::Secret;
use plenipo_testkit::{Deadline, Fixture};
use proptest::prelude::*;

use crate::support::{call, said};
use crate::web::{Answer, Seen, Web, event};

const TOKEN: &str = "s3cr3t-VALUE-99";

fn is_call(seen: &Seen) -> bool {
    seen.method().as_deref() == Some("tools/call")
}

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

fn with_token(web: &Web) -> HttpEndpoint {
    let mut endpoint = web.endpoint();
    endpoint.bearer(&secret(TOKEN)).unwrap();
    endpoint
}

#[tokio::test]
async fn cross_origin_redirect_drops_bearer() {
    let other = Web::legacy(|_| None).await;
    for status in [301, 302, 303, 307, 308] {
        let to = other.url();
        let web = Web::start(move |_| Some(Answer::redirect(status, &to))).await;
        let error = web.connect_to(&with_token(&web)).await.unwrap_err();
        let Fault::Http(HttpFault::Redirect { to, .. }) = error.fault() else { panic!("{error}") };
        assert_eq!(*to, other.url());
        assert!(error.to_string().ends_with("which is another origin"), "{error}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_method_body_and_headers() {
    for (status, first) in [(301, 1), (302, 4), (307, 4), (308, 1)] {
        let web = Web::legacy(move |seen| {
            (seen.path == "/mcp" && seen.verb == "POST")
                .then(|| Answer::redirect(status, "/mcp/?x=1"))
        })
        .await;
        let connection = web.connect_to(&with_token(&web)).await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
        let requests = web.requests();
        let (old, new): (Vec<_>, Vec<_>) = requests.iter().partition(|seen| seen.path == "/mcp");
        assert!(
            old.len() >= first && (status == 302 || status == 307 || old.len() == 1),
            "{status}"
        );
        assert!(new.iter().all(|seen| seen.verb == "POST" && !seen.body.is_empty()));
        let bearer = format!("Bearer {TOKEN}");
        assert!(requests.iter().all(|seen| seen.header("authorization") == Some(&bearer)));
    }
}

#[tokio::test]
async fn redirects_are_bounded_and_never_turn_a_post_into_a_get() {
    for (status, to, why, helps) in [
        (307, "/mcp", "after 5 other redirections", false),
        (303, "/other", "asking for a GET instead of a POST", true),
        (307, "https://127.0.0.1/", "which is another origin", true),
        (307, "file:///etc/passwd", "which cannot be followed", false),
        (307, "javascript:alert(1)", "which cannot be followed", false),
        (307, "http://user:pw@127.0.0.1/", "which cannot be followed", true),
    ] {
        let web = Web::start(move |_| Some(Answer::redirect(status, to))).await;
        let error = web.connect().await.unwrap_err();
        assert!(error.to_string().ends_with(why), "{error}");
        assert!(!error.to_string().contains("pw"), "{error}");
        assert_eq!(error.hint().is_some(), helps, "{error}: {:?}", error.hint());
        assert!(web.requests().len() <= 6, "{}", web.requests().len());
        assert!(web.requests().iter().all(|seen| seen.verb == "POST"));
    }
}

type Answering = Box<dyn Fn(&Seen) -> Answer + Send + Sync>;

#[tokio::test]
async fn bodies_events_and_heads_are_bounded() {
    let long = "x".repeat(100_000);
    let body = move |seen: &Seen| seen.says(&long);
    let endless = format!("data: {}", "y".repeat(100_000));
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    let wide = format!("X-Wide: {}\r\n", "w".repeat(300_000));
    let answers: Vec<Answering> = vec![
        Box::new({
            let body = body.clone();
            move |seen| Answer::json(&body(seen))
        }),
        Box::new({
            let body = body.clone();
            move |seen| {
                Answer::default().bytes(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}",
                    body(seen)
                ))
            }
        }),
        Box::new(move |seen| Answer::chunked(&event(&body(seen)))),
        Box::new(move |_| Answer::stream(&endless).hold()),
        Box::new(move |seen| Answer::new(200, &many, &seen.says("hi"))),
        Box::new(move |seen| Answer::new(200, &wide, &seen.says("hi"))),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let mut web = Web::modern(move |seen| is_call(seen).then(|| answer(seen))).await;
        web.options.max_message_bytes = 50_000;
        let connection = web.connect().await.unwrap();
        let error = call(&connection, "hi", "{}").await.unwrap_err();
        let too_long = matches!(error.fault(), Fault::Http(HttpFault::TooLong { limit: 50_000 }));
        assert_eq!(too_long, number < 4, "{number}: {error}");
        let kind = if too_long { ErrorKind::Protocol } else { ErrorKind::Transport };
        assert_eq!(error.kind(), kind, "{number}: {error}");
        let caused = format!("{error}: {}", error.fault());
        assert_eq!(caused.contains("`max_message_bytes`"), too_long, "{caused}");
        assert_eq!(web.count("tools/call"), 1);
    }
}

#[tokio::test]
async fn an_error_longer_than_its_bound_is_shown_with_the_key() {
    let error = format!(r#"{{"code":-32000,"message":"E-1","data":"{}"}}"#, "d".repeat(100_000));
    let mut web = Web::modern(move |seen| {
        is_call(seen)
            .then(|| Answer::new(400, "Content-Type: application/json\r\n", &seen.error(&error)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(error.to_string().contains("(longer than 65536 bytes, `max_error_bytes`)"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("raise `max_error_bytes`"));
    web.options.max_error_bytes = 200_000;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == -32000), "{error}");
}

#[tokio::test]
async fn what_an_error_shows_of_a_body_is_short_and_harmless() {
    let page = format!("<h1>\x1b[31m{TOKEN}</h1>{}", "z".repeat(1_000_000));
    let web = Web::modern(move |seen| {
        is_call(seen).then(|| Answer::new(500, "Content-Type: text/html\r\n", &page))
    })
    .await;
    let connection = web.connect_to(&with_token(&web)).await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err().to_string();
    assert!(error.len() < 500 && !error.contains('\x1b') && !error.contains(TOKEN), "{error}");
    assert!(error.contains("500: <h1>"), "{error}");

    let table = [
        (Answer::new(200, "Content-Type: text/html\r\n", "<p>\n  x"), "but `text/html`: <p> x"),
        (Answer::new(200, "Content-Type: application/json\r\n", "{"), "is no message: {"),
        (Answer::new(200, "Content-Encoding: gzip\r\n", "x"), "encoded as `gzip`"),
        (Answer::empty(204), "accepted the request (204) and sent no answer"),
        (Answer::stream("data: {}\n\n"), "event stream ended without the answer"),
    ];
    for (answer, expected) in table {
        let shown = format!("{answer:?}");
        let web = Web::modern(move |seen| is_call(seen).then(|| answer.clone())).await;
        let connection = web.connect().await.unwrap();
        let error = call(&connection, "hi", "{}").await.unwrap_err();
        assert!(error.to_string().contains(expected), "{shown}: {error}");
    }
}

#[tokio::test]
async fn credentials_go_to_the_server_and_into_no_text() {
    let web = Web::legacy(|seen| {
        let echo = seen.header("authorization").unwrap_or_default();
        let log = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{echo}"}}}}"#
        );
        let error =
            format!(r#"{{"code":-32000,"message":"bad {echo}","data":{{"got":"{echo}"}}}}"#);
        let events = [
            event("noise"),
            event(&format!("saw {echo}")),
            event(&log),
            event(&seen.error(&error)),
        ];
        is_call(seen).then(|| Answer::stream(&events.concat()))
    })
    .await;
    let mut endpoint = with_token(&web);
    endpoint.header("X-Literal", &secret("$5 and 100%")).unwrap();
    assert!(!format!("{endpoint:?}").contains(TOKEN));
    let connection = web.connect_to(&endpoint).await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    let Fault::Peer(peer) = error.fault() else { panic!("{error}") };
    assert_eq!(peer.message, "bad [redacted]");
    let all = format!("{error} {error:?} {connection:?} {:?}", web.seen.warnings());
    assert!(!all.contains(TOKEN), "{all}");
    assert!(web.requests().iter().all(|seen| seen.header("x-literal") == Some("$5 and 100%")));

    let challenge = format!("WWW-Authenticate: Bearer error=\"{TOKEN}\"\r\n");
    let web = Web::start(move |_| Some(Answer::new(401, &challenge, TOKEN))).await;
    let error = web.connect_to(&with_token(&web)).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(TOKEN), "{error:?}");
}

#[tokio::test]
async fn reserved_headers_and_odd_urls_are_refused_before_anything_is_sent() {
    let web = Web::legacy(|_| None).await;
    let mut endpoint = web.endpoint();
    for name in ["Host", "mcp-session-id", "Content-Length", "Connection", "accept", "x y"] {
        assert!(endpoint.header(name, &secret("v")).is_err(), "{name}");
    }
    assert!(endpoint.header("X-A", &secret("a\nb")).is_err());
    assert!(endpoint.bearer(&secret(" ")).is_err());
    for url in ["mcp", "ftp://h/", "http://u:p@h/"] {
        let error = HttpEndpoint::new(url).unwrap_err();
        assert!(matches!(error, HttpFault::Url { .. }), "{url}");
    }
}

fn helper(fixture: &Fixture, script: &str) -> StdioCommand {
    let script = fixture.executable("helper", format!("#!/bin/sh\necho run >>\"$LOG\"\n{script}"));
    let mut command = StdioCommand::new(script);
    command.environment([("LOG", fixture.join("log").into_os_string())]);
    command.environment([("PATH", "/usr/bin:/bin")]);
    command
}

fn runs(fixture: &Fixture) -> usize {
    fixture.read("log").unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_headers_helper_runs_once_and_again_after_a_refusal() {
    let fixture = Fixture::new();
    let script = "printf '{\"Authorization\":\"Bearer token-number-%s\",\"X-B\":\"helper\"}' $(wc -l <\"$LOG\")";
    let wanted = Arc::new(AtomicUsize::new(1));
    let web = Web::legacy({
        let wanted = Arc::clone(&wanted);
        move |seen| {
            let token = format!("Bearer token-number-{}", wanted.load(Ordering::Relaxed));
            (seen.header("authorization") != Some(&token)).then(|| Answer::new(401, "", &token))
        }
    })
    .await;
    let mut endpoint = web.endpoint();
    endpoint.header("X-B", &secret("own")).unwrap();
    endpoint.headers_helper(helper(&fixture, script));
    let connection = web.connect_to(&endpoint).await.unwrap();
    said(&connection, "hi", "{}").await;
    assert_eq!(runs(&fixture), 1);
    wanted.store(2, Ordering::Relaxed);
    said(&connection, "hi", "{}").await;
    assert_eq!(runs(&fixture), 2, "the same call succeeds");
    assert!(web.requests().iter().all(|seen| seen.header("x-b") == Some("own")));
    wanted.store(9, Ordering::Relaxed);
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!(runs(&fixture), 3, "not more than once a request");
    assert!(!format!("{error:?}").contains("token-number"));
}

#[tokio::test]
async fn a_helper_that_makes_the_same_headers_is_not_a_reason_to_ask_again() {
    let fixture = Fixture::new();
    let web = Web::start(|_| Some(Answer::empty(401))).await;
    let mut endpoint = web.endpoint();
    endpoint.headers_helper(helper(&fixture, "echo '{\"X-Token\":\"always the same\"}'"));
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!((runs(&fixture), web.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_helper_that_fails_fails_the_server_before_a_request() {
    for (script, why) in [
        ("exit 1", "failed"),
        ("echo oops", "did not print a JSON object"),
        ("head -c 70000 /dev/zero", "printed more than 65536 bytes"),
        ("echo '{\"a\":\"1\",\"A\":\"2\"}'", "printed a header twice"),
    ] {
        let fixture = Fixture::new();
        let web = Web::legacy(|_| None).await;
        let mut endpoint = web.endpoint();
        endpoint.headers_helper(helper(&fixture, script));
        let error = web.connect_to(&endpoint).await.unwrap_err();
        assert!(error.to_string().ends_with(why), "{error}");
        assert!(web.requests().is_empty());
    }
    let web = Web::legacy(|_| None).await;
    let mut endpoint = web.endpoint();
    endpoint.headers_helper(StdioCommand::new("/no/such/helper"));
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert!(error.to_string().contains("headers helper `/no/such/helper` could not be run"));
}

#[tokio::test]
async fn a_helper_that_does_not_end_is_ended_after_ten_seconds() {
    let fixture = Fixture::new();
    let web = Web::legacy(|_| None).await;
    let mut endpoint = web.endpoint();
    endpoint.headers_helper(helper(&fixture, "echo $$ >\"$LOG.pid\"\nexec sleep 300"));
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert!(error.to_string().contains("headers helper"), "{error}");
    assert!(web.requests().is_empty());
    let pid = fixture.read("log.pid").unwrap();
    // One that has ended and is not collected yet has no command line.
    let line = std::path::Path::new("/proc").join(pid.trim()).join("cmdline");
    let has_ended = || std::fs::read(&line).map_or(true, |line| line.is_empty());
    assert!(Deadline::poll_until(std::time::Duration::from_secs(20), has_ended));
}

fn through(proxy: &Web, tls: bool) -> HttpClient {
    let url = Some(secret(&format!("http://user:pa%20ss@127.0.0.1:{}", proxy.port)));
    let mut options = HttpClientOptions::default();
    match tls {
        true => options.proxy.https = url,
        false => options.proxy.http = url,
    }
    HttpClient::new(options)
}

#[tokio::test]
async fn a_proxy_is_asked_for_other_hosts_and_never_for_loopback() {
    let mut proxy = Web::legacy(|_| None).await;
    proxy.options.http = through(&proxy, false);
    let endpoint = HttpEndpoint::new("http://mcp.example/mcp").unwrap();
    let connection = proxy.connect_to(&endpoint).await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    for seen in proxy.requests() {
        assert_eq!(seen.path, "http://mcp.example/mcp");
        assert_eq!(seen.header("proxy-authorization"), Some("Basic dXNlcjpwYSBzcw=="));
        assert_eq!(seen.header("host"), Some("mcp.example"));
    }
    let before = proxy.requests().len();
    let mut direct = Web::legacy(|_| None).await;
    direct.options.http = through(&proxy, false);
    let connection = direct.connect().await.unwrap();
    said(&connection, "hi", "{}").await;
    assert_eq!(proxy.requests().len(), before);
    assert!(direct.requests().iter().all(|seen| seen.header("proxy-authorization").is_none()));
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let mut proxy = Web::start(|seen| (seen.verb == "CONNECT").then(|| Answer::empty(407))).await;
    proxy.options.http = through(&proxy, true);
    let endpoint = HttpEndpoint::new("https://mcp.example/mcp").unwrap();
    let error = proxy.connect_to(&endpoint).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::Unreachable { .. })), "{error}");
    let requests = proxy.requests();
    assert_eq!(
        (requests[0].verb.as_str(), requests[0].path.as_str()),
        ("CONNECT", "mcp.example:443")
    );
    assert_eq!(requests[0].header("proxy-authorization"), Some("Basic dXNlcjpwYSBzcw=="));
}

#[tokio::test]
async fn unencrypted_credentials_are_warned_about() {
    let mut proxy = Web::legacy(|_| None).await;
    proxy.options.http = through(&proxy, false);
    let mut endpoint = HttpEndpoint::new("http://mcp.example/mcp").unwrap();
    endpoint.bearer(&secret(TOKEN)).unwrap();
    proxy.connect_to(&endpoint).await.unwrap();
    assert_eq!(proxy.seen.warnings(), ["its credentials go unencrypted to http://mcp.example:80"]);
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_without_a_word_is_met_again() {
    let web =
        Web::modern(|seen| is_call(seen).then(|| Answer::json(&seen.says("hi")).close())).await;
    let connection = web.connect().await.unwrap();
    for _ in 0..50 {
        assert_eq!(said(&connection, "hi", "{}").await, "hi");
    }
    assert_eq!(web.count("tools/call"), 50, "none was sent twice");
}

#[tokio::test]
async fn what_an_endpoint_describes_is_what_is_sent() {
    let web = Web::legacy(|_| None).await;
    let mut http = HttpEndpoint::new(&format!("{}?k=1", web.url())).unwrap();
    http.header("X-A", &Secret::new("x".to_owned())).unwrap();
    http.header("Authorization", &Secret::new("lost".to_owned())).unwrap();
    http.bearer(&Secret::new(TOKEN.to_owned())).unwrap();
    let endpoint = Endpoint::from(http);
    assert!(!format!("{endpoint:?}").contains(TOKEN));
    let name = ServerName::new("web").unwrap();
    let connection = Connection::open(name, &endpoint, web.options.clone()).await.unwrap();
    said(&connection, "hi", "{}").await;
    for seen in web.requests() {
        assert_eq!(seen.path, "/mcp?k=1");
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(seen.header("x-a"), Some("x"));
    }
}

/// Scraps of HTTP responses and event streams, well-formed or not.
fn response() -> impl Strategy<Value = Vec<u8>> {
    let scrap = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 404 X\r\n",
        "HTTP/1.1 307 X\r\nLocation: /\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "Content-Type: application/json\r\n",
        "Content-Type: text/event-stream\r\n",
        "Content-Length: 9\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Mcp-Session-Id: \u{e9}\r\n",
        "\r\n",
        "5\r\n",
        "0\r\n\r\n",
        "data: ",
        "id: 1\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"id\":null,\"error\":7}",
        "[{}]",
        "\n\n",
    ]);
    let piece = prop_oneof![
        6 => scrap.prop_map(|scrap| scrap.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".as_bytes();
    let start = prop::sample::select(vec![Vec::new(), head.to_vec()]);
    (start, prop::collection::vec(piece, 0..30)).prop_map(|(mut start, rest)| {
        start.extend(rest.concat());
        start
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_a_server_sends_over_http_can_crash_the_client_or_keep_it_waiting(bytes in response()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let web = Web::modern(move |seen| {
                is_call(seen).then(|| Answer::default().bytes(bytes.clone()).close())
            })
            .await;
            let connection = web.connect().await.unwrap();
            let limit = std::time::Duration::from_secs(20);
            let outcome = tokio::time::timeout(limit, call(&connection, "hi", "{}")).await;
            assert!(outcome.is_ok(), "it waits");
        });
    }
}
