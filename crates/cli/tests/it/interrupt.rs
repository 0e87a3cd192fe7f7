//! Ctrl-C in the middle leaves nothing behind.

use std::process::Stdio;
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, processes_with_marker};

use crate::support::{Bench, as_each_user};

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
