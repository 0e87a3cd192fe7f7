//! Ctrl-C in the middle leaves nothing behind.

use std::process::Stdio;
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, processes_with_marker};

use crate::support::{Bench, as_each_user};

#[test]
fn an_interrupted_call_ends_its_server_and_the_command() {
    as_each_user(|bench| {
        for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 143)] {
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
