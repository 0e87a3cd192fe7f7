//! The server as a process: its own stdin, stdout and signals. The process is this test executable,
//! told to run one test that serves.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use plenipo_server_workspace::{OperatorPolicy, ServerOptions, serve};
use plenipo_testkit::{ChildGuard, Deadline, processes_with_marker};
use rustix::process::{Pid, Signal, kill_process};

/// Set for the process that serves.
const ROLE: &str = "PLENIPO_TEST_SERVES";

struct Server {
    child: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    marker: String,
}

#[expect(clippy::disallowed_methods, reason = "a test starts the program it is about")]
fn start(name: &str) -> Server {
    let value = format!("{name}-{}", std::process::id());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["process::serves_if_a_test_started_it", "--exact", "--nocapture"])
        .env(ROLE, "1")
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
        // The test harness of the other process has its own words first.
        let mut lines = self.output.by_ref().lines().map(Result::unwrap);
        lines.find(|line| line.starts_with('{')).unwrap()
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
#[expect(clippy::disallowed_methods, reason = "what a test process is told comes this way")]
#[expect(
    clippy::exit,
    reason = "the test harness has something to print, to a host that may not read"
)]
fn serves_if_a_test_started_it() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut options = ServerOptions::default();
    options.operator = OperatorPolicy::AllowUnsandboxed;
    options.inherited_environment = std::env::vars_os().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = runtime.block_on(serve(options));
    drop(runtime);
    std::process::exit(i32::from(served.is_err()));
}

#[test]
fn it_serves_its_own_streams_until_stdin_ends() {
    let mut server = start("stdin");
    server.call(1, "echo over stdio");
    assert!(server.answer().contains(r#""stdout":"over stdio\n""#));
    server.call(2, "readlink /proc/self/fd/0");
    assert!(server.answer().contains(r#""stdout":"/dev/null\n""#));
    server.call(3, "sleep 1000 & sleep 1001");
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
