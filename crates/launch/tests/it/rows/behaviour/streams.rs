//! Rows 42 and 43: the standard streams.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::{Seen, seen};
use crate::stage::{Stage, Who};

const SIZE: usize = 8 * 1024 * 1024;

/// Every byte value, in an order that repeats late.
fn bytes() -> Vec<u8> {
    (0..SIZE).map(|index| (index ^ (index >> 8) ^ (index >> 16)).to_le_bytes()[0]).collect()
}

/// What comes out of one of the two streams when `bytes` go in.
fn copied(mut command: Command, errors: bool) -> Vec<u8> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut said: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
    if errors {
        said = Box::new(child.stderr.take().unwrap());
    }
    let writer = std::thread::spawn(move || stdin.write_all(&bytes()).unwrap());
    let mut all = Vec::new();
    said.read_to_end(&mut all).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    all
}

pub(super) fn byte_exact(who: Who) -> Seen {
    let stage = Stage::new(who);
    for (script, errors) in [("exec cat", false), ("exec cat >&2", true)] {
        let argv = ["/bin/sh", "-c", script];
        for command in [stage.outside(&argv), stage.inside(&stage.workspace(), &argv)] {
            let said = copied(command, errors);
            assert!(said == bytes(), "{script} differs: {} bytes", said.len());
        }
    }
    seen("identical", "identical")
}

pub(super) fn reopened_stdout(who: Who) -> Seen {
    let stage = Stage::new(who);
    let argv = ["/bin/sh", "-c", "echo one; echo two >> /dev/stdout; echo three >> /dev/fd/1"];
    for command in [stage.outside(&argv), stage.inside(&stage.workspace(), &argv)] {
        let place = stage.fixture.file("out/log", "");
        let file = std::fs::OpenOptions::new().append(true).open(&place).unwrap();
        let status = { command }.stdout(file).stderr(Stdio::inherit()).status().unwrap();
        assert!(status.success(), "{status}");
        assert_eq!(stage.fixture.read("out/log").as_deref(), Some("one\ntwo\nthree\n"));
    }
    // Another file beside it stays out of reach.
    let script = format!("echo x > {}", stage.path("out/other"));
    assert_ne!(stage.sh(&stage.workspace(), &script).code, 0);
    seen("works", "works")
}
