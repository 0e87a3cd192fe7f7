//! Landlock: a second lock on the same doors as the mounts, held by another part of the kernel.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::enter::{Confinement, Proc};
use crate::error::{ErrorKind, LaunchError};
use crate::plan::LaunchPlan;
use crate::report::LayerState;

/// The newest ABI whose rights are used; an older kernel gets what it knows and the report says so.
pub(crate) const NEWEST: i32 = 6;

/// How much of the layer a kernel with this ABI has.
pub(crate) fn state(abi: i32) -> LayerState {
    if abi >= NEWEST { LayerState::Enforced } else { LayerState::Partly }
}

/// Confines this process and everything it starts. Sets `no_new_privs` too.
pub(crate) fn restrict(
    plan: &LaunchPlan,
    confinement: &Confinement<'_>,
) -> Result<(), LaunchError> {
    let abi = ABI::from(confinement.landlock_abi.min(NEWEST));
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    let mut rules = created(abi, confinement.network)?;
    if let Some(port) = confinement.proxy_port.filter(|_| !AccessNet::from_all(abi).is_empty()) {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    if plan.base_is_empty() {
        rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    }
    for path in &plan.readable {
        rules = allow(rules, path, read)?;
    }
    let proc = if confinement.proc == Proc::Fresh { all } else { read };
    rules = allow(rules, Path::new("/proc"), proc)?;
    for path in plan.writable.iter().map(AsRef::as_ref).chain([Path::new("/dev")]) {
        rules = allow(rules, path, all)?;
    }
    rules = allow_standard_streams(rules, abi)?;
    rules.restrict_self().map_err(failed)?;
    Ok(())
}

/// Whoever is restricted changes no mount: where this process may otherwise (bwrap leaves it no right to), it is asked.
pub(crate) fn expect_restricted() -> Result<(), LaunchError> {
    // To let go of what is in use takes nothing away: at worst it is marked as idle.
    let outcome = rustix::mount::unmount("/proc", UnmountFlags::EXPIRE);
    if outcome == Err(Errno::PERM) {
        return Ok(());
    }
    let message = "Landlock should be in force in the sandbox, and is not";
    Err(LaunchError::new(ErrorKind::SelfCheck, message))
}

/// What Landlock grants where no mount narrows it. Every path is absolute and real; one that has become a symbolic link
/// is an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    /// Read and executed, with what is below.
    pub(crate) readable: Vec<PathBuf>,
    /// Listed, with what is below, and nothing else.
    pub(crate) listable: Vec<PathBuf>,
    /// Everything, with what is below.
    pub(crate) writable: Vec<PathBuf>,
    /// Opened for reading and writing.
    pub(crate) devices: Vec<PathBuf>,
}

/// Confines this process and everything it starts to `grants`.
pub(crate) fn restrict_alone(grants: &Grants, network: bool) -> Result<(), LaunchError> {
    let abi = ABI::from(NEWEST);
    let mut rules = created(abi, network)?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    for (paths, access) in [
        (&grants.readable, AccessFs::from_read(abi)),
        (&grants.listable, AccessFs::ReadDir.into()),
        (&grants.writable, AccessFs::from_all(abi)),
        (&grants.devices, device),
    ] {
        for path in paths {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let real = ResolveFlags::NO_SYMLINKS;
            match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), real) {
                Ok(place) => rules = allow_at(rules, place.as_fd(), access)?,
                Err(Errno::NOENT | Errno::ACCESS) => {} // gone, or nothing that this user gets at
                Err(error) => return Err(LaunchError::at("open", path, error)),
            }
        }
    }
    rules = allow_standard_streams(rules, abi)?;
    rules.restrict_self().map_err(failed)?;
    Ok(())
}

fn created(abi: ABI, network: bool) -> Result<RulesetCreated, LaunchError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset = ruleset.handle_access(AccessFs::from_all(abi)).map_err(failed)?;
    let sockets = AccessNet::from_all(abi);
    if !network && !sockets.is_empty() {
        ruleset = ruleset.handle_access(sockets).map_err(failed)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).map_err(failed)?;
    }
    ruleset.create().map_err(failed)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LaunchError> {
    let place = PathFd::new(path).map_err(failed)?;
    allow_at(rules, place.as_fd(), access)
}

fn allow_at(
    rules: RulesetCreated,
    place: BorrowedFd<'_>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LaunchError> {
    let stat = rustix::fs::fstat(place)
        .map_err(|error| LaunchError::step("look at a granted path", error))?;
    let fitting = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        access
    } else {
        access & AccessFs::from_file(ABI::from(NEWEST))
    };
    if fitting.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(place, fitting)).map_err(failed)
}

/// A command may open its own standard streams again (`echo > /dev/stdout`), in the direction they were given.
fn allow_standard_streams(
    mut rules: RulesetCreated,
    abi: ABI,
) -> Result<RulesetCreated, LaunchError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    for stream in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        let Ok(stat) = rustix::fs::fstat(stream) else { continue }; // closed by the caller
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if !matches!(file_type, FileType::RegularFile | FileType::CharacterDevice) {
            continue;
        }
        let flags = rustix::fs::fcntl_getfl(stream)
            .map_err(|error| LaunchError::step("look at a standard stream", error))?;
        let mut access = BitFlags::EMPTY;
        if !flags.contains(OFlags::WRONLY) {
            access |= AccessFs::ReadFile;
        }
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            access |= AccessFs::WriteFile | AccessFs::Truncate;
        }
        if file_type == FileType::CharacterDevice {
            access |= AccessFs::IoctlDev;
        }
        rules = allow_at(rules, stream, access & AccessFs::from_all(abi))?;
    }
    Ok(rules)
}

fn failed(error: impl std::error::Error) -> LaunchError {
    LaunchError::new(ErrorKind::Setup, format!("apply Landlock: {error}"))
}
