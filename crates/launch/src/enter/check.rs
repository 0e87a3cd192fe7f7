//! The self-check: every cover is looked at by descriptor, as the command will see it, before the command exists.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use crate::error::{ErrorKind, LaunchError};
use crate::plan::{Action, Base, Cover, LaunchPlan};
use crate::tree::is_at_or_below;

use super::Proc;
use super::cover::changed;
use super::view::{Siblings, View, identity};

/// Refuses if any rule is not in force.
pub(super) fn verify(plan: &LaunchPlan, proc: Proc) -> Result<(), LaunchError> {
    let view = View::of_root()?;
    expect_mount(&view.open(Path::new("/"))?, Path::new("/"), plan.base != Base::Writable)?;
    match proc {
        Proc::Outer => expect_read_only(&view, Path::new("/proc"))?,
        Proc::Fresh => expect_own_proc()?,
    }
    for path in ["/proc/sys", "/proc/sysrq-trigger"].map(Path::new) {
        if view.try_open(path).is_ok() {
            expect_read_only(&view, path)?;
        }
    }
    let mut siblings = view.siblings();
    let mut closed: Option<&Path> = None; // by a mask that nothing is open in
    for cover in &plan.covers {
        let hidden = closed.is_some_and(|closed| is_at_or_below(&cover.path, closed));
        verify_cover(&mut siblings, cover, hidden)?;
        // Parents come first, and what is in them right behind them.
        if !hidden && matches!(&cover.action, Action::Mask { openings } if openings.is_empty()) {
            closed = Some(&cover.path);
        }
    }
    Ok(())
}

fn verify_cover(
    siblings: &mut Siblings<'_>,
    cover: &Cover,
    hidden: bool,
) -> Result<(), LaunchError> {
    match &cover.action {
        Action::Show { read_only } => {
            let place = siblings.open(&cover.path)?;
            let found =
                identity(&place).map_err(|error| LaunchError::at("look at", &cover.path, error))?;
            if cover.identity.is_some_and(|expected| expected != found) {
                return Err(changed(cover));
            }
            expect_mount(&place, &cover.path, *read_only)
        }
        // A mask inside an unreachable mask needs no look.
        Action::Mask { .. } if hidden => Ok(()),
        Action::Mask { .. } => expect_masked(&siblings.open(&cover.path)?, &cover.path),
    }
}

/// In one of another process namespace this process has another number.
fn expect_own_proc() -> Result<(), LaunchError> {
    let path = Path::new("/proc/self");
    let number = rustix::fs::readlink(path, Vec::new())
        .map_err(|error| LaunchError::at("look at", path, error))?;
    let own = rustix::process::getpid().to_string();
    if number.as_bytes() == own.as_bytes() {
        return Ok(());
    }
    Err(not_in_force(Path::new("/proc"), "of its own processes"))
}

/// As every mount is, the sandbox's own `/dev` apart: no set-user-ID program and no device counts in it.
fn expect_mount(place: &OwnedFd, path: &Path, read_only: bool) -> Result<(), LaunchError> {
    let found =
        rustix::fs::fstatvfs(place).map_err(|error| LaunchError::at("look at", path, error))?;
    if read_only && !found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(not_in_force(path, "read-only"));
    }
    if !found.f_flag.contains(StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV) {
        return Err(not_in_force(path, "without devices and set-user-ID programs"));
    }
    Ok(())
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

fn expect_masked(place: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
    const READ_OR_WRITE: u32 = 0o666;
    is_read_only(place, path)?;
    let stat = rustix::fs::fstat(place).map_err(|error| LaunchError::at("look at", path, error))?;
    if stat.st_mode & READ_OR_WRITE == 0 && stat.st_size <= 4096 {
        return Ok(());
    }
    Err(not_in_force(path, "masked"))
}

fn not_in_force(path: &Path, what: &str) -> LaunchError {
    let message = format!("{} should be {what} in the sandbox, and is not", path.display());
    LaunchError::new(ErrorKind::SelfCheck, message)
}
