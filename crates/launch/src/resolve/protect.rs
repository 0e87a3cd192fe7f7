//! Rules that no profile has to write: protected names, project configuration, the enforcer itself.

use std::path::{Path, PathBuf};

use plenipo_policy::{Access, Rule};

use super::{Resolved, repository};
use crate::error::LaunchError;
use crate::placeholder::is_placeholder;
use crate::protections::{PROJECT_CONFIGURATIONS, PROTECTED_NAMES, Protections};
use crate::tree::{Kind, Source};

/// Adds the protected names under each writable root.
///
/// A missing name is reserved, except in temporary directories and at `/`, which nothing takes for a project.
pub(super) fn names(
    resolved: &mut Resolved,
    rules: &[Rule],
    temporary: &[PathBuf],
) -> Result<(), LaunchError> {
    let roots: Vec<(PathBuf, Kind)> = resolved
        .tree
        .iter()
        .filter(|(_, grant)| grant.access == Access::Write && grant.source == Source::Profile)
        .map(|(path, grant)| (path.to_path_buf(), grant.kind))
        .collect();
    let temporary: Vec<PathBuf> = temporary
        .iter()
        .map(|path| resolved.looks.walk(path).map(|walked| walked.real))
        .collect::<Result<_, _>>()?;
    let roots: Vec<PathBuf> = roots
        .into_iter()
        .filter(|(_, kind)| *kind == Kind::Directory)
        .map(|(root, _)| root)
        .collect();
    for root in &roots {
        let reserve = root != Path::new("/") && !temporary.contains(root);
        for name in PROTECTED_NAMES {
            let place = root.join(name);
            if rules.iter().any(|rule| rule.path == place && rule.access == Access::Write) {
                continue;
            }
            protect_name(resolved, &place, reserve)?;
        }
        for name in PROJECT_CONFIGURATIONS {
            protect_name(resolved, &root.join(name), false)?;
        }
    }
    repository::protect(resolved, &roots)
}

fn protect_name(resolved: &mut Resolved, place: &Path, reserve: bool) -> Result<(), LaunchError> {
    let rule = Rule::new(place, Access::Read).with_origin("protected name");
    match std::fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_symlink() => Err(LaunchError::unenforceable(format!(
            "the protected path {} is a symbolic link, which a sandboxed command could replace",
            place.display()
        ))
        .with_hint("put the directory itself there instead of a link")),
        Ok(metadata) if !is_placeholder(&metadata) => {
            resolved.add_rule(&rule, Source::ProtectedName)
        }
        _ if reserve => {
            resolved.reserve(place.to_path_buf(), &rule, Source::ProtectedName);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Adds what enforces, configures or credentials the next launch.
pub(super) fn enforcer(
    resolved: &mut Resolved,
    protections: &Protections,
) -> Result<(), LaunchError> {
    let read_only = protections.read_only.iter().map(|path| (path, Access::Read));
    let deny = protections.deny.iter().map(|path| (path, Access::Deny));
    for (path, access) in read_only.chain(deny) {
        let rule = Rule::new(path, access).with_origin("enforcer");
        let walked = resolved.looks.walk(path)?;
        resolved.remember_links(&walked, path, "enforcer");
        if grants_more(resolved.tree.access(&walked.real), access) {
            resolved.place(&rule, walked, Source::Enforcer);
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
