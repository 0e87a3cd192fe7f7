//! The certificate in `tests/data/tls` is for 127.0.0.1, by an authority that nobody trusts.

use std::path::PathBuf;
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

use crate::support::said;
use crate::web::{Handler, legacy, serve};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

async fn server() -> u16 {
    let chain = CertificateDer::pem_file_iter(data("server.pem")).unwrap();
    let chain: Vec<_> = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(data("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
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
    let endpoint = HttpEndpoint::new(&format!("https://{host}:{}/mcp", server().await)).unwrap();
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
