//! Rules by path, and which of them holds where: the most specific path wins.

use std::collections::HashSet;
use std::collections::btree_map::{BTreeMap, Entry};
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
    grants: BTreeMap<Vec<u8>, (PathBuf, Grant)>,
}

impl GrantTree {
    /// Adds a rule. At one path the enforcer's rule beats the profile's, then deny beats write beats read.
    pub(crate) fn add(&mut self, path: PathBuf, grant: Grant) {
        let (_, present) = match self.grants.entry(key(&path)) {
            Entry::Vacant(free) => {
                free.insert((path, grant));
                return;
            }
            Entry::Occupied(taken) => taken.into_mut(),
        };
        let rank = |grant: &Grant| (grant.source == Source::Enforcer, grant.access);
        if rank(&grant) > rank(present) {
            *present = grant;
        } else {
            present.temporary &= grant.temporary || grant.access != present.access;
        }
    }

    /// Forgets what the profile grants below a path that the enforcer keeps for itself.
    pub(crate) fn narrow_below_enforcer(&mut self) {
        let is_enforcer = |grant: &Grant| grant.source == Source::Enforcer;
        let of_enforcer = self.grants.iter().filter(|(_, (_, grant))| is_enforcer(grant));
        let kept: HashSet<Vec<u8>> = of_enforcer.map(|(key, _)| key.clone()).collect();
        self.grants.retain(|key, (_, grant)| {
            is_enforcer(grant) || !up_from(key).skip(1).any(|above| kept.contains(above))
        });
    }

    /// What may be done at `path`, which is real: the access of the deepest rule at or above it.
    pub(crate) fn access(&self, path: &Path) -> Option<Access> {
        with_key(path, |key| self.access_of(key))
    }

    fn access_of(&self, key: &[u8]) -> Option<Access> {
        up_from(key).find_map(|above| self.grants.get(above)).map(|(_, grant)| grant.access)
    }

    /// What would hold at a place without the rule at the place itself.
    fn inherited(&self, key: &[u8]) -> Option<Access> {
        above(key).and_then(|above| self.access_of(above))
    }

    pub(crate) fn remove(&mut self, path: &Path) {
        self.grants.remove(&key(path));
    }

    pub(crate) fn at_mut(&mut self, path: &Path) -> Option<&mut Grant> {
        self.grants.get_mut(&key(path)).map(|(_, grant)| grant)
    }

    pub(crate) fn at(&self, path: &Path) -> Option<&Grant> {
        with_key(path, |key| self.grants.get(key)).map(|(_, grant)| grant)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &Grant)> {
        self.grants.values().map(|(path, grant)| (path.as_path(), grant))
    }

    /// The rules that change something, parents first. No rule at all is the same as a deny.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Path, &Grant)> {
        let mut above: Vec<(&[u8], Access)> = Vec::new();
        let changes = self.grants.iter().filter(move |&(key, (_, grant))| {
            while above.last().is_some_and(|(above, _)| !is_above(above, key)) {
                above.pop();
            }
            let inherited = above.last().map(|(_, access)| *access);
            above.push((key, grant.access));
            key.is_empty() || denied_as_none(inherited) != Some(grant.access)
        });
        changes.map(|(_, (path, grant))| (path.as_path(), grant))
    }

    /// Whether a rule stands at `path` and changes something.
    pub(crate) fn is_change(&self, path: &Path) -> bool {
        with_key(path, |key| {
            self.grants.get(key).is_some_and(|(_, grant)| self.is_other(key, grant))
        })
    }

    fn is_other(&self, key: &[u8], grant: &Grant) -> bool {
        above(key).is_none() || denied_as_none(self.inherited(key)) != Some(grant.access)
    }

    /// Directories above `path` that the command could rename, and with them the rule on `path`.
    pub(crate) fn movable_ancestors(&self, path: &Path) -> Vec<PathBuf> {
        let key = key(path);
        let is_writable = |key: &[u8]| self.access_of(key) == Some(Access::Write);
        let movable = |key: &[u8]| above(key).is_some_and(is_writable) && is_writable(key);
        let ancestors = path.ancestors().zip(up_from(&key)).skip(1);
        ancestors.filter(|(_, key)| movable(key)).map(|(path, _)| path.to_path_buf()).collect()
    }
}

/// Whether `path` is `above` itself or in it. Both are absolute, without `.`, `..` or a separator too many, as real paths
/// are: for those this is what [`Path::starts_with`] says, which is many times slower.
pub(crate) fn is_at_or_below(path: &Path, above: &Path) -> bool {
    let (path, above) = (path.as_os_str().as_encoded_bytes(), above.as_os_str().as_encoded_bytes());
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| above == b"/" || matches!(rest.first(), None | Some(b'/')))
}

/// A real path for comparing: a separator is less than all else, so a directory comes right before what is in it. Only the
/// root's is empty.
fn key(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.strip_prefix(b"/").unwrap_or(bytes);
    names.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

/// The key for a look, on the stack if it is of the usual length.
fn with_key<T>(path: &Path, look: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [0; 256];
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.strip_prefix(b"/").unwrap_or(bytes);
    let Some(room) = short.get_mut(..names.len()) else { return look(&key(path)) };
    for (to, from) in room.iter_mut().zip(names) {
        *to = if *from == b'/' { 0 } else { *from };
    }
    look(room)
}

fn above(key: &[u8]) -> Option<&[u8]> {
    match key.iter().rposition(|byte| *byte == 0) {
        Some(end) => key.get(..end),
        None => (!key.is_empty()).then_some(&[]),
    }
}

/// Whether the place of one key is in that of the other.
fn is_above(above: &[u8], key: &[u8]) -> bool {
    let rest = key.strip_prefix(above);
    rest.is_some_and(|rest| above.is_empty() || rest.first() == Some(&0))
}

/// The place itself, and all that it is in.
fn up_from(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(key), |key| above(key))
}

/// "Nothing granted" and "denied" look alike to a command.
fn denied_as_none(access: Option<Access>) -> Option<Access> {
    access.or(Some(Access::Deny))
}

#[cfg(test)]
mod tests;
