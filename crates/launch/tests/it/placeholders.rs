//! Placeholders for missing protected names: there while a sandbox runs, gone afterwards, nobody else's removed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plenipo_testkit::{ChildGuard, Deadline, processes_with_marker};

use crate::stage::{Stage, Who};

const NAMES: [&str; 4] = [".agents", ".aws", ".codex", ".git"];

/// A sandbox that runs until its standard input ends.
fn running(stage: &Stage) -> ChildGuard {
    let mut command: Command =
        stage.inside(&stage.workspace(), &["/bin/sh", "-c", "echo ready; exec cat"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = ChildGuard::new(child);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn finish(mut child: ChildGuard) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn placeholders_are_there_during_a_launch_and_gone_after_it() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let child = running(&stage);
        assert_eq!(stage.fixture.names("ws"), NAMES);
        for name in NAMES {
            let metadata = stage.fixture.join("ws").join(name).metadata().unwrap();
            assert!(metadata.is_dir() && metadata.mode() & 0o7777 == 0o555, "{name}");
        }
        finish(child);
        assert!(stage.fixture.names("ws").is_empty());
    }
}

#[test]
fn an_empty_directory_of_the_users_own_stays() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("ws/.git");
        stage.fixture.directory("ws/.aws");
        stage.fixture.set_mode("ws/.aws", 0o555);
        stage.fixture.file("ws/.codex", "");
        stage.sh(&stage.workspace(), ":").assert_ok();
        assert_eq!(stage.fixture.names("ws"), [".aws", ".codex", ".git"]);
    }
}

#[test]
fn a_launch_that_still_runs_keeps_what_it_shares() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let (first, second) = (running(&stage), running(&stage));
        finish(first);
        assert_eq!(stage.fixture.names("ws"), NAMES);
        stage.sh(&stage.workspace(), "mkdir .git/x && echo made || :").assert_ok();
        assert_eq!(stage.fixture.names("ws"), NAMES);
        finish(second);
        assert!(stage.fixture.names("ws").is_empty());
    }
}

#[test]
fn what_a_killed_launcher_left_is_taken_over() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let mut child = running(&stage);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stage.fixture.names("ws"), NAMES);
        // The killed tree may hold its copies a moment longer.
        assert!(Deadline::poll_until(Duration::from_secs(20), || {
            stage.sh(&stage.workspace(), ":").assert_ok();
            stage.fixture.names("ws").is_empty()
        }));
    }
}

#[test]
fn twenty_parallel_launches_leave_nothing_and_miss_nothing() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let script = "mkdir .git .codex .aws .agents 2>/dev/null; ls -A | tr '\\n' ' '; test -w .git && echo writable";
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let argv = ["/bin/sh", "-c", script];
                    let output = stage.inside(&stage.workspace(), &argv).output().unwrap();
                    let said = String::from_utf8_lossy(&output.stdout);
                    for name in NAMES {
                        assert!(said.contains(name), "{output:?}");
                    }
                    assert!(!said.contains("writable"), "{output:?}");
                });
            }
        });
        assert!(stage.fixture.names("ws").is_empty(), "{:?}", stage.fixture.names("ws"));
    }
}

/// A directory's owner can give itself the right to write that it lacks when the launch begins.
#[test]
fn a_root_that_is_closed_for_now_is_refused_because_its_owner_can_open_it() {
    let stage = Stage::new(Who::User);
    stage.fixture.set_mode("ws", 0o555);
    let ended = stage.sh(&stage.workspace(), "chmod 755 . && mkdir .git && echo made");
    ended.assert_refused("reserve");
    stage.fixture.set_mode("ws", 0o755);
    assert!(stage.fixture.names("ws").is_empty());
}

/// Whoever can read a left-over placeholder can lock it; a launch then neither waits for ever nor goes without.
#[test]
fn a_left_over_placeholder_that_stays_locked_is_refused_by_name() {
    let stage = Stage::new(Who::everybody()[0]);
    let mut child = running(&stage);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = fs::File::open(stage.fixture.join("ws/.git")).unwrap();
    left.lock().unwrap();
    stage.sh(&stage.workspace(), "echo ran").assert_refused(".git");
    drop(left);
    stage.sh(&stage.workspace(), ":").assert_ok();
    assert!(stage.fixture.names("ws").is_empty(), "{:?}", stage.fixture.names("ws"));
}

#[test]
fn a_refused_launch_leaves_nothing_behind() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.sh(&stage.workspace().cwd(&stage.path("gone")), ":").assert_refused("gone");
        stage.fixture.symlink("ws/.aws", "/");
        stage.sh(&stage.workspace(), ":").assert_refused(".aws");
        assert_eq!(stage.fixture.names("ws"), [".aws"]);
    }
}

#[test]
fn a_umask_that_forbids_everything_changes_nothing() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.directory("out");
        let profile = stage.workspace().path("deny", &stage.path("out")).network("enabled");
        let mut words: Vec<std::ffi::OsString> =
            ["/bin/sh", "-c", "umask 0777; exec \"$0\" \"$@\""].map(Into::into).to_vec();
        let script = "umask; stat -c %a .git /dev/shm /dev/pts; echo x > /dev/null";
        words.extend(stage.launch_words(&profile, &[], &["/bin/sh", "-c", script]));
        let mut command = stage.command(words);
        let output = command.output().unwrap();
        std::io::stderr().write_all(&output.stderr).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0777\n555\n1777\n755\n");
        assert!(stage.fixture.names("ws").is_empty());
    }
}

#[test]
fn a_set_group_id_root_gets_placeholders_that_are_recognised() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        fs::set_permissions(stage.fixture.join("ws"), PermissionsExt::from_mode(0o2775)).unwrap();
        stage.sh(&stage.workspace(), ":").assert_ok();
        assert!(stage.fixture.names("ws").is_empty());
    }
}

fn mounts_below(place: &str) -> usize {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.contains(place)).count()
}

fn descriptors_below(place: &str) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let leads =
        |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(place));
    entries.filter(leads).count()
}

/// Row 45.
#[test]
fn two_hundred_parallel_launches_with_crashes_leave_nothing() {
    for who in Who::everybody() {
        parallel_launches(who, 200);
    }
}

/// Row 45 in the table of all rows.
pub(crate) fn forty_parallel_launches(who: Who) -> (String, String) {
    parallel_launches(who, 40);
    ("n/a: needs launches".to_owned(), "nothing left of 40, 8 killed".to_owned())
}

/// A fifth of the launchers is killed half-way; the next launch takes over what they left.
fn parallel_launches(who: Who, launches: usize) {
    const WORKERS: usize = 8;
    const KILLED: usize = 5;
    let stage = Stage::new(who);
    stage.fixture.file("ws/kept/file", "kept");
    let name = stage.path("ws");
    let next = AtomicUsize::new(0);
    let launch = |number: usize| {
        let script = format!(
            "echo {number} > n{number}; mkdir .git .codex 2>/dev/null && echo made; echo ready; test {} = 0 && exec sleep 1000; :",
            number % KILLED
        );
        let mut command = stage.inside(&stage.workspace(), &["/bin/sh", "-c", &script]);
        command.env("ROW_45", &name).stdout(Stdio::piped());
        let mut child = ChildGuard::new(command.spawn().unwrap());
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "launch {number}");
        if number.is_multiple_of(KILLED) {
            child.kill().unwrap();
        }
        let killed = child.wait().unwrap().signal() == Some(9);
        assert_eq!(killed, number.is_multiple_of(KILLED));
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= launches {
                        return;
                    }
                    launch(number);
                }
            });
        }
    });
    let marker = format!("ROW_45={name}");
    let gone = || processes_with_marker(&marker).is_empty();
    assert!(Deadline::poll_until(Duration::from_secs(20), gone));
    let mut names = Vec::new();
    // A process lets go of its memory before its descriptors: a lock may outlive the last sign of its holder.
    let clean = Deadline::poll_until(Duration::from_secs(20), || {
        stage.sh(&stage.workspace(), ":").assert_ok();
        names = stage.fixture.names("ws");
        let mut others = names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b"n"));
        others.all(|name| name == "kept")
    });
    assert!(clean, "as {}: {names:?}", who.name());
    assert_eq!(names.len(), launches + 1);
    assert_eq!(stage.fixture.read("ws/kept/file").as_deref(), Some("kept"));
    assert_eq!(mounts_below(&name), 0);
    assert_eq!(descriptors_below(&name), 0);
}
