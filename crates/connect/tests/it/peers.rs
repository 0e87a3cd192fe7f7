//! Real servers; `cargo xtask test --peers` brings them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plenipo_connect::{
    ConnectOptions, Connection, Fault, HttpEndpoint, RequestOptions, ServerName, StdioCommand,
};
use plenipo_testkit::{ChildGuard, Deadline, find_tool, peers, requires};

use crate::support::{call, request, said};

const MANY: Duration = Duration::from_secs(60);

/// Starts the reference server of the TypeScript SDK and waits until it listens.
fn everything(peers: &Path, port: u16) -> ChildGuard {
    let script =
        peers.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    #[expect(clippy::disallowed_methods, reason = "a peer of the test")]
    let child = Command::new("node")
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let guard = ChildGuard::new(child);
    let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(Deadline::poll_until(MANY, listens), "server-everything listens");
    guard
}

async fn connect(port: u16) -> Connection {
    let endpoint = HttpEndpoint::new(&format!("http://127.0.0.1:{port}/mcp")).unwrap();
    let name = ServerName::new("everything").unwrap();
    Connection::connect(name, &endpoint, ConnectOptions::default()).await.unwrap()
}

#[tokio::test]
async fn server_everything_over_http_is_listed_called_and_survived() {
    let Some(peers) = peers() else {
        requires("real servers (cargo xtask test --peers)", false);
        return;
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = everything(&peers, port);
    let connection = connect(port).await;
    assert!(connection.era().version().starts_with("2025"));
    let catalog = connection.catalog().await.unwrap();
    assert!(catalog.tools().count() >= 8 && catalog.dropped().is_empty());
    assert_eq!(said(&connection, "echo", r#"{"message":"hello"}"#).await, "Echo: hello");

    let steps = std::sync::Arc::new(std::sync::Mutex::new(0));
    let arguments = r#"{"duration":0.4,"steps":4}"#;
    let mut long = request(&connection, "trigger-long-running-operation", arguments).await;
    long.progress = Some(std::sync::Arc::new({
        let steps = std::sync::Arc::clone(&steps);
        move |_| *steps.lock().unwrap() += 1
    }));
    let (long, echo) = tokio::join!(
        connection.call(long),
        call(&connection, "echo", r#"{"message":"meanwhile"}"#)
    );
    assert!(!long.unwrap().is_error() && !echo.unwrap().is_error());
    assert_eq!(*steps.lock().unwrap(), 4);

    // Another process knows nothing of the session.
    drop(server);
    let _server = everything(&peers, port);
    assert_eq!(said(&connection, "echo", r#"{"message":"again"}"#).await, "Echo: again");
    connection.shut_down().await;
}

#[tokio::test]
async fn server_everything_over_stdio_is_listed_called_and_read() {
    let (Some(peers), Some(node)) = (peers(), find_tool("node")) else {
        requires("real servers (cargo xtask test --peers)", false);
        return;
    };
    let script =
        peers.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut command = StdioCommand::new(node);
    command.args([script.as_os_str(), "stdio".as_ref()]).environment([("PATH", "/usr/bin:/bin")]);
    let mut options = ConnectOptions::default();
    options.start_timeout = MANY;
    let name = ServerName::new("everything").unwrap();
    let connection = Connection::start(name, &command, options).await.unwrap();
    assert!(connection.era().version().starts_with("2025"));
    assert_eq!(said(&connection, "echo", r#"{"message":"hello"}"#).await, "Echo: hello");

    let options = RequestOptions::default();
    let resources = connection.resources(&options).await.unwrap();
    assert!(!resources.items.is_empty() && resources.dropped.is_empty());
    let read = connection.read_resource(resources.items[0].uri(), &options).await.unwrap();
    assert!(!read.view().unwrap().contents.is_empty());
    assert!(!connection.resource_templates(&options).await.unwrap().items.is_empty());
    let prompts = connection.prompts(&options).await.unwrap().items;
    let plain = |prompt: &&plenipo_connect::Prompt| prompt.view().unwrap().arguments.is_empty();
    let prompt = prompts.iter().find(plain).unwrap();
    let filled = connection.prompt(prompt.name(), &[], &options).await.unwrap();
    assert!(!filled.view().unwrap().messages.is_empty());
    let error = connection.read_resource("demo://nowhere", &options).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(_)), "{error}");
    assert!(!connection.shut_down().await.killed);
}
