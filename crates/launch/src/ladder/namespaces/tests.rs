//! Steps that are not carried out, or carried out wrongly: the self-check finds each, and nothing runs.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use plenipo_policy::State;
use plenipo_testkit::{Fixture, OrdinaryUser, is_root, ordinary_user, requires};
use rustix::process::{DumpableBehavior, Gid, Uid, WaitOptions};
use serde_json::json;

use super::*;
use crate::enter::enter_wrongly;
use crate::ladder::Purpose;
use crate::launcher::LaunchRequest;
use crate::plan::{Action, Base};
use crate::prepare::{payload, prepare};

/// A mistake in what is carried out.
struct Fault {
    name: &'static str,
    /// Applied to the plan that is executed; the self-check has the right one.
    change: fn(&mut LaunchPlan),
    /// Done when everything is mounted.
    afterwards: fn(),
    /// What the refusal says of the place.
    found: &'static str,
}

const NOTHING: fn() = || {};

const FAULTS: &[Fault] = &[
    Fault {
        name: "everything stays writable",
        change: |plan| plan.base = Base::Writable,
        afterwards: NOTHING,
        found: "/ should be read-only",
    },
    Fault {
        name: "a carve-out is left out",
        change: |plan| remove(plan, "ws/kept"),
        afterwards: NOTHING,
        found: "ws/kept should be read-only",
    },
    Fault {
        name: "a carve-out is made writable",
        change: |plan| show(plan, "ws/kept", false),
        afterwards: NOTHING,
        found: "ws/kept should be read-only",
    },
    Fault {
        name: "a protected name is left out",
        change: |plan| remove(plan, "ws/.git"),
        afterwards: NOTHING,
        found: "ws/.git should be read-only",
    },
    Fault {
        name: "a denied directory in a writable one is left out",
        change: |plan| remove(plan, "ws/secret"),
        afterwards: NOTHING,
        found: "ws/secret should be read-only",
    },
    Fault {
        name: "a denied directory is shown read-only",
        change: |plan| show(plan, "ws/secret", true),
        afterwards: NOTHING,
        found: "ws/secret",
    },
    Fault {
        name: "a denied directory in a read-only one is left out",
        change: |plan| remove(plan, "out/hidden"),
        afterwards: NOTHING,
        found: "out/hidden should be masked",
    },
    Fault {
        name: "a denied file is left out",
        change: |plan| remove(plan, "out/key"),
        afterwards: NOTHING,
        found: "out/key should be masked",
    },
    Fault {
        name: "a file that a pattern denies is left out",
        change: |plan| remove(plan, "ws/.env"),
        afterwards: NOTHING,
        found: "ws/.env should be read-only",
    },
    Fault {
        name: "kernel settings stay writable",
        change: |_| {},
        afterwards: || unmount("/proc/sys"),
        found: "/proc/sys should be read-only",
    },
    Fault {
        name: "a mask falls off again",
        change: |_| {},
        afterwards: || unmount_below("out/hidden"),
        found: "out/hidden should be masked",
    },
];

fn remove(plan: &mut LaunchPlan, place: &str) {
    let before = plan.covers.len();
    plan.covers.retain(|cover| !cover.path.ends_with(place));
    assert_eq!(plan.covers.len() + 1, before, "{place} is no cover of {:?}", plan.covers);
}

fn show(plan: &mut LaunchPlan, place: &str, read_only: bool) {
    let cover = plan.covers.iter_mut().find(|cover| cover.path.ends_with(place)).unwrap();
    cover.action = Action::Show { read_only };
    cover.identity = None;
}

fn unmount(place: &str) {
    rustix::mount::unmount(place, rustix::mount::UnmountFlags::DETACH).unwrap();
}

/// Of the stage: its working directory is the one that a launch begins in.
fn unmount_below(place: &str) {
    let here = rustix::process::getcwd(Vec::new()).unwrap().into_string().unwrap();
    unmount(&format!("{here}/{place}"));
}

/// Where one launch happens.
fn stage(owner: OrdinaryUser) -> Fixture {
    let fixture = Fixture::owned_by(owner);
    for directory in ["ws/kept", "ws/secret", "out/hidden"] {
        fixture.directory(directory);
    }
    for file in ["ws/kept/file", "ws/secret/file", "out/hidden/file", "out/key", "ws/.env"] {
        fixture.file(file, "secret");
    }
    fixture
}

fn request(fixture: &Fixture) -> LaunchRequest {
    let place = |relative: &str| fixture.join(relative).display().to_string();
    let path = |access: &str, relative: &str| json!({"path": {"type": "path", "path": place(relative)}, "access": access});
    let state = json!({
        "permissionProfile": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                path("write", "ws"), path("read", "ws/kept"), path("deny", "ws/secret"),
                path("deny", "out/hidden"), path("deny", "out/key"),
                {"path": {"type": "glob_pattern", "pattern": "**/*.env"}, "access": "deny"},
            ]},
            "network": "restricted",
        },
        "sandboxCwd": format!("file://{}", place("ws")),
    });
    let state = State::parse(&state.to_string()).unwrap();
    let policy = state.profile.resolve(&state.resolve_context()).unwrap();
    let script = "echo x > ran; echo ran";
    LaunchRequest::new(policy, ["/bin/sh", "-c", script].map(Into::into).to_vec())
}

/// Launches in the calling process, which ends afterwards.
fn launch(fixture: &Fixture, enter: Enter<'_>) -> Result<u8, LaunchError> {
    let request = request(fixture);
    let prepared = prepare(&request, payload(&request)?)?;
    sys::restore_child_signal();
    let mask = sys::block_signals().map_err(|error| LaunchError::step("block signals", error))?;
    let privileged = rustix::process::geteuid().is_root();
    let attempt = Attempt {
        request: &request,
        prepared: &prepared,
        purpose: Purpose::Run,
        rung: if privileged { Rung::FullPrivileged } else { Rung::Full },
        unavailable: &[],
        mask: &mask,
        launcher: rustix::process::getpid(),
    };
    attempt_by(enter, &attempt, &mut None)
}

/// The same in a forked process of `user`: its exit code, and why it was refused. A fork has one thread, which a launch
/// needs and a test does not have.
fn launched(fixture: &Fixture, user: OrdinaryUser, enter: Enter<'_>) -> (i32, String) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let Fork::Parent(child) = sys::fork().unwrap() else {
        drop(reader);
        become_user(user);
        rustix::process::chdir(fixture.path()).unwrap();
        let outcome = launch(fixture, enter);
        let said = outcome.as_ref().err().map(LaunchError::to_line).unwrap_or_default();
        File::from(writer).write_all(said.as_bytes()).unwrap();
        sys::exit_now(i32::from(outcome.unwrap_or(125)));
    };
    drop(writer);
    let mut said = String::new();
    File::from(reader).read_to_string(&mut said).unwrap();
    let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
    (status.exit_status().unwrap_or(-1), said)
}

fn become_user(OrdinaryUser { uid, gid, .. }: OrdinaryUser) {
    if rustix::process::geteuid().as_raw() == uid {
        return;
    }
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&[]).unwrap();
    rustix::thread::set_thread_res_gid(group, group, group).unwrap();
    rustix::thread::set_thread_res_uid(user, user, user).unwrap();
    // A change of user closes `/proc/self`, where the maps of a user namespace are written.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
}

fn everybody() -> Vec<OrdinaryUser> {
    if requires("root, for the half that runs as root", is_root()) {
        vec![OrdinaryUser { uid: 0, gid: 0 }, ordinary_user()]
    } else {
        vec![ordinary_user()]
    }
}

#[test]
fn every_kind_of_step_that_goes_wrong_is_found_before_the_command_runs() {
    for user in everybody() {
        let fixture = stage(user);
        let (code, said) = launched(&fixture, user, &enter);
        assert_eq!((code, said.as_str()), (0, ""), "the control as {}", user.uid);
        assert!(fixture.exists("ws/ran"), "the control did not run");
        std::fs::remove_file(fixture.join("ws/ran")).unwrap();
        for Fault { name, change, afterwards, found } in FAULTS {
            let wrongly = |plan: &LaunchPlan, confinement: &Confinement<'_>| {
                let mut executed = plan.clone();
                change(&mut executed);
                enter_wrongly(&executed, plan, confinement, afterwards)
            };
            let (code, said) = launched(&fixture, user, &wrongly);
            assert_eq!(code, 125, "{name} as {}: {said}", user.uid);
            assert!(said.contains("\"kind\":\"self-check\""), "{name} as {}: {said}", user.uid);
            assert!(said.contains(found), "{name} as {}: {said}", user.uid);
            assert!(!fixture.exists("ws/ran"), "{name} as {}: it ran", user.uid);
            assert_eq!(names(&fixture.join("ws")), [".env", "kept", "secret"], "{name}");
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
