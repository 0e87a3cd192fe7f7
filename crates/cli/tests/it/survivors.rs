//! Nothing that a local server starts is left, however the program ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plenipo_testkit::{ChildGuard, Deadline, PidGuard};

use crate::support::{Bench, data, python};

const MANY: Duration = Duration::from_secs(20);

/// A server that answers `line` and never answers `silent`, started in one of several ways; a number in the arguments
/// of what it leaves running marks its whole tree, whatever becomes of environments and sessions.
struct Tree {
    bench: Bench,
    config: String,
    mark: String,
}

/// Direct; below a shell that waits; with a daemon that left group, session and parents and has no environment.
const MANNERS: [&str; 3] = [
    "exec PYTHON SERVER",
    "exec 3<&0; PYTHON SERVER <&3 & wait",
    "setsid sh -c 'env -i sleep 6MARK & exit' & env -i sh -c 'sleep 6MARK & sleep 6MARK' & exec PYTHON SERVER",
];

impl Tree {
    fn new(manner: &str) -> Option<Self> {
        Self::with(manner, "")
    }

    /// `DONE` in the manner is a file that is not there yet; `keys` are more of the server's.
    fn with(manner: &str, keys: &str) -> Option<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let python = python()?;
        let bench = Bench::new();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{:06}{number:03}", std::process::id() % 1_000_000);
        let server = data("../connect/tests/data/servers/peer.py").display().to_string();
        let script = manner
            .replace("PYTHON", &python)
            .replace("SERVER", &format!("{server} 6{mark}"))
            .replace("MARK", &mark)
            .replace("DONE", &bench.fixture.join("done").display().to_string());
        let config = bench.configuration(&format!(
            "[mcp_servers.peer]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n{keys}\n\
             [mcp_servers.peer.env]\nPYTHONDONTWRITEBYTECODE = \"1\"\nF_LOG = {:?}\n",
            bench.fixture.join("log").display().to_string()
        ));
        Some(Self { bench, config, mark })
    }

    fn call(&self, tool: &str) -> ChildGuard {
        self.call_with(tool, &[])
    }

    fn call_with(&self, tool: &str, options: &[&str]) -> ChildGuard {
        let target = format!("peer.{tool}");
        let mut call = self.bench.command(["call", "--config", &self.config, &target]);
        call.args(options);
        call.stdout(Stdio::null()).stderr(Stdio::piped());
        ChildGuard::new(call.spawn().unwrap())
    }

    /// Waits until the server has the call, with everything it started.
    fn wait_for_call(&self) {
        let called = || {
            let log = self.bench.fixture.read("log").unwrap_or_default();
            log.contains("tools/call") && !self.alive().is_empty()
        };
        assert!(Deadline::poll_until(MANY, called), "{:?}", self.alive());
    }

    /// Processes of the tree: number and command.
    fn alive(&self) -> Vec<(i32, String)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            if command.contains(&format!("6{}", self.mark)) {
                found.push((pid, command));
            }
        }
        found
    }

    fn assert_gone(&self, when: &str) {
        let gone = Deadline::poll_until(Duration::from_secs(10), || self.alive().is_empty());
        let left = self.alive();
        for (pid, _) in &left {
            drop(PidGuard::new(*pid));
        }
        assert!(gone, "{when}: {left:?}");
    }
}

fn send(signal: &str, pid: i32) {
    let words = ["kill".to_owned(), format!("-{signal}"), pid.to_string()];
    assert!(Command::new("/usr/bin/env").args(words).status().unwrap().success());
}

fn ended(child: &mut ChildGuard) -> Option<i32> {
    let mut status = None;
    assert!(Deadline::poll_until(MANY, || {
        status = child.try_wait().unwrap();
        status.is_some()
    }));
    status.unwrap().code()
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_killed_program_leaves_nothing() {
    for manner in MANNERS {
        for signal in ["KILL", "HUP", "TERM"] {
            let Some(tree) = Tree::new(manner) else { return };
            let mut call = tree.call("silent");
            tree.wait_for_call();
            send(signal, call.id().try_into().unwrap());
            let code = ended(&mut call);
            let expected = match signal {
                "HUP" => Some(129),
                "TERM" => Some(143),
                _ => None,
            };
            assert_eq!(code, expected, "{signal} {manner}");
            tree.assert_gone(&format!("{signal} {manner}"));
        }
    }
}

#[test]
fn a_finished_command_leaves_nothing_at_the_moment_it_ends() {
    for manner in MANNERS {
        for (keys, options) in [("shutdown = \"wait\"", &[][..]), ("", &["--verbose"])] {
            let Some(tree) = Tree::with(manner, keys) else { return };
            let mut call = tree.call_with("line", options);
            assert_eq!(ended(&mut call), Some(0), "{manner}");
            assert_eq!(tree.alive(), [], "{manner}");
        }
    }
}

#[test]
fn a_finished_command_leaves_nothing_for_long() {
    for manner in MANNERS {
        let Some(tree) = Tree::new(manner) else { return };
        let mut call = tree.call("line");
        assert_eq!(ended(&mut call), Some(0), "{manner}");
        tree.assert_gone(manner);
    }
}

/// Nor for what it prints: nobody else holds the command's stdout.
#[test]
fn a_finished_command_does_not_wait_for_its_server() {
    let stays = "PYTHON SERVER; exec sleep 6MARK";
    let Some(tree) = Tree::new(stays) else { return };
    let call = tree.bench.command(["call", "--config", &tree.config, "peer.line"]).output();
    let alive = tree.alive();
    assert_eq!(call.unwrap().status.code(), Some(0));
    assert!(alive.iter().any(|(_, command)| command.contains("sleep")), "{alive:?}");
    tree.assert_gone("it was asked to end");
    let Some(tree) = Tree::new(stays) else { return };
    let list = tree.bench.command(["tools", "peer", "--config", &tree.config]).output();
    assert_eq!(list.unwrap().status.code(), Some(0));
    assert!(!tree.alive().is_empty());
    tree.assert_gone("it was asked to end after a listing");
}

#[test]
fn the_next_run_of_a_server_begins_when_the_one_before_has_ended() {
    let once = "mkdir DONE || exit 9; PYTHON SERVER 6MARK; sleep 0.3; rmdir DONE";
    let Some(tree) = Tree::new(once) else { return };
    for run in 0..3 {
        let mut call = tree.call("line");
        assert_eq!(ended(&mut call), Some(0), "run {run}");
    }
    tree.assert_gone("the last one");
}

/// More than a pipe holds.
#[test]
fn a_server_can_still_write_when_its_command_is_done() {
    let writes = "PYTHON SERVER 6MARK; head -c 300000 /dev/zero >&2 && head -c 300000 /dev/zero && echo >DONE";
    let Some(tree) = Tree::new(writes) else { return };
    let mut call = tree.call("line");
    assert_eq!(ended(&mut call), Some(0));
    assert!(Deadline::poll_until(MANY, || tree.bench.fixture.exists("done")));
    tree.assert_gone("it wrote and ended");
}

#[test]
fn a_lost_server_takes_what_it_started_with_it() {
    let Some(tree) = Tree::new(MANNERS[2]) else { return };
    let mut call = tree.call("silent");
    tree.wait_for_call();
    let is_server = |(_, command): &&(i32, String)| command.contains("peer.py");
    let server = tree.alive().iter().find(is_server).unwrap().0;
    send("KILL", server);
    assert_eq!(ended(&mut call), Some(3));
    assert_eq!(tree.alive(), []);
}

#[test]
fn a_server_whose_keeper_is_killed_is_ended_too() {
    for both in [false, true] {
        let Some(tree) = Tree::new(MANNERS[2]) else { return };
        let mut call = tree.call("silent");
        tree.wait_for_call();
        let is_server = |(_, command): &&(i32, String)| command.contains("peer.py");
        let keeper = parent(tree.alive().iter().find(is_server).unwrap().0);
        let program: i32 = call.id().try_into().unwrap();
        assert_eq!(parent(parent(keeper)), program);
        if both {
            let words =
                ["kill".to_owned(), "-KILL".to_owned(), program.to_string(), keeper.to_string()];
            // Either may be gone before its turn comes, as the other is.
            Command::new("/usr/bin/env").args(words).stderr(Stdio::null()).status().unwrap();
            ended(&mut call);
        } else {
            send("KILL", keeper);
            assert_eq!(ended(&mut call), Some(3));
        }
        tree.assert_gone("its keeper was killed");
    }
}

/// It starts daemons, and then turns on those who keep it: `$PPID`, and `$above` who keeps that.
const HOSTILE: &str = "setsid sh -c 'env -i sleep 6MARK & exit' & env -i sh -c 'sleep 6MARK & sleep 6MARK' & \
     read -r _ _ _ above _ </proc/$PPID/stat; SABOTAGE; exec PYTHON SERVER";

fn ends_in_time(sabotage: &str, code: i32) {
    let Some(tree) = Tree::new(&HOSTILE.replace("SABOTAGE", sabotage)) else { return };
    let begun = Instant::now();
    let mut call = tree.call_with("silent", &["--timeout", "3s"]);
    assert_eq!(ended(&mut call), Some(code), "{sabotage}");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{sabotage}: {took:?}");
    assert_eq!(tree.alive(), [], "{sabotage}");
}

#[test]
fn a_server_that_stops_its_keeper_holds_nobody_past_the_timeout() {
    for sabotage in ["kill -STOP $PPID", "kill -STOP $above", "kill -STOP $PPID $above"] {
        ends_in_time(sabotage, 124);
    }
}

#[test]
fn a_server_that_kills_its_keepers_is_ended_by_the_command_itself() {
    ends_in_time("kill -KILL $PPID $above", 3);
    ends_in_time("kill -KILL $above; kill -STOP $PPID", 124);
}

/// Nobody else is there to end it then.
#[test]
fn a_stopped_keeper_whose_program_is_killed_is_ended_by_the_one_above() {
    let Some(tree) = Tree::new(&HOSTILE.replace("SABOTAGE", "true")) else { return };
    let mut call = tree.call("silent");
    tree.wait_for_call();
    let is_server = |(_, command): &&(i32, String)| command.contains("peer.py");
    let keeper = parent(tree.alive().iter().find(is_server).unwrap().0);
    send("STOP", keeper);
    send("KILL", call.id().try_into().unwrap());
    ended(&mut call);
    tree.assert_gone("its keeper was stopped");
}
