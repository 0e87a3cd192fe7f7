//! `--tty`, driven from a terminal.

use std::ffi::OsString;
use std::io::Write;
use std::process::Stdio;

use plenipo_testkit::{find_tool, requires};

use crate::stage::{Ended, Stage, Who};

const DRIVER: &str = include_str!("../data/terminal.py");

/// What `scenario` saw of a launch of `argv`, as each user.
fn for_everybody(scenario: &str, argv: &[&str], check: impl Fn(&Stage, &str)) {
    each(scenario, |stage| stage.launch_words(&stage.workspace(), &["--tty"], argv), check);
}

fn each(scenario: &str, words: impl Fn(&Stage) -> Vec<OsString>, check: impl Fn(&Stage, &str)) {
    if !requires("python3 on PATH", find_tool("python3").is_some()) {
        return;
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let driver = stage.fixture.file("terminal.py", DRIVER);
        let mut all: Vec<OsString> = ["/usr/bin/python3", "-I", "-S"].map(Into::into).to_vec();
        all.extend([driver.into(), scenario.into()]);
        all.extend(words(&stage));
        let ended = Ended::of(&stage.command(all).output().unwrap());
        assert!(ended.stderr.is_empty(), "{scenario} as {}: {ended:?}", who.name());
        check(&stage, ended.stdout.trim_end());
        assert!(
            stage.fixture.names("ws").iter().all(|name| !name.as_encoded_bytes().starts_with(b"."))
        );
    }
}

fn sh(script: &str) -> [&str; 3] {
    ["/bin/sh", "-c", script]
}

#[test]
fn the_command_has_a_terminal_of_its_own() {
    let script = "tty; ls -C /dev/pts; test -t 0 -a -t 1 -a -t 2 && echo all three; echo x > /dev/tty; echo y > $(tty); \
                  ps -o stat= -p $$ 2>/dev/null | tr -dc +s; exit 7";
    for_everybody("plain", &sh(script), |_, seen| {
        let lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
        assert_eq!(
            lines[..6],
            ["7 restored", "/dev/pts/0", "0  ptmx", "all three", "x", "y"],
            "{seen}"
        );
    });
}

#[test]
fn the_window_size_is_passed_on_and_followed() {
    let script = "import os, signal\n\
                  def show(): print('size', *reversed(os.get_terminal_size()), flush=True)\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH]); show()\n\
                  signal.sigwait([signal.SIGWINCH]); show()";
    let argv = ["/usr/bin/python3", "-I", "-S", "-c", script];
    for_everybody("size", &argv, |_, seen| assert_eq!(seen, "0 restored"));
}

#[test]
fn control_c_interrupts_the_command_and_not_the_launcher() {
    let script = "trap 'echo interrupted; exit 3' INT; echo ready; read -r line; sleep 1000";
    for_everybody("interrupt", &sh(script), |_, seen| assert_eq!(seen, "3 restored"));
}

#[test]
fn control_backslash_quits_the_command() {
    for_everybody("quit", &sh("echo ready; exec sleep 1000"), |_, seen| {
        assert_eq!(seen, "131 restored");
    });
}

#[test]
fn term_to_the_launcher_ends_the_command_and_restores_the_terminal() {
    for_everybody("killed", &sh("echo ready; exec sleep 1000"), |_, seen| {
        assert_eq!(seen, "143 restored");
    });
}

/// The shell around sees a stopped job and a terminal as it was; `fg` brings the command back.
#[test]
fn control_z_stops_the_job_and_fg_continues_it() {
    let inner = "trap 'echo ready again' CONT; echo ready; while ! read -r line; do :; done; echo got $line; exit 5";
    let outer = "set -m; \"$0\" \"$@\"; echo \"status $? \"; stty -a | grep -q ' icanon' && stty -a | grep -q ' echo ' && echo cooked; \
                 fg >/dev/null; echo \"end $?\"";
    let words = |stage: &Stage| {
        let mut words: Vec<OsString> = ["/bin/bash", "-c", outer].map(Into::into).to_vec();
        let argv = ["/bin/bash", "-c", inner];
        words.extend(stage.launch_words(&stage.workspace(), &["--tty"], &argv));
        words
    };
    each("suspend", words, |_, seen| assert_eq!(seen, "0 restored"));
}

#[test]
fn a_shell_inside_has_jobs_of_its_own() {
    let argv = ["/usr/bin/env", "PS1=$ ", "/bin/bash", "--norc", "--noprofile", "-i"];
    for_everybody("inner-jobs", &argv, |_, seen| assert_eq!(seen, "6 restored"));
}

/// The end of a session empties its terminal; what was written before must have been read.
#[test]
fn the_last_words_of_a_command_are_not_lost() {
    let script = "print('x' * 300000); print('last')";
    for_everybody("bulk", &["/usr/bin/python3", "-I", "-S", "-c", script], |_, seen| {
        assert_eq!(seen, "0 restored 300000 True");
    });
}

#[test]
fn a_command_that_is_missing_is_named_on_its_terminal() {
    for_everybody("plain", &["/no/such/program"], |_, seen| {
        assert!(seen.starts_with("127 restored\n") && seen.contains("/no/such/program"), "{seen}");
    });
}

/// Without a terminal outside there is one inside all the same, and input ends as it would for a person.
#[test]
fn without_a_terminal_outside_input_still_ends() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for (input, wanted) in
            [("one\ntwo", "one\r\ntwoone\r\ntwo"), ("", ""), ("x\n", "x\r\nx\r\n")]
        {
            let mut words = stage.launch_words(&stage.workspace(), &["--tty"], &["/bin/cat"]);
            words[0] = stage.launcher().into();
            let mut command = stage.command(words);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let ended = Ended::of(&child.wait_with_output().unwrap());
            assert_eq!((ended.code, ended.stdout.as_str()), (0, wanted), "{ended:?}");
        }
    }
}

#[test]
fn a_refused_launch_leaves_the_terminal_alone() {
    let words = |stage: &Stage| {
        let profile = stage.workspace().cwd(&stage.path("gone"));
        stage.launch_words(&profile, &["--tty"], &["/bin/true"])
    };
    each("plain", words, |_, seen| {
        assert!(seen.starts_with("125 restored\n") && seen.contains("gone"), "{seen}");
    });
}
