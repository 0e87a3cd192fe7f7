//! Rows 37 to 41: signals, exit codes, and what is left of a tree of processes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plenipo_testkit::{ChildGuard, Deadline, PidGuard, processes_with_marker};
use rustix::process::{Pid, Signal, kill_process};

use super::{Seen, seen};
use crate::stage::{Ended, Profile, Stage, Who};

const LIMIT: Duration = Duration::from_secs(20);

/// Starts `command` with its own marker in the environment, and waits for its first line.
fn start(mut command: Command, stage: &Stage) -> (ChildGuard, BufReader<impl Read>, String) {
    let value = stage.path("");
    command.env("PLENIPO_LAUNCH_TEST", &value).stdout(Stdio::piped());
    let mut child = ChildGuard::new(command.spawn().unwrap());
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, lines, format!("PLENIPO_LAUNCH_TEST={value}"))
}

fn gone(marker: &str) -> bool {
    processes_with_marker(marker).is_empty()
}

fn clean_up(marker: &str) {
    for process in processes_with_marker(marker) {
        drop(PidGuard::new(process.pid));
    }
    assert!(Deadline::poll_until(LIMIT, || gone(marker)));
}

pub(super) fn killed_launcher(who: Who) -> Seen {
    let script = "setsid sleep 1000 & sleep 1000 & echo ready; wait";
    let argv = ["/bin/sh", "-c", script];
    let stage = Stage::new(who);
    let (mut child, _, marker) = start(stage.outside(&argv), &stage);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Deadline::poll_until(LIMIT, || !gone(&marker)), "the control left nothing");
    clean_up(&marker);
    let stage = Stage::new(who);
    let (mut child, _, marker) = start(stage.inside(&stage.workspace(), &argv), &stage);
    assert!(!gone(&marker));
    child.kill().unwrap();
    let killed = Instant::now();
    assert!(Deadline::poll_until(LIMIT, || gone(&marker)), "{:?}", processes_with_marker(&marker));
    seen("2 survive", format!("all gone after {} ms", killed.elapsed().as_millis()))
}

pub(super) fn background_child(who: Who) -> Seen {
    let stage = Stage::new(who);
    let script = "setsid sleep 1000 >/dev/null 2>&1 & echo ready";
    let argv = ["/bin/sh", "-c", script];
    let (mut child, _, marker) = start(stage.outside(&argv), &stage);
    child.wait().unwrap();
    assert!(Deadline::poll_until(LIMIT, || !gone(&marker)), "the control left nothing");
    clean_up(&marker);
    let (mut child, _, marker) = start(stage.inside(&stage.workspace(), &argv), &stage);
    assert!(child.wait().unwrap().success());
    assert!(gone(&marker), "{:?}", processes_with_marker(&marker));
    seen("survives", "ends with the command")
}

const SIGNALS: [(&str, Signal); 7] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("HUP", Signal::HUP),
    ("QUIT", Signal::QUIT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("WINCH", Signal::WINCH),
];

fn trapped(command: Command, stage: &Stage, name: &str, signal: Signal) {
    let (mut child, mut lines, marker) = start(command, stage);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("trapped\n", Some(7)), "{name}");
    clean_up(&marker);
}

pub(super) fn signals(who: Who) -> Seen {
    let stage = Stage::new(who);
    for (name, signal) in SIGNALS {
        let script =
            format!("trap 'echo trapped; exit 7' {name}; sleep 1000 >/dev/null & echo ready; wait");
        let argv = ["/bin/sh", "-c", script.as_str()];
        trapped(stage.outside(&argv), &stage, name, signal);
        trapped(stage.inside(&stage.workspace(), &argv), &stage, name, signal);
    }
    let argv = ["/bin/sh", "-c", "echo ready; exec sleep 1000"];
    let (mut child, _, _) = start(stage.inside(&stage.workspace(), &argv), &stage);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    seen("7 trapped", "7 trapped, untrapped TERM: 143")
}

pub(super) fn own_signal(who: Who) -> Seen {
    let stage = Stage::new(who);
    let argv = ["/bin/sh", "-c", "kill -TERM $$; echo alive"];
    let control = stage.outside(&argv).output().unwrap();
    assert_eq!(control.status.signal(), Some(15));
    let ended = stage.run(&stage.workspace(), &argv);
    assert_eq!((ended.code, ended.stdout.as_str()), (143, ""));
    seen("SIGTERM", "143")
}

/// What a shell would call a status.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}

pub(super) fn exit_codes(who: Who) -> Seen {
    let stage = Stage::new(who);
    let profile = stage.workspace();
    let samples = ["exit 0", "exit 1", "exit 2", "exit 77", "exit 125", "exit 128", "exit 255"];
    for script in samples.into_iter().chain(["kill -KILL $$", "kill -SEGV $$", "kill -INT $$"]) {
        let argv = ["/bin/sh", "-c", script];
        let control = code(stage.outside(&argv).output().unwrap().status);
        let ended = stage.run(&profile, &argv);
        assert_eq!(ended.code, control, "{script}: {ended:?}");
        assert_eq!(ended.report.expect("a report")["status"], "enforced", "{script}");
    }
    let plain = stage.fixture.file("ws/plain", "");
    let unusable: [(&str, i32); 5] = [
        ("/no/such/program", 127),
        ("no-such-program-on-path", 127),
        (plain.to_str().unwrap(), 126),
        ("/etc", 126),
        ("/etc/hostname/x", 127),
    ];
    for (program, wanted) in unusable {
        let Ended { code, stderr, .. } = stage.run(&profile, &[program]);
        assert_eq!(code, wanted, "{program}: {stderr}");
        assert!(stderr.contains(program), "{stderr}");
    }
    seen("10 codes", "the same; 126 and 127")
}

/// Row 44: nothing wider comes of it, and on the default rungs nothing at all.
pub(super) fn nested_sandbox(who: Who) -> Seen {
    let stage = Stage::new(who);
    let inner = |minimum: &str, profile: &Profile| {
        let options = ["--minimum-rung", minimum];
        let script = "echo x > new || echo kept; echo ran";
        let words = stage.launch_words(profile, &options, &["/bin/sh", "-c", script]);
        stage.run(&stage.workspace(), &words)
    };
    let narrower = stage.profile().root("read");
    let control = stage.sh(&narrower, "echo ran");
    assert_eq!(control.assert_ok().stdout, "ran\n");
    let ended = inner("full", &narrower);
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    let ended = inner("landlock", &narrower);
    assert_eq!(ended.assert_ok().stdout, "kept\nran\n", "{ended:?}");
    let ended = inner("landlock", &stage.workspace());
    assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    seen("runs", "refused, or narrower by landlock")
}
