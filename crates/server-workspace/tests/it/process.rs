//! The server as a process: its own stdin, stdout and signals (`examples/serve.rs`).

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, built_binary, processes_with_marker};
use rustix::process::{Pid, Signal, kill_process};

struct Server {
    child: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    marker: String,
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program it is about")]
fn start(name: &str) -> Server {
    let value = format!("{name}-{}", std::process::id());
    let mut child = Command::new(built_binary("examples/serve"))
        .arg("--allow-unsandboxed")
        .env("TZ", &value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    let output = BufReader::new(child.stdout.take().unwrap());
    Server { child: ChildGuard::new(child), input, output, marker: format!("TZ={value}") }
}

impl Server {
    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn call(&mut self, id: u8, command: &str) {
        self.send(&format!(
            r#"{{"id":{id},"method":"tools/call","params":{{"name":"run","arguments":{{"command":"{command}"}}}}}}"#
        ));
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn sleepers(&self) -> usize {
        let all = processes_with_marker(&self.marker);
        all.iter().filter(|process| process.command.starts_with("sleep")).count()
    }

    fn ends_with_all(mut self) {
        let limit = Duration::from_secs(20);
        assert!(Deadline::poll_until(limit, || self.child.try_wait().unwrap().is_some()));
        assert!(self.child.wait().unwrap().success());
        assert_eq!(processes_with_marker(&self.marker), []);
    }
}

#[test]
fn it_serves_its_own_streams_until_stdin_ends() {
    let mut server = start("stdin");
    server.call(1, "echo over stdio");
    assert!(server.answer().contains(r#""stdout":"over stdio\n""#));
    server.call(2, "sleep 1000 & sleep 1001");
    assert!(Deadline::poll_until(Duration::from_secs(20), || server.sleepers() == 2));
    server.input = None;
    server.ends_with_all();
}

#[test]
fn signals_end_it_and_its_commands() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut server = start("signal");
        server.call(1, "sleep 1000 & sleep 1001");
        assert!(Deadline::poll_until(Duration::from_secs(20), || server.sleepers() == 2));
        kill_process(Pid::from_child(&server.child), signal).unwrap();
        server.ends_with_all();
    }
}

#[test]
fn a_host_that_does_not_read_cannot_keep_it_alive() {
    let mut server = start("deaf");
    for id in 0..20 {
        server.call(id, "head -c 1000000 /dev/zero");
    }
    server.call(99, "sleep 1000 & sleep 1001");
    assert!(Deadline::poll_until(Duration::from_secs(20), || server.sleepers() == 2));
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.ends_with_all();
}
