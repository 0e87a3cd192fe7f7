//! The certificate in `tests/data/tls` is for 127.0.0.1, by an authority that nobody trusts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plenipo_connect::{
    ConnectError, ConnectOptions, Connection, HttpClient, HttpClientOptions, HttpEndpoint,
    ServerName,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{call, member, said, until};
use crate::web::{Handler, Seen, event, legacy, serve};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

fn acceptor(protocols: &[&[u8]]) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(data("server.pem")).unwrap();
    let chain: Vec<_> = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(data("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn server() -> u16 {
    let acceptor = acceptor(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handler: Arc<Handler> = Arc::new(|seen| Some(legacy(seen)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, handler, Arc::new(Mutex::default())).await;
                }
            });
        }
    });
    port
}

async fn connect(host: &str, roots: Option<PathBuf>) -> Result<Connection, ConnectError> {
    connect_to(&format!("https://{host}:{}/mcp", server().await), roots).await
}

async fn connect_to(url: &str, roots: Option<PathBuf>) -> Result<Connection, ConnectError> {
    let endpoint = HttpEndpoint::new(url).unwrap();
    let mut client = HttpClientOptions::default();
    client.extra_roots = roots;
    let mut options = ConnectOptions::default();
    options.http = HttpClient::new(client);
    Connection::connect(ServerName::new("tls").unwrap(), &endpoint, options).await
}

fn why(error: &ConnectError) -> String {
    std::error::Error::source(error).unwrap().to_string()
}

#[tokio::test]
async fn a_further_authority_is_trusted_only_when_it_is_given() {
    let connection = connect("127.0.0.1", Some(data("ca.pem"))).await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    connection.shut_down().await;
    let error = connect("127.0.0.1", None).await.unwrap_err();
    assert!(error.to_string().ends_with("cannot be reached"), "{error}");
    assert!(why(&error).contains("certif"), "{}", why(&error));
}

#[tokio::test]
async fn a_file_of_authorities_that_cannot_be_read_is_named() {
    let error = connect("127.0.0.1", Some(data("no-such.pem"))).await.unwrap_err();
    assert!(why(&error).contains("no-such.pem"), "{}", why(&error));
}

/// What a server of HTTP/2 saw.
#[derive(Default)]
struct Streams {
    connections: AtomicUsize,
    requests: AtomicUsize,
    reset: AtomicUsize,
}

/// A modern server over HTTP/2 whose tool `hold` never answers and whose tool `flood` sends without end.
async fn http_2_server(streams: &Arc<Streams>) -> String {
    let acceptor = acceptor(&[b"h2", b"http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/mcp", listener.local_addr().unwrap().port());
    let streams = Arc::clone(streams);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            streams.connections.fetch_add(1, Ordering::SeqCst);
            let (acceptor, streams) = (acceptor.clone(), Arc::clone(&streams));
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    streams.requests.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(answer(request, respond, Arc::clone(&streams)));
                }
            });
        }
    });
    url
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<bytes::Bytes>,
    streams: Arc<Streams>,
) {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = incoming.data().await {
        incoming.flow_control().release_capacity(chunk.len()).unwrap();
        body.extend_from_slice(&chunk);
    }
    let seen = Seen {
        verb: head.method.to_string(),
        path: head.uri.path().to_owned(),
        head: format!("{:?}", head.headers),
        body: String::from_utf8(body).unwrap(),
    };
    let name = seen.params().and_then(|params| member(&params, "name"));
    let text = match seen.method().as_deref() {
        Some("server/discover") => seen.result(
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#,
        ),
        Some("tools/list") => {
            let tool = |name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
            let tools = ["hi", "hold", "flood"].map(tool).join(",");
            seen.result(&format!(r#"{{"tools":[{tools}]}}"#))
        }
        _ => seen.says("over two"),
    };
    let kind = if name.is_some() { "text/event-stream" } else { "application/json" };
    let response = http::Response::builder().header("content-type", kind).body(()).unwrap();
    let mut stream = respond.send_response(response, false).unwrap();
    match name.as_deref() {
        None => stream.send_data(text.into(), true).unwrap(),
        Some("hi") => stream.send_data(event(&text).into(), true).unwrap(),
        Some(name) => {
            while name == "flood" && flood(&mut stream).await {}
            // Until the client ends the stream, and only the stream.
            std::future::poll_fn(|context| stream.poll_reset(context)).await.ok();
            streams.reset.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Sends a comment line; false once the client wants no more.
async fn flood(stream: &mut h2::SendStream<bytes::Bytes>) -> bool {
    stream.reserve_capacity(16_384);
    match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
        Some(Ok(room)) => {
            let line = ":".repeat(room.saturating_sub(1)) + "\n";
            stream.send_data(line.into(), false).is_ok()
        }
        _ => false,
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered_and_a_slow_stream_holds_nobody_up() {
    let streams = Arc::new(Streams::default());
    let url = http_2_server(&streams).await;
    let connection = Arc::new(connect_to(&url, Some(data("ca.pem"))).await.unwrap());
    assert_eq!(said(&connection, "hi", "{}").await, "over two");
    let slow = ["hold", "flood", "hold"].map(|tool| {
        let connection = Arc::clone(&connection);
        tokio::spawn(async move { call(&connection, tool, "{}").await })
    });
    until(|| streams.requests.load(Ordering::SeqCst) == 6).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let connection = Arc::clone(&connection);
        calls.spawn(async move { said(&connection, "hi", "{}").await });
    }
    while let Some(said) = calls.join_next().await {
        assert_eq!(said.unwrap(), "over two");
    }
    assert_eq!(streams.connections.load(Ordering::SeqCst), 1, "all on one connection");
    for call in slow {
        call.abort();
    }
    until(|| streams.reset.load(Ordering::SeqCst) == 3).await;
    assert_eq!(said(&connection, "hi", "{}").await, "over two", "others live on");
    assert_eq!(streams.connections.load(Ordering::SeqCst), 1);
}
