//! Starting fake servers and reading what they saw.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    CallOutcome, CallRequest, ConnectError, ConnectOptions, Connection, Grace, HttpEndpoint,
    ServerName, StdioCommand,
};
use plenipo_testkit::{ChildGuard, Deadline, Fixture, find_tool};
use plenipo_wire::views::ContentBlock;
use plenipo_wire::{Fragment, RawValue, object};

/// A server to be started, and what is seen of it.
pub(crate) struct Fake {
    pub(crate) options: ConnectOptions,
    pub(crate) command: StdioCommand,
    pub(crate) seen: Arc<Recorder>,
    pub(crate) marker: String,
    fixture: Fixture,
}

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) stderr: Mutex<Vec<String>>,
}

impl Observer for Recorder {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Warning { text, .. } => self.warnings.lock().unwrap().push((*text).to_owned()),
            Event::Stderr { line, .. } => self.stderr.lock().unwrap().push((*line).to_owned()),
            _ => {}
        }
    }
}

impl Recorder {
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }
}

impl Fake {
    /// The script `NAME.py` with `F_…` variables.
    pub(crate) fn new(script: &str, variables: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let marker = format!("F_MARKER={}-{number}", std::process::id());
        let fixture = Fixture::new();
        let script = servers().join(format!("{script}.py"));
        let mut command = StdioCommand::new(python());
        command
            .args([script])
            .environment([("F_LOG", fixture.join("log"))])
            .environment([marker.split_once('=').unwrap()])
            .environment(variables.iter().copied())
            .environment([("PYTHONDONTWRITEBYTECODE", "1"), ("PATH", "/usr/bin:/bin")]);
        let seen = Arc::new(Recorder::default());
        let mut options = ConnectOptions::default();
        options.grace = Grace::new(Duration::from_millis(300), Duration::from_millis(300));
        options.observer = Arc::clone(&seen) as Arc<dyn Observer>;
        Self { options, command, seen, marker, fixture }
    }

    pub(crate) async fn start(&self) -> Result<Connection, ConnectError> {
        let name = ServerName::new("fake").unwrap();
        Connection::start(name, &self.command, self.options.clone()).await
    }

    /// Values of the log entries `event`.
    pub(crate) fn log(&self, event: &str) -> Vec<Box<RawValue>> {
        entries(&self.fixture, event)
    }

    /// Methods the server received, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.log("in").iter().filter_map(|entry| member(entry, "method")).collect()
    }

    /// Parameters of each received `method`.
    pub(crate) fn params(&self, method: &str) -> Vec<String> {
        let received = self.log("in");
        let of_method = received.iter().filter(|e| member(e, "method").as_deref() == Some(method));
        of_method.map(|e| object::member(e, "params").unwrap().get().to_owned()).collect()
    }

    /// A program that passes for a launcher.
    pub(crate) fn launcher(&self) -> PathBuf {
        let path = self.fixture.join("launcher");
        write_program(&path, "#!/bin/sh\necho --sandbox-state-json\n");
        path
    }

    pub(crate) fn processes(&self) -> usize {
        plenipo_testkit::processes_with_marker(&self.marker).len()
    }
}

/// An HTTP server that runs the script `NAME.py`; it ends with its guard.
pub(crate) struct Script {
    pub(crate) options: ConnectOptions,
    pub(crate) seen: Arc<Recorder>,
    urls: Box<RawValue>,
    fixture: Fixture,
    _process: ChildGuard,
}

impl Script {
    pub(crate) fn start(script: &str) -> Self {
        let fixture = Fixture::new();
        #[expect(clippy::disallowed_methods, reason = "a peer of the test")]
        let mut child = std::process::Command::new(python())
            .arg(servers().join(format!("{script}.py")))
            .env_clear()
            .env("F_LOG", fixture.join("log"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let urls = serde_json::from_str(ready.strip_prefix("READY ").unwrap()).unwrap();
        let seen = Arc::new(Recorder::default());
        let mut options = ConnectOptions::default();
        options.observer = Arc::clone(&seen) as Arc<dyn Observer>;
        Self { options, seen, urls, fixture, _process: ChildGuard::new(child) }
    }

    pub(crate) fn endpoint(&self, name: &str) -> HttpEndpoint {
        HttpEndpoint::new(&member(&self.urls, name).unwrap()).unwrap()
    }

    pub(crate) async fn connect(
        &self,
        endpoint: &HttpEndpoint,
    ) -> Result<Connection, ConnectError> {
        let name = ServerName::new("script").unwrap();
        Connection::connect(name, endpoint, self.options.clone()).await
    }

    /// The log entries `event`, raw.
    pub(crate) fn log(&self, event: &str) -> Vec<Box<RawValue>> {
        entries(&self.fixture, event)
    }
}

/// An executable file.
pub(crate) fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn entries(fixture: &Fixture, event: &str) -> Vec<Box<RawValue>> {
    let log = fixture.read("log").unwrap_or_default();
    log.lines()
        .map(|line| serde_json::from_str::<Box<RawValue>>(line).unwrap())
        .filter(|entry| member(entry, "ev").as_deref() == Some(event))
        .collect()
}

fn servers() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/servers")
}

/// The interpreter itself: a wrapper that only finds it would be timed and logged too.
pub(crate) fn python() -> PathBuf {
    find_tool("python3").expect("python3 on PATH")
}

pub(crate) fn member(raw: &RawValue, name: &str) -> Option<String> {
    object::member(raw, name).and_then(object::text).map(Into::into)
}

/// A call without a sandbox state.
pub(crate) async fn request(connection: &Connection, tool: &str, arguments: &str) -> CallRequest {
    let arguments = Fragment::parse(arguments).unwrap();
    CallRequest::new(tool, Some(arguments), connection.capture(None).await)
}

pub(crate) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: &str,
) -> Result<CallOutcome, ConnectError> {
    connection.call(request(connection, tool, arguments).await).await
}

/// The text of the first block.
pub(crate) fn text(outcome: &CallOutcome) -> String {
    match outcome.view().unwrap().content.first() {
        Some(ContentBlock::Text(text)) => text.to_string(),
        other => panic!("no text: {other:?}"),
    }
}

/// The call's text.
pub(crate) async fn said(connection: &Connection, tool: &str, arguments: &str) -> String {
    text(&call(connection, tool, arguments).await.unwrap())
}

/// Waits until `condition` holds, letting other tasks run.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(Duration::from_secs(10));
    while !condition() {
        assert!(!deadline.has_passed(), "it never came to that");
        tokio::task::yield_now().await;
    }
}
