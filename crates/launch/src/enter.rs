//! The sandbox's first process: carries out a [`LaunchPlan`], locks itself in, and only then returns.
//!
//! Everything here runs in the forked child, before the command exists. Any error ends the child; the launcher then
//! refuses the launch with it.

mod check;
mod cover;
mod lock;
mod own;
mod scratch;
mod streams;
mod view;

use std::path::Path;

use plenipo_filter::Instruction;
use rustix::fs::{AtFlags, StatxFlags};
use rustix::process::{Gid, Rlimit, Uid};

use crate::error::{ErrorKind, LaunchError};
use crate::network::FromElsewhere;
use crate::plan::{Base, LaunchPlan};
use crate::sys::{MountAttributes, set_mount_attributes};
use crate::terminal::Inside;

pub(crate) use lock::lock_with;
pub(crate) use own::proc_read_only;
use view::View;

/// Whose user namespace to make: the ids outside, which stay the same inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) user: Uid,
    pub(crate) group: Gid,
}

/// Which `/proc` the command sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proc {
    /// One of the sandbox's own processes.
    Fresh,
    /// The one that is there, read-only, with whatever covers parts of it.
    Outer,
}

/// What the first process needs besides the plan.
pub(crate) struct Confinement<'a> {
    /// Present if a user namespace was made.
    pub(crate) ids: Option<Ids>,
    pub(crate) proc: Proc,
    pub(crate) network: bool,
    /// Present if a network namespace is still to be entered.
    pub(crate) elsewhere: Option<&'a FromElsewhere>,
    /// The one port that may be connected to while the network is off.
    pub(crate) proxy_port: Option<u16>,
    pub(crate) landlock_abi: i32,
    pub(crate) filter: &'a [Instruction],
    /// Given back to the command once every rule is in place.
    pub(crate) descriptor_limit: Option<Rlimit>,
    /// Present if the command gets a terminal.
    pub(crate) terminal: Option<&'a Inside>,
}

/// Builds the sandbox around the calling process, and looks whether it is the one that was planned.
pub(crate) fn enter(plan: &LaunchPlan, confinement: &Confinement<'_>) -> Result<(), LaunchError> {
    carry_out(plan, confinement)?;
    settle(plan, confinement)
}

/// Every mount of the plan, and no look at them.
fn carry_out(plan: &LaunchPlan, confinement: &Confinement<'_>) -> Result<(), LaunchError> {
    if let Some(ids) = confinement.ids {
        map_ids(ids)?;
    }
    // What the machine does not let this process do it may let bwrap do.
    mount_everything(plan, confinement.proc).map_err(LaunchError::unsupported_if_forbidden)?;
    streams::reopen_devices()
}

/// Carries out one plan and looks for another: what the self-check is for.
#[cfg(test)]
pub(crate) fn enter_wrongly(
    executed: &LaunchPlan,
    planned: &LaunchPlan,
    confinement: &Confinement<'_>,
    afterwards: impl FnOnce(),
) -> Result<(), LaunchError> {
    carry_out(executed, confinement)?;
    afterwards();
    settle(planned, confinement)
}

/// Opens standard streams again where somebody else has made the mounts.
pub(crate) fn reopen_streams(plan: &LaunchPlan) -> Result<(), LaunchError> {
    streams::reopen_files(plan, &View::of_root()?)?;
    streams::reopen_devices()
}

/// What is left to do when every place is as the command will see it.
pub(crate) fn settle(plan: &LaunchPlan, confinement: &Confinement<'_>) -> Result<(), LaunchError> {
    change_directory(&plan.cwd)?;
    check::verify(plan, confinement.proc)?;
    if let Some(limit) = confinement.descriptor_limit {
        lock::restore_descriptor_limit(limit)?;
    }
    lock::lock(plan, confinement)
}

/// One id each, its own: no other id exists inside.
fn map_ids(ids: Ids) -> Result<(), LaunchError> {
    let write = |file: &str, text: String| {
        std::fs::write(file, text).map_err(|error| {
            LaunchError::unsupported(&format!("write {file}"), error).with_hint(
                "user namespaces may be restricted here (user 0 needs CAP_SETFCAP to be user 0 in one); `plenipo doctor` \
                 says more",
            )
        })
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{0} {0} 1", ids.user.as_raw()))?;
    write("/proc/self/gid_map", format!("{0} {0} 1", ids.group.as_raw()))
}

fn mount_everything(plan: &LaunchPlan, proc: Proc) -> Result<(), LaunchError> {
    let mut view = View::of_root()?;
    let outer = if proc == Proc::Outer { Some(own::clone_proc(&view)?) } else { None };
    streams::reopen_files(plan, &view)?;
    let slots = cover::clone_granted(plan, &view)?;
    let pinned = cover::clone_pinned(plan, &view)?;
    let devices = own::clone_devices(&view)?;
    sweep(plan.base, &view)?;
    let slots = cover::clone_swept(plan, &view, slots)?;
    let (slots, new_root) = scratch::fill(plan, &view, slots)?;
    if let Some(new_root) = new_root {
        view = new_root;
        cover::bury_pinned(plan, &view, pinned)?;
    }
    own::mount_dev(&view, devices)?;
    match outer {
        Some(outer) => view.attach(&outer, Path::new("/proc"))?,
        None => own::mount_proc(&view)?,
    }
    if !plan.base_is_empty() {
        cover::pin(plan, &view)?;
    }
    cover::attach(plan, &view, slots)?;
    if plan.base_is_empty() {
        view.become_root()?;
    }
    Ok(())
}

/// One call for the whole tree: read-only (unless `/` is granted for writing), no devices, no setuid, no events to or
/// from the host.
fn sweep(base: Base, view: &View) -> Result<(), LaunchError> {
    let attributes = MountAttributes {
        read_only: base == Base::Readable,
        no_devices: true,
        no_execution: false,
        private: true,
    };
    set_mount_attributes(view.root(), c"", attributes)
        .map_err(|error| LaunchError::step("make / read-only", error))
}

/// The inherited directory is still open on the host's mount, so it is entered again.
pub(crate) fn change_directory(cwd: &Path) -> Result<(), LaunchError> {
    rustix::process::chdir(cwd).map_err(|error| {
        LaunchError::at("enter the working directory", cwd, error)
            .with_hint("it has to exist and be readable under the policy")
    })?;
    // The inherited one has the same name, and is on another mount.
    let place = |path: &Path| {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), wanted)
            .map(|found| (found.stx_mnt_id, found.stx_ino))
            .map_err(|error| LaunchError::at("look at", cwd, error))
    };
    if place(Path::new("."))? == place(cwd)? {
        return Ok(());
    }
    let message = format!("{} should be the working directory, and is not", cwd.display());
    Err(LaunchError::new(ErrorKind::SelfCheck, message))
}
