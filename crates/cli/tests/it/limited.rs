//! A network limited to hosts, from the command's side and from the machine's: with real clients, on loopback.

mod around;
mod asked;
mod reach;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use plenipo_testkit::{find_tool, requires};
use serde_json::Value;

use crate::support::{Bench, Ran};

/// A web server on loopback: every answer is what was asked, and then this.
const BODY: &str = "from the server\n";

struct Web {
    port: u16,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || drop(answer(stream)));
            }
        });
        Self { port }
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.extend(byte);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let body = format!("{line}\n{BODY}");
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A configuration with one profile, `web`, whose network is limited to `domains` (TOML).
fn configured(bench: &Bench, domains: &str) -> String {
    bench.configuration(&format!(
        "[permissions.web]\nextends = \":workspace\"\n[permissions.web.network]\nmode = \"limited\"\n{domains}\n"
    ))
}

fn run(bench: &Bench, domains: &str, script: &str) -> Ran {
    let file = configured(bench, domains);
    bench.run(["--config", &file, "sandbox", "-P", "web", "--", "sh", "-c", script])
}

/// The same with what is told at the end.
fn run_to_its_end(bench: &Bench, domains: &str, script: &str) -> (Ran, Value) {
    let file = configured(bench, domains);
    let end = bench.fixture.path().join("end.json");
    let program = bench.program().display().to_string();
    let start = "exec \"$@\" 9>\"$0\"";
    let words = [
        "-c",
        start,
        &end.display().to_string(),
        &program,
        "--config",
        &file,
        "sandbox",
        "-P",
        "web",
        "--end-report-fd",
        "9",
        "--",
        "sh",
        "-c",
        script,
    ];
    let ran = Ran::of(bench.command_of("/bin/sh".into(), words).output().unwrap());
    let text = std::fs::read_to_string(&end).unwrap();
    assert_eq!(text.lines().count(), 1, "{text:?} {ran:?}");
    (ran, serde_json::from_str(&text).unwrap())
}

fn curl() -> bool {
    requires("curl", find_tool("curl").is_some())
}

/// A sandboxed command that runs until its input ends.
fn waiting(bench: &Bench, domains: &str, script: &str) -> Child {
    let file = configured(bench, domains);
    let words = ["--config", &file, "sandbox", "-P", "web", "--", "sh", "-c", script];
    bench
        .command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The first line that a child writes.
fn first_line(child: &mut Child) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    let stdout = child.stdout.as_mut().unwrap();
    while !line.ends_with(b"\n") && stdout.read(&mut byte).unwrap() > 0 {
        line.extend(byte);
    }
    String::from_utf8(line).unwrap()
}
