//! Something between the launcher and the kernel, an outer filter, answers in the kernel's place that all went well.

use super::machine::Machine;
use super::{lacking, run};
use crate::stage::{Profile, Stage};

/// Nothing runs, and no placeholder stays.
#[track_caller]
fn assert_refused(machine: Machine, profile: fn(&Stage) -> Profile, text: &str) {
    for stage in lacking(machine) {
        let ended = run(&stage, &profile(&stage), "landlock", "echo ran");
        ended.assert_refused(text);
        let kind = &ended.report.as_ref().unwrap()["reason"]["kind"];
        assert!(kind == "self-check" || kind == "setup", "{machine:?}: {ended:?}");
        assert!(stage.fixture.names("ws").is_empty(), "{machine:?}: a placeholder stayed");
    }
}

/// No rule of it needs a mount.
fn readable(stage: &Stage) -> Profile {
    stage.profile().root("read")
}

fn writable(stage: &Stage) -> Profile {
    stage.profile().root("write")
}

/// Just what a shell needs.
fn minimal(stage: &Stage) -> Profile {
    stage.profile().special("read", "minimal").path("read", &stage.path("ws"))
}

#[test]
fn a_network_namespace_that_was_made_in_words_only_is_a_refusal() {
    let off = "the network should be off in the sandbox, and is not";
    assert_refused(Machine::FakedNetwork, Stage::workspace, off);
}

#[test]
fn a_kernel_that_does_not_say_which_network_it_is_is_not_believed() {
    let machine = Machine::Unknown("getsockopt");
    assert_refused(machine, Stage::workspace, "look at the network namespace");
}

#[test]
fn mounts_that_were_made_in_words_only_are_a_refusal() {
    let proc = "/proc should be of its own processes in the sandbox, and is not";
    assert_refused(Machine::Faked("move_mount"), readable, proc);
    let read_only = "/ should be read-only in the sandbox, and is not";
    assert_refused(Machine::Faked("mount_setattr"), readable, read_only);
    let plain = "/ should be without devices and set-user-ID programs in the sandbox, and is not";
    assert_refused(Machine::Faked("mount_setattr"), writable, plain);
}

#[test]
fn a_root_that_was_changed_in_words_only_is_a_refusal() {
    let gone = "the old root should be gone from the sandbox, and is not";
    assert_refused(Machine::Faked("pivot_root"), minimal, gone);
    assert_refused(Machine::Faked("umount2"), minimal, gone);
}

#[test]
fn a_working_directory_that_was_entered_in_words_only_is_a_refusal() {
    let here = "should be the working directory, and is not";
    assert_refused(Machine::Faked("chdir"), Stage::workspace, here);
}

#[test]
fn a_lock_that_was_put_on_in_words_only_is_a_refusal() {
    for (call, what) in [
        ("landlock_restrict_self", "Landlock should be in force in the sandbox, and is not"),
        ("setsid", "the command should have a session of its own, and has not"),
        ("capset", "the command should have no capability, and has not"),
        ("prctl", "the command should have no way to gain privileges, and has not"),
        ("seccomp", "the command should have its system calls filtered, and has not"),
    ] {
        assert_refused(Machine::Faked(call), Stage::workspace, what);
    }
}
