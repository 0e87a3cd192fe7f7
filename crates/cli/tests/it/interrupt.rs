//! Ctrl-C in the middle leaves nothing behind.

use std::process::Stdio;
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, processes_with_marker};

use crate::support::{Bench, as_each_user, data, python};

#[test]
fn an_interrupted_call_ends_its_server_and_the_command() {
    as_each_user(|bench| {
        for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
            interrupt(bench, signal, code);
        }
    });
}

fn interrupt(bench: &Bench, signal: &str, code: i32) {
    let value = format!("interrupt-{signal}-{}-{:p}", std::process::id(), bench);
    let ready = bench.workspace.join("ready");
    let mut call = bench.command(["call", "workspace.run", "command=touch ready; sleep 300"]);
    // TERM is on the list of what reaches servers and commands, and so it marks the whole tree.
    call.env("TERM", &value).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = ChildGuard::new(call.spawn().unwrap());
    let marker = format!("TERM={value}");
    assert!(Deadline::poll_until(Duration::from_secs(20), || ready.exists()));
    assert!(processes_with_marker(&marker).len() >= 3, "the call, its server, the launcher");
    let kill = ["kill".to_owned(), format!("-{signal}"), child.id().to_string()];
    assert!(std::process::Command::new("/usr/bin/env").args(kill).status().unwrap().success());
    let mut status = None;
    assert!(Deadline::poll_until(Duration::from_secs(20), || {
        status = child.try_wait().unwrap();
        status.is_some()
    }));
    assert_eq!(status.unwrap().code(), Some(code), "{signal}");
    let gone = || processes_with_marker(&marker).is_empty();
    assert!(
        Deadline::poll_until(Duration::from_secs(10), gone),
        "{:?}",
        processes_with_marker(&marker)
    );
    std::fs::remove_file(ready).unwrap();
}

/// A call of `tool` on the fake server, started by `program` if there is one, with its log.
fn call_of_peer(
    bench: &Bench,
    tool: &str,
    extra: &str,
    arguments: &[&str],
) -> Option<std::process::Command> {
    let python = python()?;
    let server = data("../connect/tests/data/servers/peer.py").display().to_string();
    let log = bench.fixture.join("log").display().to_string();
    let config = bench.configuration(&format!(
        "[mcp_servers.peer]\ncommand = {python:?}\nargs = [{server:?}]\n\
         [mcp_servers.peer.env]\nPYTHONDONTWRITEBYTECODE = \"1\"\nF_LOG = {log:?}\n{extra}\n"
    ));
    let target = format!("peer.{tool}");
    let words = ["call", "--config", &config, &target].into_iter().chain(arguments.iter().copied());
    Some(bench.command(words))
}

/// It goes by the list that it was typed by.
#[test]
fn a_server_that_announces_a_change_as_it_starts_is_asked_for_its_tools_once() {
    let bench = Bench::new();
    let twice = "F_LIST = \"twice\"";
    let Some(mut call) = call_of_peer(&bench, "line", twice, &[]) else { return };
    assert!(call.stdout(Stdio::null()).status().unwrap().success());
    let log = bench.fixture.read("log").unwrap();
    assert_eq!(log.matches("tools/list\"").count(), 1, "{log}");
}

#[test]
fn the_first_interruption_cancels_at_the_server_and_the_second_ends_at_once() {
    for twice in [false, true] {
        let bench = Bench::new();
        // Which waits for the server.
        let waits = ["--verbose"];
        let stubborn = "F_STUBBORN = \"1\"";
        let Some(mut call) = call_of_peer(&bench, "silent", stubborn, &waits) else { return };
        let mut child =
            ChildGuard::new(call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let log = || bench.fixture.read("log").unwrap_or_default();
        let limit = Duration::from_secs(20);
        assert!(Deadline::poll_until(limit, || log().contains("tools/call")));
        let interrupt = || {
            let kill = ["kill".to_owned(), "-INT".to_owned(), child.id().to_string()];
            assert!(
                std::process::Command::new("/usr/bin/env").args(kill).status().unwrap().success()
            );
        };
        interrupt();
        assert!(
            Deadline::poll_until(limit, || log().contains("cancelled: interrupted")),
            "{}",
            log()
        );
        if twice {
            interrupt();
        }
        let mut status = None;
        assert!(Deadline::poll_until(limit, || {
            status = child.try_wait().unwrap();
            status.is_some()
        }));
        assert_eq!(status.unwrap().code(), Some(130));
        assert_eq!(log().contains("sigterm_ignored"), !twice, "the second one does not wait");
    }
}

#[test]
fn progress_is_a_bar_on_a_terminal_and_nothing_in_a_pipe() {
    let bench = Bench::new();
    let steps = ["--args", r#"{"steps":4,"every":0}"#];
    let Some(mut call) = call_of_peer(&bench, "steps", "", &steps) else { return };
    let piped = crate::support::Ran::of(call.env("TERM", "xterm").output().unwrap());
    piped.expect(0);
    assert_eq!((&*piped.stdout, &*piped.stderr), ("done\n", ""));

    // Its terminal is both streams, and says what was drawn.
    let terminal = "
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while data := os.read(master, 4096):
        sys.stdout.buffer.write(data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    let words: Vec<_> = call.get_args().map(ToOwned::to_owned).collect();
    let mut on_terminal = bench.command_of(python().unwrap().into(), ["-c", terminal]);
    on_terminal.arg(bench.program()).args(words).env("TERM", "xterm").stdin(Stdio::null());
    let shown = crate::support::Ran::of(on_terminal.output().unwrap());
    shown.expect(0);
    assert!(shown.stdout.contains("[============>           ]  50 % step 2"), "{:?}", shown.stdout);
    assert!(shown.stdout.ends_with("\r\u{1b}[Kdone\r\n"), "it is taken away: {:?}", shown.stdout);
}

#[test]
fn a_call_that_waits_for_input_or_for_its_reader_can_be_ended() {
    let bench = Bench::new();
    let config = bench.configuration("");
    let waits_for_input = ["call", "--config", &config, "workspace.run", "--args", "-"];
    let floods = [
        "call",
        "--config",
        &config,
        "workspace.run",
        "command=head -c 900000 /dev/zero | tr '\\0' x; touch flooded",
    ];
    for (words, is_flood) in [(&waits_for_input[..], false), (&floods[..], true)] {
        for signal in ["INT", "TERM"] {
            let mut call = bench.command(words);
            call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = ChildGuard::new(call.spawn().unwrap());
            let reads = || std::fs::read_to_string(format!("/proc/{}/wchan", child.id())).is_ok();
            let ready =
                || if is_flood { bench.fixture.exists("workspace/flooded") } else { reads() };
            assert!(Deadline::poll_until(Duration::from_secs(20), ready));
            let mut ended = false;
            // The signal may come before the program listens or blocks; it is asked again until it has ended.
            assert!(Deadline::poll_until(Duration::from_secs(20), || {
                let kill = ["kill".to_owned(), format!("-{signal}"), child.id().to_string()];
                drop(
                    std::process::Command::new("/usr/bin/env")
                        .args(kill)
                        .stderr(Stdio::null())
                        .status(),
                );
                ended = child.try_wait().unwrap().is_some();
                ended
            }));
            std::fs::remove_file(bench.workspace.join("flooded")).unwrap_or(());
        }
    }
}
