//! Rules by path, and which of them holds where: the most specific path wins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plenipo_policy::Access;
use serde::{Deserialize, Serialize};

/// What stands at a path: decides how it can be covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Directory,
    File,
}

/// Which file a path led to when the policy was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Who asked for a rule. A later variant is not overridden by an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The profile's entries.
    Profile,
    /// A protected name under a writable root.
    ProtectedName,
    /// What enforces, configures or credentials the next launch.
    Enforcer,
}

/// A rule on a real path: no component of it is a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) access: Access,
    pub(crate) kind: Kind,
    /// Absent for a placeholder that is yet to be made, and in tests.
    pub(crate) identity: Option<Identity>,
    pub(crate) source: Source,
    pub(crate) origin: String,
    /// Whether nothing but `slash_tmp` or `tmpdir` grants it.
    pub(crate) temporary: bool,
}

/// All rules of a launch by real path; parents sort before what is below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GrantTree {
    grants: BTreeMap<PathBuf, Grant>,
}

impl GrantTree {
    /// Adds a rule. At one path the enforcer's rule beats the profile's, then deny beats write beats read.
    pub(crate) fn add(&mut self, path: PathBuf, grant: Grant) {
        let better = self.grants.get(&path).is_none_or(|present| {
            let rank = |grant: &Grant| (grant.source == Source::Enforcer, grant.access);
            rank(&grant) > rank(present)
        });
        if better {
            self.grants.insert(path, grant);
        } else if let Some(present) = self.grants.get_mut(&path) {
            present.temporary &= grant.temporary || grant.access != present.access;
        }
    }

    /// Forgets what the profile grants below a path that the enforcer keeps for itself.
    pub(crate) fn narrow_below_enforcer(&mut self) {
        let kept: Vec<PathBuf> = self
            .grants
            .iter()
            .filter(|(_, grant)| grant.source == Source::Enforcer)
            .map(|(path, _)| path.clone())
            .collect();
        self.grants.retain(|path, grant| {
            grant.source == Source::Enforcer
                || !kept.iter().any(|keeper| path.starts_with(keeper) && path != keeper)
        });
    }

    /// What may be done at `path`, which is real: the access of the deepest rule at or above it.
    pub(crate) fn access(&self, path: &Path) -> Option<Access> {
        path.ancestors().find_map(|ancestor| self.grants.get(ancestor)).map(|grant| grant.access)
    }

    /// What would hold at `path` without the rule at `path` itself.
    fn inherited(&self, path: &Path) -> Option<Access> {
        path.parent().and_then(|parent| self.access(parent))
    }

    pub(crate) fn remove(&mut self, path: &Path) {
        self.grants.remove(path);
    }

    pub(crate) fn at_mut(&mut self, path: &Path) -> Option<&mut Grant> {
        self.grants.get_mut(path)
    }

    pub(crate) fn at(&self, path: &Path) -> Option<&Grant> {
        self.grants.get(path)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &Grant)> {
        self.grants.iter().map(|(path, grant)| (path.as_path(), grant))
    }

    /// The rules that change something, parents first. No rule at all is the same as a deny.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Path, &Grant)> {
        self.iter().filter(|(path, grant)| self.changes_something(path, grant))
    }

    /// Whether a rule stands at `path` and changes something.
    pub(crate) fn is_change(&self, path: &Path) -> bool {
        self.at(path).is_some_and(|grant| self.changes_something(path, grant))
    }

    fn changes_something(&self, path: &Path, grant: &Grant) -> bool {
        path.parent().is_none() || denied_as_none(self.inherited(path)) != Some(grant.access)
    }

    /// Directories above `path` that the command could rename, and with them the rule on `path`.
    pub(crate) fn movable_ancestors(&self, path: &Path) -> Vec<PathBuf> {
        path.ancestors()
            .skip(1)
            .filter(|ancestor| {
                ancestor.parent().is_some_and(|above| self.access(above) == Some(Access::Write))
                    && self.access(ancestor) == Some(Access::Write)
            })
            .map(Path::to_path_buf)
            .collect()
    }
}

/// "Nothing granted" and "denied" look alike to a command.
fn denied_as_none(access: Option<Access>) -> Option<Access> {
    access.or(Some(Access::Deny))
}

#[cfg(test)]
mod tests;
