//! An MCP server with bad manners, for the soak: `soak-server [modern]` on stdin and stdout, `soak-server http PORT` on a
//! port of 127.0.0.1 that it says.
//!
//! Each answer carries the token of its question. `manner` says what happens around it: `plain`,
//! `later` (after `delay` ms, out of order), `dribble` (byte by byte), `noise`, `storm` (list changes),
//! `progress`, `double`, `deaf` (no answer), `die`, `abort`.
#![forbid(unsafe_code)]
#![expect(clippy::exit, reason = "a server of tests: ending in the middle is what it is for")]

mod http;

use std::io::{self, BufRead as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const NOISE: [&[u8]; 6] = [
    b"starting up ...\n",
    b"\xff\xfe not text\n",
    b"\n\r\n",
    b"{\"foo\": [1, 2\n",
    b"[1,2,3]\n{\"jsonrpc\":\"2.0\",\"id\":999999999,\"result\":{}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":\"much\"}}\n",
];

struct Server {
    modern: bool,
    output: Mutex<io::Stdout>,
    listens: Mutex<Vec<Value>>,
}

fn main() {
    if std::env::args().nth(1).is_some_and(|word| word == "http") {
        let port = std::env::args().nth(2).and_then(|word| word.parse().ok());
        return http::serve(port.unwrap_or_default());
    }
    let server = Arc::new(Server {
        modern: std::env::args().nth(1).is_some_and(|word| word == "modern"),
        output: Mutex::new(io::stdout()),
        listens: Mutex::default(),
    });
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            server.take(method, &message);
        }
    }
}

impl Server {
    fn take(self: &Arc<Self>, method: &str, message: &Value) {
        let params = message.get("params").unwrap_or(&Value::Null);
        if method == "notifications/cancelled" {
            let id = params.get("requestId");
            self.lock_listens().retain(|listen| Some(listen) != id);
        }
        let Some(id) = message.get("id") else { return };
        match method {
            "server/discover" if self.modern => self.answer(id, &json!({
                "supportedVersions": ["2026-07-28"], "resultType": "complete",
                "capabilities": {"tools": {"listChanged": true}},
            })),
            "initialize" if !self.modern => self.answer(id, &json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "soak", "version": "1"},
            })),
            "tools/list" => self.answer(id, &json!({
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
            })),
            "tools/call" => self.call(id, params),
            "subscriptions/listen" if self.modern => {
                self.lock_listens().push(id.clone());
                self.notify("notifications/subscriptions/acknowledged", json!({
                    "_meta": {SUBSCRIPTION: id}, "notifications": params.get("notifications"),
                }));
            }
            _ => self.send(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"},
            })),
        }
    }

    fn call(self: &Arc<Self>, id: &Value, params: &Value) {
        let argument = |name: &str| params.get("arguments").and_then(|all| all.get(name));
        let token = argument("token").cloned().unwrap_or_default();
        let result = json!({"content": [{"type": "text", "text": token}]});
        match argument("manner").and_then(Value::as_str).unwrap_or("plain") {
            "later" => {
                let delay = argument("delay").and_then(Value::as_u64).unwrap_or_default();
                let (server, id) = (Arc::clone(self), id.clone());
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(delay));
                    server.answer(&id, &result);
                });
                return;
            }
            "dribble" => {
                let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result}));
                let mut output = self.lock_output();
                for piece in line.as_bytes().chunks(7) {
                    write(&mut output, piece);
                    thread::yield_now();
                }
                return;
            }
            "noise" => NOISE.iter().for_each(|noise| write(&mut self.lock_output(), noise)),
            "storm" => (0..200).for_each(|_| self.announce()),
            "progress" => {
                let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
                for step in 0..50 {
                    let progress = json!({"progressToken": token, "progress": step, "total": 50});
                    self.notify("notifications/progress", progress);
                }
            }
            "double" => self.answer(id, &result),
            "deaf" => return,
            "die" => std::process::exit(9),
            "abort" => std::process::abort(),
            _ => {}
        }
        self.answer(id, &result);
    }

    fn announce(&self) {
        let listens = self.lock_listens().clone();
        let method = "notifications/tools/list_changed";
        if !self.modern {
            self.notify(method, json!({}));
        }
        for listen in listens {
            self.notify(method, json!({"_meta": {SUBSCRIPTION: listen}}));
        }
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn send(&self, message: &Value) {
        write(&mut self.lock_output(), format!("{message}\n").as_bytes());
    }

    fn lock_output(&self) -> std::sync::MutexGuard<'_, io::Stdout> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_listens(&self) -> std::sync::MutexGuard<'_, Vec<Value>> {
        self.listens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Past the line buffer, so that pieces arrive as pieces; a reader that is gone ends the server.
fn write(output: &mut io::Stdout, bytes: &[u8]) {
    if output.write_all(bytes).and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}
