//! What is worked out before anything is forked.

use plenipo_policy::Network;
use rustix::process::{Resource, Rlimit};

use crate::error::{ErrorKind, LaunchError};
use crate::init::Payload;
use crate::launcher::LaunchRequest;
use crate::placeholder::Placeholders;
use crate::resolve::{Resolved, resolve};
use crate::sys;
use crate::tree::{Identity, Kind};

/// A launch whose rules are known and whose placeholders are held.
pub(crate) struct Prepared {
    pub(crate) resolved: Resolved,
    pub(crate) placeholders: Placeholders,
    pub(crate) payload: Payload,
    pub(crate) landlock_abi: i32,
    /// The caller's limit of descriptors, if it had to be raised.
    pub(crate) descriptor_limit: Option<Rlimit>,
}

/// The command of a request.
pub(crate) fn payload(request: &LaunchRequest) -> Result<Payload, LaunchError> {
    let Some((program, arguments)) = request.command.split_first() else {
        return Err(LaunchError::new(ErrorKind::Invalid, "no command to run was given"));
    };
    Ok(Payload {
        program: program.clone(),
        arguments: arguments.to_vec(),
        network: request.policy.network == Network::Enabled,
        proxied: matches!(request.policy.network, Network::Limited(_)),
        environment: request.environment.clone(),
    })
}

/// Resolves the policy and makes the placeholders.
pub(crate) fn prepare(request: &LaunchRequest, payload: Payload) -> Result<Prepared, LaunchError> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(LaunchError::new(
            ErrorKind::Unsupported,
            "confine system calls: there is no filter for this processor architecture",
        ));
    }
    let landlock_abi = sys::landlock_abi();
    if landlock_abi == 0 {
        return Err(LaunchError::new(
            ErrorKind::Unsupported,
            "apply Landlock, which every rung needs: this kernel has none",
        )
        .with_hint("Linux 5.13 or newer with `landlock` in its lsm= list is needed"));
    }
    let mut resolved = resolve(&request.policy, &request.protections, request.strict_globs)?;
    let descriptor_limit = raise_descriptor_limit(&resolved);
    let placeholders = reserve(&mut resolved)?;
    Ok(Prepared { resolved, placeholders, payload, landlock_abi, descriptor_limit })
}

/// Makes room for one descriptor a rule, and one more a placeholder. Returns what to restore.
fn raise_descriptor_limit(resolved: &Resolved) -> Option<Rlimit> {
    const SPARE: u64 = 64;
    let wanted = resolved.tree.iter().count() + 2 * resolved.reservations.len();
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(SPARE);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised).ok().map(|()| limit)
}

fn reserve(resolved: &mut Resolved) -> Result<Placeholders, LaunchError> {
    let mut placeholders = Placeholders::default();
    for place in std::mem::take(&mut resolved.reservations) {
        if !placeholders.reserve(&place)? {
            resolved.notes.push(format!("{} cannot be made by this user", place.display()));
            resolved.tree.remove(&place);
            continue;
        }
        let metadata = std::fs::symlink_metadata(&place)
            .map_err(|error| LaunchError::at("look at", &place, error))?;
        if metadata.is_symlink() {
            let message = format!("{} became a symbolic link meanwhile", place.display());
            return Err(LaunchError::unenforceable(message));
        }
        if let Some(grant) = resolved.tree.at_mut(&place) {
            use std::os::unix::fs::MetadataExt;
            grant.kind = if metadata.is_dir() { Kind::Directory } else { Kind::File };
            grant.identity = Some(Identity { device: metadata.dev(), inode: metadata.ino() });
        }
    }
    Ok(placeholders)
}
