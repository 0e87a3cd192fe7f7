//! An HTTP server inside the test: it answers each request as the test says and remembers them all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plenipo_connect::{ConnectError, ConnectOptions, Connection, HttpEndpoint, ServerName};
use plenipo_wire::{Fragment, RawValue, object};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::support::{Recorder, member};

/// One request as it arrived. A connection that the client closed early has the verb `CLOSED`.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What is written back, piece by piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    /// Waits until the client closes the connection.
    Hold,
    /// Closes it.
    Close,
}

pub(crate) type Handler = dyn Fn(&Seen) -> Option<Answer> + Send + Sync;

pub(crate) struct Web {
    pub(crate) port: u16,
    pub(crate) options: ConnectOptions,
    pub(crate) seen: Arc<Recorder>,
    requests: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The JSON-RPC method.
    pub(crate) fn method(&self) -> Option<String> {
        member(&self.json()?, "method")
    }

    /// The JSON-RPC id, as text.
    pub(crate) fn id(&self) -> String {
        let json = self.json();
        let id = json.as_ref().and_then(|json| object::member(json, "id"));
        id.map_or("null", RawValue::get).to_owned()
    }

    pub(crate) fn params(&self) -> Option<Box<RawValue>> {
        object::member(&self.json()?, "params").map(ToOwned::to_owned)
    }

    fn json(&self) -> Option<Box<RawValue>> {
        serde_json::from_str(&self.body).ok()
    }

    /// A result for it.
    pub(crate) fn result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id())
    }

    /// A tool's text for it.
    pub(crate) fn says(&self, text: &str) -> String {
        let text = Fragment::string(text);
        self.result(&format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#))
    }

    /// An error for it.
    pub(crate) fn error(&self, error: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, self.id())
    }
}

impl Answer {
    /// A body with its length; `head` holds further lines, each with its line end.
    pub(crate) fn new(status: u16, head: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {length}\r\n\r\n{body}");
        Self::default().bytes(head)
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::new(200, "Content-Type: application/json\r\n", body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::new(status, "", "")
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, &format!("Location: {to}\r\n"), "moved")
    }

    /// An event stream without length; say how it ends.
    pub(crate) fn stream(events: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        Self::default().bytes(format!("{head}{events}"))
    }

    /// An event stream in chunks that ends well.
    pub(crate) fn chunked(events: &str) -> Self {
        let length = events.len();
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked";
        Self::default().bytes(format!("{head}\r\n\r\n{length:x}\r\n{events}\r\n0\r\n\r\n"))
    }

    pub(crate) fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push(Piece::Bytes(bytes.into()));
        self
    }

    pub(crate) fn hold(mut self) -> Self {
        self.0.push(Piece::Hold);
        self
    }

    pub(crate) fn close(mut self) -> Self {
        self.0.push(Piece::Close);
        self
    }
}

/// A `data` event.
pub(crate) fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

impl Web {
    /// A legacy server; `special` comes first.
    pub(crate) async fn legacy(
        special: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| special(seen).or_else(|| Some(legacy(seen)))).await
    }

    /// A modern server; `special` comes first.
    pub(crate) async fn modern(
        special: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| special(seen).or_else(|| Some(modern(seen)))).await
    }

    pub(crate) async fn start(
        handler: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let handler: Arc<Handler> = Arc::new(handler);
        let accept = {
            let (requests, connections) = (Arc::clone(&requests), Arc::clone(&connections));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    connections.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&requests)));
                }
            }
        };
        let accepting = tokio::spawn(accept).abort_handle();
        let seen = Arc::new(Recorder::default());
        let mut options = ConnectOptions::default();
        options.observer = Arc::clone(&seen) as Arc<dyn plenipo_connect::observer::Observer>;
        Self { port, options, seen, requests, connections, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn endpoint(&self) -> HttpEndpoint {
        HttpEndpoint::new(&self.url()).unwrap()
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        self.connect_to(&self.endpoint()).await
    }

    pub(crate) async fn connect_to(
        &self,
        endpoint: &HttpEndpoint,
    ) -> Result<Connection, ConnectError> {
        let name = ServerName::new("web").unwrap();
        Connection::connect(name, endpoint, self.options.clone()).await
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Verbs, or the JSON-RPC methods of POSTs, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|seen| seen.method().unwrap_or_else(|| seen.verb.clone()))
            .collect()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|entry| *entry == what).count()
    }

    pub(crate) fn of(&self, what: &str) -> Vec<Seen> {
        let mut requests = self.requests();
        requests.retain(|seen| seen.method().as_deref() == Some(what) || seen.verb == what);
        requests
    }
}

/// What a legacy server does unless it is told otherwise.
pub(crate) fn legacy(seen: &Seen) -> Answer {
    let method = seen.method();
    if seen.verb != "POST" {
        return Answer::empty(405);
    }
    match method.as_deref() {
        Some("initialize") => Answer::json(&seen.result(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}"#,
        )),
        Some("server/discover") => Answer::new(
            400,
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
        ),
        _ => both(seen),
    }
}

/// What a modern server does unless it is told otherwise.
pub(crate) fn modern(seen: &Seen) -> Answer {
    match seen.method().as_deref() {
        Some("server/discover") => Answer::json(&seen.result(
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#,
        )),
        _ => both(seen),
    }
}

fn both(seen: &Seen) -> Answer {
    if seen.id() == "null" {
        return Answer::empty(202);
    }
    match seen.method().as_deref() {
        Some("tools/list") => Answer::json(
            &seen.result(r#"{"tools":[{"name":"hi","inputSchema":{"type":"object"}}]}"#),
        ),
        Some("tools/call") => Answer::json(&seen.says("hi")),
        Some(_) => Answer::new(
            404,
            "Content-Type: application/json\r\n",
            &seen.error(r#"{"code":-32601,"message":"Method not found"}"#),
        ),
        None => Answer::empty(202),
    }
}

/// Serves one connection.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: Arc<Handler>,
    requests: Arc<Mutex<Vec<Seen>>>,
) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        requests.lock().unwrap().push(seen.clone());
        let Some(Answer(pieces)) = handler(&seen) else { return };
        let has_length = matches!(pieces.first(), Some(Piece::Bytes(bytes))
            if String::from_utf8_lossy(bytes).to_ascii_lowercase().contains("content-length:")
                || String::from_utf8_lossy(bytes).contains("chunked"));
        for piece in pieces {
            match piece {
                Piece::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    stream.flush().await.ok();
                }
                Piece::Hold => {
                    while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                    let closed = Seen { verb: "CLOSED".to_owned(), body: String::new(), ..seen };
                    requests.lock().unwrap().push(closed);
                    return;
                }
                Piece::Close => {
                    stream.shutdown().await.ok();
                    return;
                }
            }
        }
        if !has_length {
            stream.shutdown().await.ok();
            return;
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        fill(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut words = head.split_whitespace();
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut seen = Seen { verb, path, head, body: String::new() };
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < end + 4 + length {
        fill(stream, buffer).await?;
    }
    let body: Vec<u8> = buffer.drain(..end + 4 + length).skip(end + 4).collect();
    seen.body = String::from_utf8(body).unwrap();
    Some(seen)
}

async fn fill(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 4096];
    match stream.read(&mut chunk).await {
        Ok(count @ 1..) => {
            buffer.extend_from_slice(&chunk[..count]);
            Some(())
        }
        _ => None,
    }
}
