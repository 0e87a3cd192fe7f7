//! The self-check: every cover is looked at by descriptor, as the command will see it, before the command exists.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use crate::error::{ErrorKind, LaunchError};
use crate::plan::{Action, Base, Cover, LaunchPlan};

use super::Proc;
use super::cover::changed;
use super::view::{View, identity};

/// Refuses if any rule is not in force.
pub(super) fn verify(plan: &LaunchPlan, proc: Proc) -> Result<(), LaunchError> {
    let view = View::of_root()?;
    if plan.base != Base::Writable {
        expect_read_only(&view, Path::new("/"))?;
    }
    if proc == Proc::Outer {
        expect_read_only(&view, Path::new("/proc"))?;
    }
    for path in ["/proc/sys", "/proc/sysrq-trigger"].map(Path::new) {
        if view.try_open(path).is_ok() {
            expect_read_only(&view, path)?;
        }
    }
    plan.covers.iter().try_for_each(|cover| verify_cover(&view, cover, &plan.covers))
}

fn verify_cover(view: &View, cover: &Cover, all: &[Cover]) -> Result<(), LaunchError> {
    match &cover.action {
        Action::Show { read_only } => {
            let place = view.open(&cover.path)?;
            let found =
                identity(&place).map_err(|error| LaunchError::at("look at", &cover.path, error))?;
            if cover.identity.is_some_and(|expected| expected != found) {
                return Err(changed(cover));
            }
            if *read_only { is_read_only(&place, &cover.path) } else { Ok(()) }
        }
        Action::Mask { .. } => {
            // A mask inside an unreachable mask needs no look.
            let hidden = all.iter().any(|other| {
                matches!(&other.action, Action::Mask { openings } if openings.is_empty())
                    && cover.path != other.path
                    && cover.path.starts_with(&other.path)
            });
            if hidden { Ok(()) } else { expect_masked(view, &cover.path) }
        }
    }
}

fn expect_read_only(view: &View, path: &Path) -> Result<(), LaunchError> {
    is_read_only(&view.open(path)?, path)
}

fn is_read_only(place: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
    let statistics =
        rustix::fs::fstatvfs(place).map_err(|error| LaunchError::at("look at", path, error))?;
    if statistics.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(());
    }
    Err(not_in_force(path, "read-only"))
}

fn expect_masked(view: &View, path: &Path) -> Result<(), LaunchError> {
    const READ_OR_WRITE: u32 = 0o666;
    let place = view.open(path)?;
    is_read_only(&place, path)?;
    let stat =
        rustix::fs::fstat(&place).map_err(|error| LaunchError::at("look at", path, error))?;
    if stat.st_mode & READ_OR_WRITE == 0 && stat.st_size <= 4096 {
        return Ok(());
    }
    Err(not_in_force(path, "masked"))
}

fn not_in_force(path: &Path, what: &str) -> LaunchError {
    let message = format!("{} should be {what} in the sandbox, and is not", path.display());
    LaunchError::new(ErrorKind::SelfCheck, message)
}
