//! From a URL to a byte stream: directly or through a proxy, with TLS for `https`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::client::HttpClientOptions;
use crate::error::HttpCause;
use crate::target::is_loopback;
use crate::tls::{Tls, speaks_http_2};

const CONNECT: Duration = Duration::from_secs(10);

/// Makes connections for the pool.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
    tls: Arc<Tls>,
}

/// One connection.
pub(crate) enum Stream {
    /// To the server, or to a proxy that reads whole URLs.
    Plain {
        io: TokioIo<TcpStream>,
        proxied: bool,
    },
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connector {
    pub(crate) fn new(options: &HttpClientOptions) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let rules = &options.proxy;
        let exposed = |proxy: &Option<plenipo_redact::Secret<String>>| {
            proxy.as_ref().map(|proxy| proxy.expose().clone()).unwrap_or_default()
        };
        let proxies = Matcher::builder()
            .http(exposed(&rules.http))
            .https(exposed(&rules.https))
            .no(rules.no.clone())
            .build();
        let tls = Arc::new(Tls::new(options.extra_roots.clone()));
        Self { tcp, proxies: Arc::new(proxies), tls }
    }

    /// The proxy for a URL. Loopback hosts have none.
    pub(crate) fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        let is_local = uri.host().is_none_or(is_loopback);
        self.proxies.intercept(uri).filter(|_| !is_local)
    }

    pub(crate) async fn connect(mut self, uri: Uri) -> Result<Stream, HttpCause> {
        let host = uri.host().unwrap_or_default().to_owned();
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let proxy = self.proxy(&uri);
        if proxy.as_ref().is_some_and(|proxy| proxy.uri().scheme() != Some(&Scheme::HTTP)) {
            return Err("only http:// proxies are supported".into());
        }
        let proxied = proxy.is_some();
        let io = match proxy {
            None => self.tcp.call(uri).await.map_err(cause)?,
            Some(proxy) if is_tls => self.tunnel(&proxy, uri).await?,
            Some(proxy) => self.tcp.call(proxy.uri().clone()).await.map_err(cause)?,
        };
        if !is_tls {
            return Ok(Stream::Plain { io, proxied });
        }
        self.secure(&host, is_tls, io).await
    }

    /// With TLS, if wanted, on a connection that was made.
    pub(crate) async fn secure(
        &self,
        host: &str,
        is_tls: bool,
        io: TokioIo<TcpStream>,
    ) -> Result<Stream, HttpCause> {
        if !is_tls {
            return Ok(Stream::Plain { io, proxied: false });
        }
        let stream = self.tls.connect(host, io.into_inner()).await?;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
    }

    async fn tunnel(&self, proxy: &Intercept, uri: Uri) -> Result<TokioIo<TcpStream>, HttpCause> {
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        tunnel.call(uri).await.map_err(cause)
    }
}

/// With what a library wrapped, since its own sentence ("tcp connect error") tells little.
fn cause(error: impl std::error::Error + Send + Sync + 'static) -> HttpCause {
    match error.source() {
        Some(source) => format!("{error}: {source}").into(),
        None => Box::new(error),
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = HttpCause;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, HttpCause>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), HttpCause>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain { proxied, .. } => Connected::new().proxy(*proxied),
            Self::Tls(io) if speaks_http_2(io.inner()) => Connected::new().negotiated_h2(),
            Self::Tls(_) => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain { io, .. } => Pin::new(io).poll_read(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_read(context, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain { io, .. } => Pin::new(io).poll_write(context, buffer),
            Self::Tls(io) => Pin::new(io).poll_write(context, buffer),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain { io, .. } => Pin::new(io).poll_write_vectored(context, buffers),
            Self::Tls(io) => Pin::new(io).poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain { io, .. } => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain { io, .. } => Pin::new(io).poll_flush(context),
            Self::Tls(io) => Pin::new(io).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain { io, .. } => Pin::new(io).poll_shutdown(context),
            Self::Tls(io) => Pin::new(io).poll_shutdown(context),
        }
    }
}
