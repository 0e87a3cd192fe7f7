//! Rules that no profile has to write: protected names, project configuration, the enforcer itself.

use std::fs::DirEntry;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use plenipo_policy::{Access, Rule};

use super::{Resolved, repository};
use crate::error::LaunchError;
use crate::protections::{PROJECT_CONFIGURATIONS, PROTECTED_NAMES, Protections};
use crate::tree::{Grant, Kind, Source};

/// Drivers, devices, control groups.
const KERNEL_INTERFACES: &str = "/sys";

/// Adds the protected names under each writable root.
///
/// A missing name is reserved, except at `/`, which nothing takes for a project, and in a temporary directory that the
/// command does not work in: there git would find it from the working directory.
pub(super) fn names(
    resolved: &mut Resolved,
    rules: &[Rule],
    cwd: &Path,
) -> Result<(), LaunchError> {
    let cwd = resolved.looks.walk(cwd)?.real;
    let writable = |grant: &Grant| {
        grant.access == Access::Write
            && grant.source == Source::Profile
            && grant.kind == Kind::Directory
    };
    let granted = resolved.tree.iter().filter(|(_, grant)| writable(grant));
    let roots: Vec<(PathBuf, bool)> =
        granted.map(|(path, grant)| (path.to_path_buf(), grant.temporary)).collect();
    for (root, temporary) in &roots {
        let reserve = root != Path::new("/") && (!temporary || cwd.starts_with(root));
        for name in PROTECTED_NAMES {
            let place = root.join(name);
            let is_given = |rule: &Rule| rule.access == Access::Write && rule.path == place;
            if rules.iter().any(is_given) {
                continue;
            }
            protect_name(resolved, &place, reserve)?;
        }
        let mut missing = Vec::new();
        for name in PROJECT_CONFIGURATIONS {
            let place = root.join(name);
            protect_name(resolved, &place, false)?;
            if resolved.looks.walk(&place)?.found.is_none() {
                missing.push(name);
            }
        }
        if !missing.is_empty() && !temporary {
            let (root, missing) = (root.display(), missing.join(", "));
            resolved
                .notes
                .push(format!("a command may create what is not there yet in {root}: {missing}"));
        }
    }
    let roots: Vec<PathBuf> = roots.into_iter().map(|(root, _)| root).collect();
    repository::protect(resolved, &roots)
}

fn protect_name(resolved: &mut Resolved, place: &Path, reserve: bool) -> Result<(), LaunchError> {
    let rule = Rule::new(place, Access::Read).with_origin("protected name");
    let walked = resolved.looks.walk(place)?;
    if walked.links.iter().any(|(link, _)| link == place) {
        return Err(LaunchError::unenforceable(format!(
            "the protected path {} is a symbolic link, which a sandboxed command could replace",
            place.display()
        ))
        .with_hint("put the directory itself there instead of a link"));
    }
    if walked.found.is_some() {
        return resolved.add_rule(&rule, Source::ProtectedName);
    }
    if reserve {
        resolved.reserve(place.to_path_buf(), &rule, Source::ProtectedName);
    }
    Ok(())
}

/// What a writable `/` would open of the kernel's own: its interfaces in `/sys` are for the host.
fn kernel(resolved: &mut Resolved) -> Result<(), LaunchError> {
    let sys = Path::new(KERNEL_INTERFACES);
    let walked = resolved.looks.walk(sys)?;
    if walked.found.is_some() && resolved.tree.access(&walked.real) == Some(Access::Write) {
        let rule = Rule::new(sys, Access::Read).with_origin("kernel interfaces");
        resolved.place(&rule, walked, Source::Enforcer);
    }
    Ok(())
}

/// Other names of a protected program, where builds leave them: beside it, in `deps/`, or above.
fn other_names(resolved: &mut Resolved, program: &Path) -> Result<(), LaunchError> {
    let Some(grant) = resolved.tree.at(program).filter(|grant| grant.kind == Kind::File) else {
        return Ok(());
    };
    let (Some(identity), Some(directory)) = (grant.identity, program.parent()) else {
        return Ok(());
    };
    let directories = [Some(directory.to_path_buf()), Some(directory.join("deps"))];
    let above = directory.parent().map(Path::to_path_buf);
    for directory in directories.into_iter().chain([above]).flatten() {
        if resolved.tree.access(&directory) != Some(Access::Write) {
            continue;
        }
        let Ok(listing) = std::fs::read_dir(&directory) else { continue };
        for entry in listing.flatten().filter(|entry| entry.ino() == identity.inode) {
            if entry.path() != program {
                let origin = format!("another name of {}", program.display());
                let rule = Rule::new(entry.path(), Access::Read).with_origin(origin);
                let walked = resolved.looks.walk(&rule.path)?;
                if walked.found.is_some_and(|found| found.identity == identity) {
                    resolved.place(&rule, walked, Source::Enforcer);
                }
            }
        }
    }
    Ok(())
}

/// Symbolic links directly in a protected directory: what they lead to is protected as well.
fn targets_of_links(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(directory) else { return Vec::new() };
    let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    listing.flatten().filter(is_link).map(|entry| entry.path()).collect()
}

/// Adds what enforces, configures or credentials the next launch.
pub(super) fn enforcer(
    resolved: &mut Resolved,
    protections: &Protections,
) -> Result<(), LaunchError> {
    kernel(resolved)?;
    let mut named: Vec<&PathBuf> = Vec::new(); // by several homes, which may be one
    for path in &protections.read_only {
        if !named.contains(&path) {
            named.push(path);
        }
    }
    let linked: Vec<PathBuf> = named.iter().flat_map(|path| targets_of_links(path)).collect();
    let read_only = named.into_iter().chain(&linked).map(|path| (path, Access::Read));
    let deny = protections.deny.iter().map(|path| (path, Access::Deny));
    for (path, access) in read_only.chain(deny) {
        let rule = Rule::new(path, access).with_origin("enforcer");
        let walked = resolved.looks.walk(path)?;
        resolved.remember_links(&walked, path, "enforcer");
        if grants_more(resolved.tree.access(&walked.real), access) {
            let (real, found) = (walked.real.clone(), walked.found);
            resolved.place(&rule, walked, Source::Enforcer);
            if found.is_some_and(|found| found.links > 1) {
                other_names(resolved, &real)?;
            }
        }
    }
    Ok(())
}

/// Whether the policy so far allows more at a place than the enforcer does.
fn grants_more(present: Option<Access>, wanted: Access) -> bool {
    match wanted {
        Access::Deny => matches!(present, Some(Access::Read | Access::Write)),
        _ => present == Some(Access::Write),
    }
}
