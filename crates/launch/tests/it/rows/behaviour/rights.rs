//! Rows 4 and 19: what a file's own attributes could give.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use plenipo_testkit::{is_root, ordinary_user, requires};

use super::{Seen, seen};
use crate::stage::{Ended, Stage, Who};

/// A rule covers a path, not a file: other names of a protected file are named in the report.
pub(super) fn existing_hard_link(who: Who) -> Seen {
    let stage = Stage::new(who);
    let kept = stage.fixture.file("ws/kept", "kept");
    std::fs::hard_link(&kept, stage.fixture.join("ws/other")).unwrap();
    let ended = stage.sh(&stage.workspace().path("read", &stage.path("ws/kept")), "echo ran");
    let notes = ended.report.as_ref().expect("a report")["notes"].to_string();
    assert!(notes.contains("has 2 hard links"), "{notes}");
    std::fs::remove_file(stage.fixture.join("ws/other")).unwrap();
    let single = stage.sh(&stage.workspace().path("read", &stage.path("ws/kept")), "echo ran");
    assert!(!single.report.expect("a report")["notes"].to_string().contains("hard links"));
    seen("n/a: nobody reports", "reported")
}

fn copied(stage: &Stage, tool: &str) -> String {
    let place = stage.path("capable");
    let status = Command::new("/bin/cp").args([tool, &place]).status().unwrap();
    assert!(status.success());
    place
}

const NOT_ROOT: &str = "root, to make a file that gives rights";

pub(super) fn set_user_id(who: Who) -> Seen {
    if !requires(NOT_ROOT, is_root()) {
        return seen("n/a: only root makes such files", "not run");
    }
    let stage = Stage::new(who);
    let other = if who == Who::Root { ordinary_user().uid } else { 0 };
    let program = copied(&stage, "/usr/bin/id");
    chown(&program, Some(other), None).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let control = Ended::of(&stage.outside(&[&program, "-u"]).output().unwrap());
    assert_eq!(control.stdout.trim(), other.to_string(), "the control gains nothing: {control:?}");
    let ended = stage.run(&stage.workspace(), &[&program, "-u"]);
    assert_eq!(ended.stdout.trim(), who.ids().uid.to_string(), "{ended:?}");
    seen("succeeds", "no other user")
}

pub(super) fn file_capability(who: Who) -> Seen {
    if !requires(NOT_ROOT, is_root()) {
        return seen("n/a: only root makes such files", "not run");
    }
    let stage = Stage::new(who);
    let program = copied(&stage, "/usr/bin/grep");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    // struct vfs_cap_data, revision 2, effective: CAP_NET_RAW (capabilities(7)).
    let mut capability = vec![0u8; 20];
    capability[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
    capability[4..8].copy_from_slice(&(1u32 << 13).to_le_bytes());
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&program, "security.capability", &capability, flags).unwrap();
    let argv = [program.as_str(), "CapEff", "/proc/self/status"];
    let control = Ended::of(&stage.outside(&argv).output().unwrap());
    assert!(!control.stdout.contains("0000000000000000"), "the control gains nothing: {control:?}");
    let ended = stage.run(&stage.workspace(), &argv);
    assert_eq!(ended.stdout.split_whitespace().last(), Some("0000000000000000"), "{ended:?}");
    seen("succeeds", "no capability")
}
