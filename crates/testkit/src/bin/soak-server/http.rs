//! The same manners over Streamable HTTP: `/modern/…` and `/legacy/…` are servers of the two eras. A connection has a thread;
//! `die` ends it in the middle of an answer, `abort` before one. Legacy servers have sessions, which end with the process.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::SUBSCRIPTION;

/// Deep enough for what a connection does; there are hundreds.
const STACK: usize = 256 * 1024;
const LONGEST_BODY: u64 = 1024 * 1024;

/// Streams on which changes are told, with the path they belong to and their subscription.
type Listens = Arc<Mutex<Vec<(String, Value, TcpStream)>>>;

struct Request {
    path: String,
    is_post: bool,
    session: Option<String>,
    body: Value,
}

/// Says its port in a line and serves until stdin ends.
pub(super) fn serve(port: u16) {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) else { return };
    let Ok(address) = listener.local_addr() else { return };
    let mut output = io::stdout();
    writeln!(output, "port={}", address.port()).and_then(|()| output.flush()).unwrap_or_default();
    thread::spawn(move || {
        let listens = Listens::default();
        for stream in listener.incoming().flatten() {
            let listens = Arc::clone(&listens);
            let connection = thread::Builder::new().stack_size(STACK);
            connection.spawn(move || converse(&stream, &listens)).ok();
        }
    });
    io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
}

/// Until either end closes; an error is an end, too.
fn converse(stream: &TcpStream, listens: &Listens) {
    stream.set_nodelay(true).ok();
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let mut answering = Answering { stream, request: &request, listens };
        if answering.answer().is_err() {
            break;
        }
    }
    stream.shutdown(std::net::Shutdown::Both).ok();
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (is_post, path) = (words.next()? == "POST", words.next()?.to_owned());
    let (mut length, mut session) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok().filter(|length| *length <= LONGEST_BODY)?;
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            session = Some(value.trim().to_owned());
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request { path, is_post, session, body })
}

struct Answering<'a> {
    stream: &'a TcpStream,
    request: &'a Request,
    listens: &'a Listens,
}

impl Answering<'_> {
    fn answer(&mut self) -> io::Result<()> {
        let body = &self.request.body;
        if !self.request.is_post {
            return self.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        }
        let modern = self.request.path.starts_with("/modern/");
        let is_known = self.request.session.as_deref() == Some(&session());
        if !modern && !is_known && at(body, &["method"]) != "initialize" {
            return self.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
        let (Some(id), Some(method)) = (body.get("id"), at(body, &["method"]).as_str()) else {
            return self.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        };
        match method {
            "server/discover" if modern => self.result(id, &json!({
                "supportedVersions": ["2026-07-28"], "resultType": "complete",
                "capabilities": {"tools": {"listChanged": true}},
            })),
            "initialize" if !modern => self.result(id, &json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "soak", "version": "1"},
            })),
            "tools/list" => self.result(id, &json!({
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
            })),
            "tools/call" => self.call(id, at(body, &["params"])),
            "subscriptions/listen" if modern => self.listen(id, at(body, &["params"])),
            _ => self.json(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"},
            })),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> io::Result<()> {
        let argument = |name: &str| at(params, &["arguments", name]);
        let result = json!({"content": [{"type": "text", "text": argument("token")}]});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match argument("manner").as_str().unwrap_or("plain") {
            "later" => {
                thread::sleep(Duration::from_millis(
                    argument("delay").as_u64().unwrap_or_default(),
                ));
                self.json(&answer)
            }
            "dribble" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                            Transfer-Encoding: chunked\r\n\r\n";
                self.write(head.as_bytes())?;
                for piece in answer.to_string().as_bytes().chunks(7) {
                    self.chunk(piece)?;
                    thread::yield_now();
                }
                self.chunk(b"")
            }
            "noise" => {
                let noise = ": a remark\n\nevent: other\ndata: x\n\nretry: 10\nid: 7\n\ndata: {\"foo\":\n\n";
                self.events(&[], noise, &[&answer])
            }
            "storm" => {
                self.announce();
                self.json(&answer)
            }
            "progress" => {
                let token = at(params, &["_meta", "progressToken"]);
                let step = |step| {
                    json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": step, "total": 50}})
                };
                self.events(&(0..50).map(step).collect::<Vec<_>>(), "", &[&answer])
            }
            "double" => self.events(&[], "", &[&answer, &answer]),
            // Until the client has had enough of it.
            "deaf" => io::copy(&mut &*self.stream, &mut io::sink()).and(Err(ended())),
            "die" => {
                self.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{")?;
                Err(ended())
            }
            "abort" => Err(ended()),
            _ => self.json(&answer),
        }
    }

    fn listen(&mut self, id: &Value, params: &Value) -> io::Result<()> {
        let stream = self.stream.try_clone()?;
        self.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        )?;
        let acknowledged = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {SUBSCRIPTION: id}, "notifications": at(params, &["notifications"])},
        });
        self.write(format!("data: {acknowledged}\n\n").as_bytes())?;
        self.lock_listens().push((self.request.path.clone(), id.clone(), stream));
        io::copy(&mut &*self.stream, &mut io::sink()).and(Err(ended()))
    }

    fn announce(&self) {
        self.lock_listens().retain_mut(|(path, id, stream)| {
            if *path != self.request.path {
                return true;
            }
            let changed = json!({
                "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                "params": {"_meta": {SUBSCRIPTION: id}},
            });
            (0..20).all(|_| stream.write_all(format!("data: {changed}\n\n").as_bytes()).is_ok())
        });
    }

    fn result(&mut self, id: &Value, result: &Value) -> io::Result<()> {
        self.json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn json(&mut self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        let length = text.len();
        let session = match at(&self.request.body, &["method"]) == "initialize" {
            true => format!("Mcp-Session-Id: {}\r\n", session()),
            false => String::new(),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\n{session}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        self.write(format!("{head}{text}").as_bytes())
    }

    /// A stream of events that the server ends.
    fn events(&mut self, before: &[Value], noise: &str, after: &[&Value]) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        self.write(head.as_bytes())?;
        for message in before {
            self.chunk(format!("data: {message}\n\n").as_bytes())?;
        }
        if !noise.is_empty() {
            self.chunk(noise.as_bytes())?;
        }
        for message in after {
            self.chunk(format!("event: message\ndata: {message}\n\n").as_bytes())?;
        }
        self.chunk(b"")
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.stream).write_all(bytes)
    }

    fn lock_listens(&self) -> std::sync::MutexGuard<'_, Vec<(String, Value, TcpStream)>> {
        self.listens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of everybody, as long as this process lives.
fn session() -> String {
    format!("soak-{}", std::process::id())
}

/// `null` where there is none.
fn at<'v>(value: &'v Value, names: &[&str]) -> &'v Value {
    let step = |value: &'v Value, name: &&str| value.get(*name);
    names.iter().try_fold(value, step).unwrap_or(&Value::Null)
}

fn ended() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}
