//! TLS of a database session, with the host's own configuration.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client};

#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

pub(super) struct Connect {
    connector: TlsConnector,
    /// `None` for a socket of this machine, which is asked about all the same.
    host: Option<ServerName<'static>>,
}

pub(super) struct Stream(client::TlsStream<Socket>);

impl Tls {
    pub(super) fn new(config: &Arc<rustls::ClientConfig>) -> Self {
        let mut config = rustls::ClientConfig::clone(config);
        // As IANA has it; a server that is offered others only ends the connection.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Self(TlsConnector::from(Arc::new(config)))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        let host = ServerName::try_from(host.to_owned()).ok();
        Ok(Connect { connector: self.0.clone(), host })
    }
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let host = self.host.ok_or(io::ErrorKind::InvalidInput)?;
            self.connector.connect(host, socket).await.map(Stream)
        })
    }
}

impl TlsStream for Stream {
    /// None: the certificate is verified, which SCRAM's binding would only repeat.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
