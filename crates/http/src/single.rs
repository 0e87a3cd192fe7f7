//! One exchange on a connection of its own, for documents and tokens: to an address that was let
//! through, with nothing added and nothing followed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};

use crate::client::HttpClient;
use crate::connector::{Connector, Stream};
use crate::error::HttpCause;
use crate::received::Received;

/// Which addresses of a host may be connected to, or why none may.
pub type Admit<'a> = &'a (dyn Fn(&str, &[IpAddr]) -> Result<Vec<IpAddr>, HttpCause> + Send + Sync);

/// Makes such exchanges. Clones share what is set up before the first.
#[derive(Clone)]
pub struct SingleExchanges {
    http: HttpClient,
    connector: Arc<OnceLock<Connector>>,
}

impl SingleExchanges {
    /// With the proxies and certificate authorities of `http`.
    #[must_use]
    pub fn new(http: HttpClient) -> Self {
        Self { http, connector: Arc::default() }
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// The name look-up failed.
    pub async fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>, HttpCause> {
        let found = lookup_host((host, port)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }

    /// Sends a request and reads its response, of a body that is at most `limit` bytes long.
    ///
    /// # Errors
    /// What `admit` said of an address; no connection; a response that breaks off; [`ClientFault::TooLong`].
    ///
    /// [`ClientFault::TooLong`]: crate::ClientFault::TooLong
    pub async fn exchange(
        &self,
        request: Request<Bytes>,
        admit: Admit<'_>,
        limit: usize,
    ) -> Result<Response<Bytes>, HttpCause> {
        let (mut head, bytes) = request.into_parts();
        let connector = self.connector.get_or_init(|| self.http.connector());
        let stream = dial(connector, &head.uri, admit).await?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(128 * 1024).max_headers(100);
        let (mut sender, connection) = builder.handshake(stream).await?;
        // Ends with the sender, after the response.
        tokio::spawn(connection);
        let authority = head.uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        head.headers.insert(header::HOST, HeaderValue::from_str(authority)?);
        head.uri = head.uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
        let response = sender.send_request(Request::from_parts(head, Full::new(bytes))).await?;
        let (head, incoming) = response.into_parts();
        Ok(Response::from_parts(head, Received::driven(incoming).read(limit).await?))
    }
}

impl fmt::Debug for SingleExchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleExchanges").field("http", &self.http).finish_non_exhaustive()
    }
}

/// Connects to an address that was let through. A proxy resolves names itself: then the address is
/// its affair, and only a literal one is looked at.
async fn dial(connector: &Connector, uri: &Uri, admit: Admit<'_>) -> Result<Stream, HttpCause> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    if connector.proxy(uri).is_some() {
        if let Ok(address) = host.parse() {
            admit(host, &[address])?;
        }
        return connector.clone().connect(uri.clone()).await;
    }
    let addresses = admit(host, &SingleExchanges::resolve(host, port).await?)?;
    let mut last: HttpCause = "the name has no address".into();
    for address in addresses {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return connector.secure(host, is_tls, TokioIo::new(stream)).await;
            }
            Err(error) => last = Box::new(error),
        }
    }
    Err(last)
}
