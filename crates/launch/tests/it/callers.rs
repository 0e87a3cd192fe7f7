//! Callers with an odd process state: streams, signals, descriptors.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use crate::stage::{Ended, Profile, Stage, Who};

/// A launch whose caller is `sh -c` with `before` in front of it.
fn after(stage: &Stage, before: &str, profile: &Profile, script: &str) -> Ended {
    let exec = format!("{before} exec \"$0\" \"$@\"");
    let mut words: Vec<OsString> = ["/bin/sh", "-c", &exec].map(Into::into).to_vec();
    words.extend(stage.launch_words(profile, &[], &["/bin/sh", "-c", script]));
    Ended::of(&stage.command(words).output().unwrap())
}

#[test]
fn a_directory_as_a_standard_stream_is_refused() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let exec = "exec \"$0\" \"$@\" </";
        let mut words: Vec<OsString> = ["/bin/sh", "-c", exec].map(Into::into).to_vec();
        words.extend(stage.launch_words(&stage.workspace(), &[], &["/bin/echo", "ran"]));
        let ended = Ended::of(&stage.command(words).output().unwrap());
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
        assert!(ended.stderr.contains("stdin is a directory"), "{ended:?}");
    }
}

/// A datagram socket can be aimed anew with every message.
#[test]
fn a_datagram_socket_as_a_standard_stream_is_refused_while_the_network_is_off() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let (one, _other) = UnixDatagram::pair().unwrap();
        let run = |profile: &Profile| {
            let stdin = Stdio::from(OwnedFd::from(one.try_clone().unwrap()));
            let mut command: Command = stage.inside(profile, &["/bin/echo", "ran"]);
            Ended::of(&command.stdin(stdin).output().unwrap())
        };
        let ended = run(&stage.workspace());
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
        assert!(ended.stderr.contains("stdin is a datagram socket"), "{ended:?}");
    }
}

#[test]
fn a_stream_socket_as_a_standard_stream_works() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut &other, b"hello\n").unwrap();
        drop(other);
        let mut command = stage.inside(&stage.workspace(), &["/bin/cat"]);
        let output = command.stdin(OwnedFd::from(one)).output().unwrap();
        assert_eq!(output.stdout, b"hello\n", "{output:?}");
    }
}

#[test]
fn closed_standard_streams_get_nothing_of_the_launcher() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("ws/.git");
        let script =
            "for f in 0 1 2; do readlink /proc/self/fd/$f; done > seen; ls /proc/self/fd >> seen";
        let profile = stage.workspace().path("deny", &stage.path("home"));
        after(&stage, "exec <&- >&- 2>&-;", &profile, script);
        // Descriptor 1 is the file `seen`, and `ls` opens the directory as 3.
        let file = stage.path("ws/seen");
        let wanted = format!("/dev/null\n{file}\n/dev/null\n0\n1\n2\n3\n");
        assert_eq!(stage.fixture.read("ws/seen"), Some(wanted));
    }
}

#[test]
fn a_caller_that_ignores_child_signals_still_gets_the_exit_code() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let ended = after(&stage, "trap '' CHLD;", &stage.workspace(), "/bin/true; exit 7");
        assert_eq!(ended.code, 7, "{ended:?}");
    }
}

#[test]
fn an_ignored_signal_stays_ignored_in_the_command() {
    let stage = Stage::new(Who::everybody()[0]);
    let ended = after(&stage, "trap '' HUP;", &stage.workspace(), "kill -HUP $$; echo alive");
    assert_eq!(ended.assert_ok().stdout, "alive\n");
}

#[test]
fn the_command_starts_with_no_signal_blocked() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let ended =
            stage.sh(&stage.workspace(), "grep -E 'SigBlk|NoNewPrivs|Cap' /proc/self/status");
        for line in ended.assert_ok().stdout.lines() {
            let value = line.split_whitespace().last().unwrap();
            let wanted = if line.starts_with("NoNewPrivs") { "1" } else { "0000000000000000" };
            assert_eq!(value, wanted, "{line}");
        }
    }
}

#[test]
fn the_command_cannot_see_the_report() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let ended = stage.sh(&stage.workspace(), "ls /proc/self/fd; echo x >&9");
        assert_eq!(ended.stdout, "0\n1\n2\n3\n", "{ended:?}");
        assert_eq!(ended.report.as_ref().unwrap()["status"], "enforced");
    }
}

/// The report is complete when the command's first instruction runs.
#[test]
fn the_report_is_written_before_the_command_starts() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let ended = stage.run_words(
            {
                let profile = stage.workspace();
                let argv = ["/bin/sh", "-c", "cat \"$REPORT\""];
                stage.launch_words(&profile, &["--report-fd", "9"], &argv)
            },
            &[],
        );
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(Some(report), ended.report);
    }
}

#[test]
fn the_command_knows_that_the_network_is_off() {
    let stage = Stage::new(Who::everybody()[0]);
    let script = "echo ${CODEX_SANDBOX_NETWORK_DISABLED-unset}";
    assert_eq!(stage.sh(&stage.workspace(), script).stdout, "1\n");
    assert_eq!(stage.sh(&stage.workspace().network("enabled"), script).stdout, "unset\n");
}

/// A program on a `PATH` with a closed directory is not found, rather than not allowed.
#[test]
fn a_rule_below_a_foreign_closed_directory_does_not_stop_an_ordinary_user() {
    if !plenipo_testkit::requires("root, to make a foreign directory", plenipo_testkit::is_root()) {
        return;
    }
    let foreign = plenipo_testkit::Fixture::new();
    foreign.file("closed/secret", "secret");
    foreign.set_mode("closed", 0o700);
    let stage = Stage::new(Who::User);
    let secret = foreign.join("closed/secret").display().to_string();
    let profile = stage.workspace().path("deny", &secret);
    let ended = stage.sh(&profile, &format!("cat {secret} || echo hidden"));
    assert_eq!(ended.assert_ok().stdout, "hidden\n");
    assert!(ended.report.as_ref().unwrap()["notes"].to_string().contains("out of reach"));
}
