//! Locking the door from inside: Landlock, capabilities, limits, the system call filter.

use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::LaunchError;
use crate::landlock_layer;
use crate::network::FromElsewhere;
use crate::plan::LaunchPlan;
use crate::sys::{Instruction, install_filter};

use super::Confinement;

/// Capability numbers that a kernel may know; asking for one past its last says so.
const CAPABILITY_NUMBERS: u32 = 64;

/// After this the process can do what the command may do, and no more.
pub(super) fn lock(plan: &LaunchPlan, confinement: &Confinement<'_>) -> Result<(), LaunchError> {
    lock_with(&plan.cwd, confinement.filter, || {
        if let Some(terminal) = confinement.terminal {
            terminal.take_over()?;
        }
        landlock_layer::restrict(plan, confinement)?;
        confinement.elsewhere.map_or(Ok(()), FromElsewhere::enter)
    })
}

/// The same, with Landlock rules of the caller's.
pub(crate) fn lock_with(
    cwd: &Path,
    filter: &[Instruction],
    restrict: impl FnOnce() -> Result<(), LaunchError>,
) -> Result<(), LaunchError> {
    let step = |what: &'static str| move |error: Errno| LaunchError::step(what, error);
    // A session of its own: no terminal of the host's to type into.
    rustix::process::setsid().map_err(step("start a session"))?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(step("limit core files"))?;
    restrict()?;
    drop_capabilities()?;
    // Entered with capabilities; the command has none.
    rustix::fs::access(".", Access::EXEC_OK)
        .map_err(|error| LaunchError::at("enter the working directory", cwd, error))?;
    // Init keeps no secret, but nobody inside has a reason to look into it either.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(step("close the sandbox's init"))?;
    rustix::thread::set_no_new_privs(true).map_err(step("set no_new_privs"))?;
    install_filter(filter)
        .map_err(|error| LaunchError::step("install the system call filter", error))
}

fn drop_capabilities() -> Result<(), LaunchError> {
    for number in 0..CAPABILITY_NUMBERS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            // Without CAP_SETPCAP there is no capability to lose; no_new_privs keeps it so.
            Err(Errno::PERM) => break,
            Err(error) => return Err(LaunchError::step("drop a capability", error)),
        }
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)
        .map_err(|error| LaunchError::step("drop capabilities", error))
}

pub(super) fn restore_descriptor_limit(limit: Rlimit) -> Result<(), LaunchError> {
    rustix::process::setrlimit(Resource::Nofile, limit)
        .map_err(|error| LaunchError::step("restore the descriptor limit", error))
}
