//! A host for the server, over an in-memory connection, and a launcher that enforces nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plenipo_server_workspace::{OperatorPolicy, ServeError, ServerOptions, serve_on};
use plenipo_testkit::Fixture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const LIMIT: Duration = Duration::from_secs(30);
const LAUNCHER: &str = include_str!("../data/launcher.sh");

/// The host's end of a connection.
pub(crate) struct Host {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<Result<(), ServeError>>,
    /// Notifications that came before an answer that was waited for.
    pub(crate) notifications: Vec<Value>,
}

impl Host {
    pub(crate) fn new(options: ServerOptions) -> Self {
        let (input, server_input) = tokio::io::duplex(1 << 16);
        let (server_output, output) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(serve_on(options, server_input, server_output));
        let output = BufReader::new(output).lines();
        Self { input: Some(input), output, server, notifications: Vec::new() }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    /// The next message, as its text.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        timeout(LIMIT, self.output.next_line()).await.expect("a message in time").unwrap()
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = self.next_line().await.expect("the connection is open");
        serde_json::from_str(&line).unwrap()
    }

    /// The next answer; notifications before it are kept.
    pub(crate) async fn answer(&mut self) -> Value {
        loop {
            let message = self.next().await;
            if message.get("method").is_none() {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub(crate) async fn request(&mut self, id: i64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string()).await;
        self.answer().await
    }

    /// Sends a call of `run`, with `meta` as raw text.
    pub(crate) async fn start(&mut self, id: i64, arguments: &Value, meta: &str) {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"run","arguments":{arguments},"_meta":{meta}}}}}"#
        ))
        .await;
    }

    /// Calls `run` and gives its result.
    pub(crate) async fn call(&mut self, arguments: Value, meta: &str) -> Value {
        self.start(1, &arguments, meta).await;
        let mut answer = self.answer().await;
        assert_eq!(answer["id"], 1, "{answer}");
        answer["result"].take()
    }

    /// Closes the connection and waits for the server to end.
    pub(crate) async fn close(&mut self) -> Result<(), ServeError> {
        self.input = None;
        timeout(LIMIT, &mut self.server).await.expect("the server ends").unwrap()
    }
}

/// A launcher in a directory where it writes down what it was given.
pub(crate) struct Launcher {
    pub(crate) fixture: Fixture,
    pub(crate) path: PathBuf,
}

impl Launcher {
    pub(crate) fn new() -> Self {
        let fixture = Fixture::new();
        let path = fixture.executable("launcher", LAUNCHER);
        fixture.directory("record");
        Self { fixture, path }
    }

    /// Options with `variables` for launcher and command.
    pub(crate) fn options(&self, variables: &[(&str, &str)]) -> ServerOptions {
        let mut options = options();
        options.additions.push(("FAKE_RECORD".into(), self.fixture.join("record").into()));
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        options.additions.extend(variables);
        options
    }

    /// `_meta` with this launcher and `state` under the preferred name.
    pub(crate) fn meta(&self, state: &str) -> String {
        meta(state, &self.path)
    }

    /// What the launcher wrote down.
    pub(crate) fn recorded(&self, name: &str) -> String {
        self.fixture.read(format!("record/{name}")).unwrap_or_default()
    }
}

/// A server that requires a launcher; `PATH` is all the environment there is.
pub(crate) fn options() -> ServerOptions {
    let mut options = ServerOptions::default();
    options.inherited_environment.push(("PATH".into(), "/usr/bin:/bin".into()));
    options
}

/// A server whose operator does without.
pub(crate) fn unsandboxed() -> ServerOptions {
    let mut options = options();
    options.operator = OperatorPolicy::AllowUnsandboxed;
    options
}

pub(crate) fn meta(state: &str, launcher: &Path) -> String {
    let launcher = json!({ "codexExecutable": launcher });
    format!(r#"{{"codex/sandbox-state":{state},"codex/sandbox-launcher":{launcher}}}"#)
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}
