//! Bodies: how much of them is read, and what becomes of their connections.

use http::{HeaderName, HeaderValue};
use plenipo_http::{ClientFault, HttpClient, Secrets};

use crate::support::{Raw, ask, response};

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let chunked =
        "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    for answer in [response(200, "abcdef"), chunked.to_owned()] {
        let server = Raw::start(answer, false).await;
        let client = HttpClient::default();
        let fits = ask(&client, &server.target()).await.unwrap().into_body();
        assert_eq!(fits.read(6).await.unwrap(), "abcdef");
        let too_long = ask(&client, &server.target()).await.unwrap().into_body();
        let fault = too_long.read(5).await.unwrap_err();
        assert!(matches!(fault, ClientFault::TooLong { limit: 5 }), "{fault}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_fault_and_an_error_of_what_came() {
    let broken = "HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nhalf";
    let server = Raw::start(broken, true).await;
    let client = HttpClient::default();
    let body = ask(&client, &server.target()).await.unwrap().into_body();
    let fault = body.read(100).await.unwrap_err();
    assert!(matches!(fault, ClientFault::Broken(_)), "{fault}");
    let body = ask(&client, &server.target()).await.unwrap().into_body();
    assert_eq!(body.read_error(100).await.bytes(), b"half");
}

#[tokio::test]
async fn what_is_shown_of_an_error_is_harmless_and_says_where_json_was_cut() {
    let server = Raw::start(response(500, "{\"why\":\n \"\x1b[1m tok-123456 rest\"}"), false).await;
    let mut secrets = Secrets::default();
    let name = HeaderName::from_static("authorization");
    secrets.add(&name, &HeaderValue::from_static("Bearer tok-123456"));
    let client = HttpClient::default();
    let mut shown = Vec::new();
    for limit in [100, 25, 21] {
        let body = ask(&client, &server.target()).await.unwrap().into_body();
        shown.push(body.read_error(limit).await.preview(&secrets));
    }
    assert_eq!(shown.first().unwrap(), "{\"why\": \"\u{fffd}[1m [redacted] rest\"}");
    let cut = "{\"why\": \"\u{fffd}[1m [redacted] (longer than 25 bytes, `max_error_bytes`)";
    assert_eq!(shown.get(1).unwrap(), cut);
    let within = "{\"why\": \"\u{fffd}[1m [redacted] (longer than 21 bytes, `max_error_bytes`)";
    assert_eq!(shown.last().unwrap(), within);
}

#[tokio::test]
async fn a_connection_is_kept_after_its_body_and_closed_by_dropping_before() {
    let mut server = Raw::start(response(200, &"x".repeat(300_000)), false).await;
    let client = HttpClient::default();
    for _ in 0..3 {
        let body = ask(&client, &server.target()).await.unwrap().into_body();
        assert_eq!(body.read(300_000).await.unwrap().len(), 300_000);
    }
    assert_eq!(server.connections(), 1, "one for all");
    drop(ask(&client, &server.target()).await.unwrap());
    ask(&client, &server.target()).await.unwrap().into_body().read(300_000).await.unwrap();
    assert_eq!(server.connections(), 1, "another in place of the dropped one");
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_reached() {
    let server = Raw::start("", true).await;
    let client = HttpClient::default();
    let fault = ask(&client, &server.target()).await.unwrap_err();
    assert!(matches!(fault, ClientFault::Broken(_)), "it hung up: {fault}");
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", free.local_addr().unwrap().port());
    drop(free);
    let fault = ask(&client, &plenipo_http::Target::parse(&url).unwrap()).await.unwrap_err();
    assert!(matches!(fault, ClientFault::Unreachable { .. }), "{fault}");
}
