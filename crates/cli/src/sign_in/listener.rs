//! Where the browser is sent back to: a listener on loopback, and standard input for browsers that are
//! on another machine.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use plenipo_oauth::{EndpointUrl, PendingAuthorization};
use plenipo_redact::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::page;
use super::pasted::Pasted;

const PATH: &str = "/callback";
/// The longest request that is read, in bytes.
pub(super) const LONGEST: usize = 20 * 1024;
/// After a warning about a pasted line nothing is said of those that come right after it.
const QUIET: Duration = Duration::from_secs(1);
/// For one request to arrive, and for one answer to leave.
const TIME: Duration = Duration::from_secs(5);

/// Both loopback addresses with one port; the second where there is one.
#[derive(Debug)]
pub(super) struct Listener {
    port: u16,
    /// What the issuer knows instead of the address here.
    url: Option<EndpointUrl>,
    v4: TcpListener,
    v6: Option<TcpListener>,
}

/// A browser that waits to be told how it went.
#[derive(Debug)]
pub(super) struct Visitor(TcpStream);

impl Listener {
    /// Listens on `port`; 0 is any free one.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let v4 = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let port = v4.local_addr()?.port();
        let v6 = TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await;
        let v6 = match v6 {
            Ok(listener) => Some(listener),
            // Somebody else there would get what is meant for us.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => None,
        };
        Ok(Self { port, url: None, v4, v6 })
    }

    /// Reached by another address than its own, where that is so.
    pub(super) fn at(self, url: Option<&EndpointUrl>) -> Self {
        Self { url: url.cloned(), ..self }
    }

    pub(super) fn redirect_uri(&self) -> String {
        match &self.url {
            Some(url) => url.as_str().to_owned(),
            None => format!("http://127.0.0.1:{}{PATH}", self.port),
        }
    }

    fn path(&self) -> &str {
        self.url.as_ref().map_or(PATH, EndpointUrl::path)
    }

    /// The first answer to this very sign-in, from a browser or pasted. Whatever else comes is turned
    /// away, and the wait goes on.
    pub(super) async fn answer(
        &self,
        pending: &PendingAuthorization,
        pasted: &mut Pasted<'_>,
    ) -> io::Result<(Secret<String>, Option<Visitor>)> {
        let mut told = None;
        loop {
            let stream = tokio::select! {
                accepted = self.v4.accept() => accepted?.0,
                accepted = accept(self.v6.as_ref()) => accepted?.0,
                line = pasted.next() => {
                    let Err(fault) = pending.check(line.expose()) else { return Ok((line, None)) };
                    // Of a text with many lines the first fault tells enough.
                    if told.is_none_or(|told: Instant| told.elapsed() > QUIET) {
                        crate::terminal::warn(&format!("what was pasted {fault}"));
                        crate::terminal::tell(&format!("paste the address that begins with {}?", pending.redirect_uri()));
                    }
                    told = Some(Instant::now());
                    continue;
                }
            };
            if let Some(answer) = visited(stream, self.path(), pending).await {
                return Ok(answer);
            }
        }
    }
}

impl Visitor {
    /// Shows the page of a sign-in that is done, or what failed.
    pub(super) async fn tell(mut self, place: &str, told: Result<(), String>) {
        let page = page::outcome(place, told);
        // The terminal says it as well: a browser that has left misses nothing.
        timeout(TIME, answer(&mut self.0, "200 OK", &page)).await.ok();
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// What a request asks for, if it is the answer.
async fn visited(
    mut stream: TcpStream,
    path: &str,
    pending: &PendingAuthorization,
) -> Option<(Secret<String>, Option<Visitor>)> {
    let target = timeout(TIME, target(&mut stream)).await.ok()??;
    let is_callback = target.split('?').next() == Some(path);
    if is_callback && pending.is_answered_by(&target) {
        return Some((Secret::new(target), Some(Visitor(stream))));
    }
    let page = page::other();
    timeout(TIME, answer(&mut stream, "404 Not Found", &page)).await.ok();
    None
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(chunk.get(..count)?);
        if head.len() > LONGEST {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => Some(target.to_owned()),
        _ => None,
    }
}

async fn answer(stream: &mut TcpStream, status: &str, page: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n\
         Connection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

/// The port of a redirect URI that a listener of this kind made.
pub(super) fn port_of(uri: &str) -> Option<u16> {
    uri.strip_prefix("http://127.0.0.1:")?.strip_suffix(PATH)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_redirect_uris_have_a_port() {
        assert_eq!(port_of("http://127.0.0.1:4000/callback"), Some(4000));
        for other in ["http://127.0.0.1/callback", "http://localhost:1/callback", "https://x/", ""]
        {
            assert_eq!(port_of(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn both_addresses_are_listened_on_and_a_taken_port_is_an_error() {
        let listener = Listener::bind(0).await.unwrap();
        let port = listener.port;
        assert!(listener.redirect_uri().contains(&port.to_string()));
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        if listener.v6.is_some() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
        }
        assert_eq!(Listener::bind(port).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
