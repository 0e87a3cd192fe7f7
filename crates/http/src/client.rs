//! The HTTP client: a pool of kept connections, shared by the servers of a host.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use plenipo_redact::Secret;

use crate::connector::Connector;
use crate::error::{ClientFault, HttpCause};
use crate::lanes::Lanes;
use crate::received::Received;
use crate::target::Target;

/// Shorter than most servers keep an idle connection, so that few requests meet a closed one.
pub(crate) const IDLE: Duration = Duration::from_secs(55);
/// In milliseconds.
const PAUSE: u64 = 100;
pub(crate) const IDLE_PER_ORIGIN: usize = 64;
/// The library looks after each read: a head is never over twice this.
pub(crate) const HEAD: usize = 64 * 1024;
pub(crate) const HEADERS: usize = 100;
/// The same bound for HTTP/2, where names and values are counted (RFC 9113 §6.5.2).
const HEAD_LIST: u32 = 128 * 1024;
/// What a server may send on one stream, and on all of a connection, before it is read. One stream
/// that nobody reads for a while leaves the others their room.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;
/// A connection with open streams that is silent is asked whether it lives, and given up after
/// another such time.
const PING: Duration = Duration::from_secs(20);

/// How to get to servers; nothing is read from the environment.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HttpClientOptions {
    /// Proxies; none by default.
    pub proxy: ProxyRules,
    /// A PEM file of further certificate authorities, beside the system's (`SSL_CERT_FILE`).
    pub extra_roots: Option<PathBuf>,
}

/// What `http_proxy`, `https_proxy` and `no_proxy` say. Loopback hosts are never proxied.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ProxyRules {
    /// For `http` URLs: an `http://` URL, perhaps with credentials.
    pub http: Option<Secret<String>>,
    /// For `https` URLs, tunnelled with CONNECT: an `http://` URL, perhaps with credentials.
    pub https: Option<Secret<String>>,
    /// Hosts, domains, addresses and networks that are reached directly, separated by commas.
    pub no: String,
}

/// A pool of HTTP connections. Clones share it; nothing is set up before the first request.
#[derive(Clone, Default)]
pub struct HttpClient(Arc<Inner>);

#[derive(Default)]
struct Inner {
    options: HttpClientOptions,
    pool: OnceLock<Pool>,
}

struct Pool {
    /// For what goes through TLS or a proxy.
    client: Client<Connector, Full<Bytes>>,
    /// For the rest.
    lanes: Lanes,
    connector: Connector,
    /// There may be a proxy for a server without TLS.
    has_proxy: bool,
    begin: Instant,
    /// Milliseconds from `begin` to the last request.
    last: AtomicU64,
}

impl HttpClient {
    /// A client with these ways.
    #[must_use]
    pub fn new(options: HttpClientOptions) -> Self {
        Self(Arc::new(Inner { options, pool: OnceLock::new() }))
    }

    /// For connections outside of the pool.
    pub(crate) fn connector(&self) -> Connector {
        Connector::new(&self.0.options)
    }

    /// Sends a request to `target`, whose URL is the request's, and waits for the head of the response. Whoever drops the
    /// future or the body cancels the request.
    ///
    /// # Errors
    /// [`ClientFault::Unreachable`] when nothing was sent, [`ClientFault::Broken`] when the server may have seen it.
    pub async fn send(
        &self,
        target: &Target,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Received>, ClientFault> {
        let pool = self.0.pool.get_or_init(|| Pool::new(&self.0.options));
        pool.notice_closed().await;
        if !target.is_tls() {
            let proxy = pool.has_proxy.then(|| pool.connector.proxy(target.uri())).flatten();
            let Some(proxy) = proxy else {
                return pool.lanes.send(&pool.connector, target, request).await;
            };
            if let Some(credentials) = proxy.basic_auth() {
                request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials.clone());
            }
        }
        let response = pool.client.request(request).await.map_err(|error| fault(target, error))?;
        Ok(response.map(Received::driven))
    }
}

impl Pool {
    fn new(options: &HttpClientOptions) -> Self {
        let connector = Connector::new(options);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_ORIGIN)
            .http1_max_buf_size(HEAD)
            .http1_max_headers(HEADERS)
            .timer(TokioTimer::new())
            .http2_max_header_list_size(HEAD_LIST)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING)
            .build(connector.clone());
        let (lanes, has_proxy) = (Lanes::default(), options.proxy.http.is_some());
        Self { client, lanes, connector, has_proxy, begin: Instant::now(), last: AtomicU64::new(0) }
    }

    /// After a pause, lets the tasks of kept connections see which of them a server closed: a
    /// request on one of those would be lost, and a call is not repeated.
    async fn notice_closed(&self) {
        let now = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now.saturating_sub(self.last.swap(now, Ordering::Relaxed)) >= PAUSE {
            // One turn for the system to tell, one for the tasks to hear.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    }
}

fn fault(target: &Target, error: Error) -> ClientFault {
    let connecting = error.is_connect();
    // The library's own sentence ("client error (Connect)") tells nothing; its cause does.
    let source: HttpCause = match std::error::Error::source(&error) {
        Some(source) => source.to_string().into(),
        None => Box::new(error),
    };
    match connecting {
        true => ClientFault::Unreachable { origin: target.origin(), source },
        false => ClientFault::Broken(source),
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("options", &self.0.options).finish_non_exhaustive()
    }
}
