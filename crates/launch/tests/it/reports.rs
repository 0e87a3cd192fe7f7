//! `--report-fd`: one line, written and closed before the command starts.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use plenipo_testkit::{find_tool, requires};
use serde_json::Value;

use crate::rungs::machine::{Machine, has_bwrap};
use crate::stage::{Ended, Profile, Stage, Who};

/// Looks at the pipe on its standard input before it does anything else: what there is to read, whether anybody can
/// still write, and the line.
const LOOK: &str = "import select, sys
poll = select.poll()
poll.register(0, select.POLLIN)
events = dict(poll.poll(0)).get(0, 0)
print('closed' if events & select.POLLHUP else 'open', file=sys.stderr)
print(sys.stdin.read(), file=sys.stderr, end='')";

/// Runs `words` with descriptor 9 on a pipe whose other end is the command's standard input.
fn looking(stage: &Stage, profile: &Profile, minimum: &str) -> (Ended, Option<Value>) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let options = ["--report-fd", "9", "--minimum-rung", minimum];
    let argv = ["/usr/bin/python3", "-I", "-S", "-c", LOOK];
    let mut command = stage.command(with_nine(stage.launch_words(profile, &options, &argv)));
    command.stdin(reader).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command); // it holds the pipe's other end
    let ended = Ended::of(&child.wait_with_output().unwrap());
    let report = ended.stderr.lines().last().and_then(|line| serde_json::from_str(line).ok());
    (ended, report)
}

fn with_nine(words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let shell = ["/bin/sh", "-c", "exec \"$0\" \"$@\" 9>&1 >/dev/null"].map(Into::into);
    shell.into_iter().chain(words).collect()
}

#[track_caller]
fn assert_closed(stage: &Stage, profile: &Profile, rung: &str) {
    let (ended, report) = looking(stage, profile, rung);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.starts_with("closed\n"), "{ended:?}");
    let report = report.expect("a report");
    let found = report["rung"].as_str().unwrap();
    assert!(found.starts_with(rung) || report["status"] == "disabled", "{report}");
}

#[test]
fn the_report_is_at_its_end_before_the_commands_first_instruction() {
    if !requires("python3 on PATH", find_tool("python3").is_some()) {
        return;
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        assert_closed(&stage, &stage.workspace(), "full");
        let disabled = Profile::whole(&stage.path("ws"), serde_json::json!({"type": "disabled"}));
        assert_closed(&stage, &disabled, "full");
        let machine = Machine::NoUserNamespaces;
        let lacking = machine.stage(who);
        assert_closed(&lacking, &lacking.profile().root("read"), "landlock");
    }
    if has_bwrap() {
        for who in Who::everybody() {
            let stage = Machine::NoClone3.stage(who);
            assert_closed(&stage, &stage.workspace(), "bwrap");
        }
    }
}

/// A reader that waits for the end has it while the command still runs.
#[test]
fn a_reader_has_the_whole_report_while_the_command_runs() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let options = ["--report-fd", "9"];
        let words = stage.launch_words(&stage.workspace(), &options, &["/bin/cat"]);
        let mut command = stage.command(with_nine(words));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = plenipo_testkit::ChildGuard::new(command.spawn().unwrap());
        let mut report = String::new();
        child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        assert_eq!(report.lines().count(), 1, "{report}");
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["status"], "enforced");
        assert!(child.try_wait().unwrap().is_none(), "the command ended before its input");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

/// A report that cannot be written is none: nothing runs.
#[test]
fn a_report_that_cannot_be_written_refuses_the_launch() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for (profile, minimum) in
            [(stage.workspace(), "full"), (stage.profile().root("read"), "landlock")]
        {
            let options = ["--report-fd", "9", "--minimum-rung", minimum];
            let words = stage.launch_words(&profile, &options, &["/bin/echo", "ran"]);
            let full: OwnedFd = File::options().write(true).open("/dev/full").unwrap().into();
            let shell =
                ["/bin/sh", "-c", "exec \"$0\" \"$@\" 9>&2 2>&1"].map(std::ffi::OsString::from);
            let mut command = stage.command(shell.into_iter().chain(words).collect());
            let ended = Ended::of(&command.stderr(full).output().unwrap());
            assert_eq!(ended.code, 125, "{ended:?}");
            assert!(ended.stdout.contains("write the enforcement report"), "{ended:?}");
            assert!(!ended.stdout.contains("ran"), "{ended:?}");
            assert!(stage.fixture.names("ws").is_empty(), "a placeholder stayed");
        }
    }
}

/// A number that nobody handed over is not another file of the launcher's.
#[test]
fn a_number_that_is_not_inherited_is_refused() {
    let stage = Stage::new(Who::everybody()[0]);
    for number in ["3", "4", "99", "-1"] {
        let options = ["--report-fd", number];
        let words = stage.launch_words(&stage.workspace(), &options, &["/bin/echo", "ran"]);
        let ended = Ended::of(&stage.command(words).output().unwrap());
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{number}: {ended:?}");
        assert!(ended.stderr.contains(&format!("descriptor {number}")), "{ended:?}");
    }
}
