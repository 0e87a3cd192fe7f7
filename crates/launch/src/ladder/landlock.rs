//! Rung `landlock`: no namespaces and no mounts, for policies that Landlock and the filter can hold alone.
//!
//! ```text
//! launcher (adopts what init leaves) ─ fork ─ init: Landlock, filter, adopts what the command leaves ─ command
//! ```

mod grants;

use std::os::fd::OwnedFd;

use plenipo_policy::Network;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::Attempt;
use crate::enter::{change_directory, lock_with};
use crate::error::{ErrorKind, LaunchError};
use crate::handshake::{self, ToLauncher};
use crate::landlock_layer::{Grants, NEWEST, restrict_alone};
use crate::plan::{LaunchPlan, plan};
use crate::supervise::Orphans;
use crate::sys::{self, Fork};

/// Runs the command to its end, or says why Landlock cannot hold the policy.
pub(super) fn attempt(
    attempt: &Attempt<'_>,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    let unsupported = |why: String| LaunchError::new(ErrorKind::Unsupported, why);
    if attempt.prepared.landlock_abi < NEWEST {
        // Without the signal scope the command could kill whatever its user runs.
        let why = format!("this kernel has ABI {} of Landlock", attempt.prepared.landlock_abi);
        return Err(unsupported(why).with_hint("Linux 6.12 or newer is needed"));
    }
    let resolved = &attempt.prepared.resolved;
    let plan = plan(&resolved.tree, &resolved.links, &resolved.cwd);
    let grants = grants::grants(&plan).map_err(|why| {
        unsupported(why).with_hint(
            "Landlock can only grant, so nothing inside a granted directory can be withheld",
        )
    })?;
    let (answers, launcher) = handshake::pair(report.is_some())?;
    let orphans = Orphans::adopt()?;
    match sys::fork().map_err(|error| LaunchError::step("fork", error))? {
        Fork::Child => {
            drop((answers, report.take())); // the launcher's to write and to close
            let confined = confine(attempt, &plan, &grants, &launcher);
            sys::exit_now(i32::from(attempt.go_on(confined, launcher, None)))
        }
        Fork::Parent(child) => {
            drop(launcher);
            let code = attempt.follow(child, answers, report, None);
            orphans.end();
            code
        }
    }
}

fn confine(
    attempt: &Attempt<'_>,
    plan: &LaunchPlan,
    grants: &Grants,
    launcher: &ToLauncher,
) -> Result<(), LaunchError> {
    // Not KILL: there is no PID namespace to end with this process, it has to end the command itself.
    launcher.die_with_launcher(Signal::CHILD)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| LaunchError::step("adopt what the command leaves", error))?;
    change_directory(&plan.cwd)?;
    let network = attempt.request.policy.network == Network::Enabled;
    let filter = plenipo_filter::build_alone(network);
    lock_with(&plan.cwd, &filter, || restrict_alone(grants, network))?;
    check(plan, attempt.launcher)
}

/// Looks from inside whether what is denied is closed, and whether signals end at the sandbox's edge.
fn check(plan: &LaunchPlan, launcher: Pid) -> Result<(), LaunchError> {
    let not_in_force = |what: String| LaunchError::new(ErrorKind::SelfCheck, what);
    for path in grants::denied(plan) {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::ACCESS | Errno::NOENT | Errno::PERM) => {}
            _ => {
                let what =
                    format!("{} should be closed in the sandbox, and is not", path.display());
                return Err(not_in_force(what));
            }
        }
    }
    if rustix::process::test_kill_process(launcher) != Err(Errno::PERM) {
        return Err(not_in_force("signals should not leave the sandbox, and do".to_owned()));
    }
    Ok(())
}
