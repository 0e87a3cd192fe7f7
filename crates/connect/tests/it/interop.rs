//! Servers of other SDKs, each over both transports and in the eras it has, all on the same tour;
//! `cargo xtask test --peers` brings the SDKs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_connect::{
    Canceller, ConnectOptions, Connection, Era, EraHint, ErrorKind, HttpEndpoint, RequestOptions,
    ServerName, StdioCommand,
};
use plenipo_testkit::{ChildGuard, Deadline, find_tool, peers, requires};
use plenipo_wire::views::ContentBlock;

use crate::input::puppet::Puppet;
use crate::support::{call, request, said};

/// Starting a server of a large SDK on a loaded machine.
const START: Duration = Duration::from_secs(90);

/// A program that serves, in front of `stdio` or `http PORT`.
struct Server {
    program: PathBuf,
    arguments: Vec<PathBuf>,
    /// Whether its `ask` works in the modern era.
    asks_when_modern: bool,
    /// Whether it keeps sessions for legacy clients behind a URL, without which it cannot ask.
    has_sessions: bool,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/interop").join(name)
}

/// The server, or nothing when the SDKs are not there.
fn server(name: &str) -> Option<Server> {
    let needed = if name == "rmcp" { "interop-rust/bin" } else { "interop-python" };
    let Some(peers) = peers().filter(|peers| peers.join(needed).exists()) else {
        requires("real servers (cargo xtask test --peers)", false);
        return None;
    };
    let python = peers.join("interop-python/bin/python3");
    Some(match name {
        "typescript" => Server {
            program: find_tool("node")?,
            arguments: vec![script("typescript_sdk.mjs"), peers.join("interop-node/node_modules")],
            asks_when_modern: true,
            has_sessions: false,
        },
        "rmcp" => Server {
            program: peers.join("interop-rust/bin/interop-rmcp"),
            arguments: Vec::new(),
            asks_when_modern: true,
            has_sessions: true,
        },
        "fastmcp" => Server {
            program: python,
            arguments: vec![script("fastmcp_server.py")],
            asks_when_modern: false,
            has_sessions: true,
        },
        _ => Server {
            program: python,
            arguments: vec![script("python_sdk.py")],
            asks_when_modern: false,
            has_sessions: true,
        },
    })
}

fn options(era: EraHint) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.start_timeout = START;
    options.probe_timeout = START;
    options.era = era;
    options.input = Some(Puppet::accepting(r#"{"name":"Ada"}"#));
    options
}

impl Server {
    async fn stdio(&self, era: EraHint) -> Connection {
        let mut command = StdioCommand::new(&self.program);
        command.args(&self.arguments).args(["stdio"]).environment([("PATH", "/usr/bin:/bin")]);
        let name = ServerName::new("peer").unwrap();
        Connection::start(name, &command, options(era)).await.unwrap()
    }

    /// Starts it and waits until it listens.
    fn serve(&self) -> (ChildGuard, u16) {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        #[expect(clippy::disallowed_methods, reason = "a peer of the test")]
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["http", &port.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let guard = ChildGuard::new(child);
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(Deadline::poll_until(START, listens), "it listens");
        (guard, port)
    }
}

async fn http(port: u16, era: EraHint) -> Connection {
    let endpoint = HttpEndpoint::new(&format!("http://127.0.0.1:{port}/mcp")).unwrap();
    let name = ServerName::new("peer").unwrap();
    Connection::connect(name, &endpoint, options(era)).await.unwrap()
}

/// Everything that the servers of the tests have in common.
async fn tour(connection: &Connection, asks: bool) {
    let catalog = connection.catalog().await.unwrap();
    assert!(catalog.dropped().is_empty(), "{:?}", catalog.dropped());
    assert_eq!(catalog.tools().count(), 5);
    assert_eq!(said(connection, "echo", r#"{"message":"hello"}"#).await, "echo: hello");
    kinds(connection).await;
    progress_and_cancellation(connection).await;
    if asks {
        assert!(said(connection, "ask", "{}").await.ends_with("accept: Ada"));
    }
    let options = RequestOptions::default();
    let resources = connection.resources(&options).await.unwrap().items;
    assert_eq!(resources.iter().map(|one| one.uri()).collect::<Vec<_>>(), ["data://notes"]);
    let templates = connection.resource_templates(&options).await.unwrap().items;
    assert_eq!(templates[0].uri_template(), "data://item/{number}");
    let read = connection.read_resource("data://item/7", &options).await.unwrap();
    assert_eq!(read.view().unwrap().contents[0].text.as_deref(), Some("item 7"));
    let prompts = connection.prompts(&options).await.unwrap().items;
    assert!(prompts[0].view().unwrap().arguments[0].required);
    let filled = connection.prompt(prompts[0].name(), &[("name", "Ada")], &options).await.unwrap();
    let view = filled.view().unwrap();
    assert!(
        matches!(&view.messages[0].content[..], [ContentBlock::Text(text)] if text == "Greet Ada.")
    );
    connection.shut_down().await;
}

async fn kinds(connection: &Connection) {
    let outcome = call(connection, "kinds", "{}").await.unwrap();
    let view = outcome.view().unwrap();
    let [text, image, audio, link, resource] = &view.content[..] else {
        panic!("{}", outcome.result())
    };
    assert!(matches!(text, ContentBlock::Text(text) if text == "t"));
    assert!(matches!(image, ContentBlock::Image { mime_type, .. } if mime_type == "image/png"));
    assert!(matches!(audio, ContentBlock::Audio { data, .. } if data == "AAE="));
    assert!(matches!(link, ContentBlock::ResourceLink { name, .. } if name == "l"));
    assert!(matches!(resource, ContentBlock::Resource { blob: Some(blob), .. } if blob == "AAE="));
}

async fn progress_and_cancellation(connection: &Connection) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let mut three = request(connection, "steps", r#"{"count":3}"#).await;
    three.progress = Some(Arc::new({
        let steps = Arc::clone(&steps);
        move |update| steps.lock().unwrap().push((update.progress, update.total))
    }));
    connection.call(three).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0].map(|step| (step, Some(3.0))));

    let canceller = Arc::new(Canceller::new());
    let mut long = request(connection, "wait", "{}").await;
    long.cancel = Some(canceller.cancellation());
    long.progress = Some(Arc::new(move |_| canceller.cancel("enough")));
    let error = connection.call(long).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(said(connection, "echo", r#"{"message":"still"}"#).await, "echo: still");
}

/// Both transports, in both eras.
async fn everywhere(name: &str) {
    let Some(server) = server(name) else { return };
    for era in [EraHint::Unknown, EraHint::Legacy] {
        let connection = server.stdio(era).await;
        let is_modern = connection.era() == Era::Modern;
        assert_eq!(is_modern, era == EraHint::Unknown);
        tour(&connection, !is_modern || server.asks_when_modern).await;
    }
    let (_guard, port) = server.serve();
    for era in [EraHint::Unknown, EraHint::Legacy] {
        let connection = http(port, era).await;
        let is_modern = connection.era() == Era::Modern;
        assert_eq!(is_modern, era == EraHint::Unknown);
        let asks = if is_modern { server.asks_when_modern } else { server.has_sessions };
        tour(&connection, asks).await;
    }
}

#[tokio::test]
async fn interop_python_sdk() {
    everywhere("python").await;
}

#[tokio::test]
async fn interop_fastmcp() {
    everywhere("fastmcp").await;
}

#[tokio::test]
async fn interop_rust_sdk() {
    everywhere("rmcp").await;
}

#[tokio::test]
async fn interop_typescript_sdk() {
    everywhere("typescript").await;
}
