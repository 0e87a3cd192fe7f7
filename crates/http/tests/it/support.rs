//! A server of raw bytes.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use plenipo_http::{ClientFault, HttpClient, Received, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Answers each request with the same bytes, and closes the connection after them if it is told to.
pub(crate) struct Raw {
    pub(crate) port: u16,
    accepted: mpsc::UnboundedReceiver<()>,
}

impl Raw {
    pub(crate) async fn start(answer: impl Into<Vec<u8>>, closes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, accepted) = mpsc::unbounded_channel();
        let answer = answer.into();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                told.send(()).ok();
                tokio::spawn(serve(stream, answer.clone(), closes));
            }
        });
        Self { port, accepted }
    }

    pub(crate) fn target(&self) -> Target {
        Target::parse(&format!("http://127.0.0.1:{}/mcp?key=1", self.port)).unwrap()
    }

    /// How many connections were made since this was asked last.
    pub(crate) fn connections(&mut self) -> usize {
        std::iter::from_fn(|| self.accepted.try_recv().ok()).count()
    }
}

async fn serve(mut stream: TcpStream, answer: Vec<u8>, closes: bool) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
        if stream.write_all(&answer).await.is_err() || closes {
            return;
        }
    }
}

/// One request without a body.
pub(crate) async fn ask(
    client: &HttpClient,
    target: &Target,
) -> Result<Response<Received>, ClientFault> {
    let request = Request::get(target.uri().clone()).body(Full::new(Bytes::new())).unwrap();
    client.send(target, request).await
}

/// A whole response with this body.
pub(crate) fn response(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
