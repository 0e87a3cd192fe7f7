//! Row 36: resource limits, and what is said of them.

use std::os::unix::process::ExitStatusExt;

use super::{Seen, seen};
use crate::stage::{Ended, Stage, Who};

/// A crash leaves nothing, however high the limit was outside, and the command cannot raise it again.
pub(super) fn core_files(who: Who) -> Seen {
    let stage = Stage::new(who);
    let crash = "ulimit -c unlimited; ulimit -c; kill -SEGV $$";
    let control = stage.outside(&["/bin/sh", "-c", crash]).output().unwrap();
    assert_eq!(control.status.signal(), Some(11));
    assert_eq!(Ended::of(&control).stdout, "unlimited\n");
    let script = "ulimit -c; ulimit -Hc; ulimit -c 1 2>/dev/null && echo raised; kill -SEGV $$";
    let ended = stage.sh(&stage.workspace(), script);
    assert_eq!((ended.code, ended.stdout.as_str()), (139, "0\n0\n"), "{ended:?}");
    let left = stage.fixture.names("ws");
    assert!(left.is_empty(), "{left:?}");
    seen("unlimited", "0, hard")
}

/// Nothing is called limited that is not: processes, memory and disk are the caller's.
pub(super) fn honest_report(who: Who) -> Seen {
    let stage = Stage::new(who);
    let script = "ulimit -n; ulimit -u; ulimit -v; ulimit -f";
    let control = Ended::of(&stage.outside(&["/bin/bash", "-c", script]).output().unwrap());
    let ended = stage.run(&stage.workspace(), &["/bin/bash", "-c", script]);
    assert_eq!(ended.assert_ok().stdout, control.stdout, "{ended:?}");
    let report = ended.report.as_ref().unwrap();
    assert_eq!(report["limits"], "core files off; nothing else limited");
    seen("the caller's", "the caller's, and reported so")
}
