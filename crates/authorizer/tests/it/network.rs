//! The network of sign-ins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use plenipo_authorizer::oauth::OAuthNetwork;
use plenipo_http::HttpClient;
use plenipo_oauth::{AddressPolicy, EndpointUrl, HttpClient as _, OutgoingRequest, TransportFault};
use plenipo_redact::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers everything with so many bytes.
struct Web {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Web {
    async fn start(length: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let head = format!("HTTP/1.1 200 X\r\nContent-Length: {length}\r\n\r\n");
                let whole = head + &"x".repeat(length);
                let mut seen = [0; 4096];
                if stream.read(&mut seen).await.is_ok() {
                    // The client may have hung up over the length.
                    stream.write_all(whole.as_bytes()).await.ok();
                }
            }
        });
        Self { port, connections }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn addresses_are_checked_before_a_connection_is_made() {
    let web = Web::start(2).await;
    let get = |url: &str| Request::get(url).body(Secret::new(Vec::new())).unwrap();
    let outside = EndpointUrl::parse("https://mcp.example/mcp").unwrap();
    let network = OAuthNetwork::new(HttpClient::default(), outside);
    for url in [web.url(), format!("http://localhost:{}/x", web.port)] {
        // The server's own name does not resolve here, so nothing widens the policy.
        let request = OutgoingRequest::new(get(&url), AddressPolicy::PUBLIC);
        let fault = network.send(request).await.unwrap_err();
        assert!(!matches!(fault, TransportFault::TimedOut), "{fault}");
    }
    assert_eq!(web.connections(), 0);
    let inside = EndpointUrl::parse(&web.url()).unwrap();
    let network = OAuthNetwork::new(HttpClient::default(), inside.clone());
    let request = OutgoingRequest::new(get(&web.url()), AddressPolicy::for_server(&inside));
    network.send(request).await.unwrap();
    assert_eq!(web.connections(), 1, "the control");
}

#[tokio::test]
async fn documents_are_bounded() {
    let web = Web::start(100_000).await;
    let server = EndpointUrl::parse(&web.url()).unwrap();
    let network = OAuthNetwork::new(HttpClient::default(), server.clone());
    for (limit, fits) in [(1000, false), (100_000, true)] {
        let get = Request::get(web.url()).body(Secret::new(Vec::new())).unwrap();
        let mut request = OutgoingRequest::new(get, AddressPolicy::for_server(&server));
        request.max_body_bytes = limit;
        match network.send(request).await {
            Ok(response) => assert!(fits && response.into_body().expose().len() == 100_000),
            Err(fault) => {
                let too_large = matches!(fault, TransportFault::TooLarge { limit: 1000 });
                assert!(!fits && too_large, "{fault:?}");
            }
        }
    }
}
