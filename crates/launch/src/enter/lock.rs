//! Locking the door from inside: Landlock, capabilities, limits, the system call filter.

use std::path::Path;

use plenipo_filter::{ANSWER, Instruction};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::{ErrorKind, LaunchError};
use crate::landlock_layer;
use crate::network::FromElsewhere;
use crate::plan::LaunchPlan;
use crate::sys::{self, install_filter};

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
        landlock_layer::expect_restricted()?;
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
    let session = sys::start_session().map_err(|e| LaunchError::step("start a session", e))?;
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
        .map_err(|error| LaunchError::step("install the system call filter", error))?;
    verify(session)
}

/// An outer filter can answer in the kernel's place that all went well.
fn verify(session: i32) -> Result<(), LaunchError> {
    let look = |error: Errno| LaunchError::step("look at what was locked", error);
    let capabilities = rustix::thread::capabilities(None).map_err(look)?;
    let is_leader = session == rustix::process::getpid().as_raw_pid();
    let faults = [
        (!is_leader, "a session of its own"),
        (!(capabilities.effective | capabilities.permitted).is_empty(), "no capability"),
        (!rustix::thread::no_new_privs().map_err(look)?, "no way to gain privileges"),
        (sys::ask_filter() != ANSWER, "its system calls filtered"),
    ];
    match faults.into_iter().find(|(fault, _)| *fault) {
        None => Ok(()),
        Some((_, what)) => {
            let message = format!("the command should have {what}, and has not");
            Err(LaunchError::new(ErrorKind::SelfCheck, message))
        }
    }
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
