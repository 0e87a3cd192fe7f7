//! The steps of a launch, worked out before anything is changed. Pure: the same tree gives the same plan.
//!
//! ```text
//! clone what is granted ─ sweep / ─ (masks, new root) ─ /dev ─ /proc ─ pins ─ attach, parents first ─ cwd
//! ```
//!
//! Granted places are cloned before the sweep makes everything read-only, so no step ever has to clear a flag, and a
//! mount that was read-only on the host stays so. Pins come before the writable roots that bury them: a pinned
//! directory can't be renamed away from the carve-out below it, and still no mount boundary is in the way of renames
//! inside the root.

use std::path::{Path, PathBuf};

use plenipo_policy::Access;
use serde::{Deserialize, Serialize};

use crate::tree::{Grant, GrantTree, Identity, Kind};

/// What holds at `/`, before any other rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Base {
    /// Everything is readable.
    Readable,
    /// Everything is writable.
    Writable,
    /// Nothing is there: a new root holds just what is granted.
    Empty,
}

/// One covered place, in the order of attaching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cover {
    /// Absolute and real, as the command will see it.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    /// What stood there when the policy was resolved.
    pub(crate) identity: Option<Identity>,
    pub(crate) action: Action,
}

/// What covers a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Action {
    /// The place itself, read-only or writable.
    Show { read_only: bool },
    /// Nothing: an empty, unreadable, read-only stand-in, with mount points for what is granted below it.
    Mask { openings: Vec<Opening> },
}

/// A place inside a mask (or an empty root) that a deeper rule or a link fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Opening {
    MountPoint { relative: PathBuf, kind: Kind },
    Link { relative: PathBuf, text: PathBuf },
}

/// Everything that the sandbox's first process does, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchPlan {
    pub(crate) base: Base,
    /// Openings of the new root; empty unless the base is [`Base::Empty`].
    pub(crate) root_openings: Vec<Opening>,
    /// Directories bound onto themselves so that they cannot be renamed.
    pub(crate) pins: Vec<PathBuf>,
    /// Carve-outs, writable roots and masks, parents first.
    pub(crate) covers: Vec<Cover>,
    /// Where Landlock lets the command write.
    pub(crate) writable: Vec<PathBuf>,
    /// Where Landlock lets the command read; just `/` unless the base is [`Base::Empty`].
    pub(crate) readable: Vec<PathBuf>,
    /// The command's working directory.
    pub(crate) cwd: PathBuf,
}

/// Places that every sandbox has of its own.
const OWN_MOUNTS: [&str; 2] = ["dev", "proc"];

/// Works out the steps for `tree`. `links` are the symbolic links that an empty root needs.
pub(crate) fn plan(tree: &GrantTree, links: &[(PathBuf, PathBuf)], cwd: &Path) -> LaunchPlan {
    let base = match tree.at(Path::new("/")).map(|grant| grant.access) {
        Some(Access::Write) => Base::Writable,
        Some(Access::Read) => Base::Readable,
        Some(Access::Deny) | None => Base::Empty,
    };
    let covers: Vec<Cover> = tree
        .changes()
        .filter(|(path, _)| path.parent().is_some())
        .map(|(path, grant)| cover(tree, path, grant))
        .collect();
    let of_access = |access: Access| -> Vec<PathBuf> {
        let granted = tree.changes().filter(|(_, grant)| grant.access == access);
        granted.map(|(path, _)| path.to_path_buf()).collect()
    };
    let mut readable = of_access(Access::Read);
    if base != Base::Empty {
        readable = vec![PathBuf::from("/")];
    }
    LaunchPlan {
        base,
        root_openings: if base == Base::Empty { root_openings(tree, links) } else { Vec::new() },
        pins: pins(tree, &covers),
        covers,
        writable: of_access(Access::Write),
        readable,
        cwd: cwd.to_path_buf(),
    }
}

fn cover(tree: &GrantTree, path: &Path, grant: &Grant) -> Cover {
    let action = match grant.access {
        Access::Deny => Action::Mask { openings: openings(tree, path) },
        access => Action::Show { read_only: access != Access::Write },
    };
    Cover { path: path.to_path_buf(), kind: grant.kind, identity: grant.identity, action }
}

/// Mount points for granted places whose nearest rule above is the one at `above`.
fn openings(tree: &GrantTree, above: &Path) -> Vec<Opening> {
    let granted = tree.changes().filter(|(path, grant)| {
        grant.access != Access::Deny && *path != above && nearest_change_above(tree, path) == above
    });
    granted
        .filter_map(|(path, grant)| {
            let relative = path.strip_prefix(above).ok()?.to_path_buf();
            Some(Opening::MountPoint { relative, kind: grant.kind })
        })
        .collect()
}

/// A rule that changes nothing makes no cover, so nothing can stand on it.
fn nearest_change_above<'a>(tree: &GrantTree, path: &'a Path) -> &'a Path {
    let root = Path::new("/");
    path.ancestors().skip(1).find(|ancestor| tree.is_change(ancestor)).unwrap_or(root)
}

fn root_openings(tree: &GrantTree, links: &[(PathBuf, PathBuf)]) -> Vec<Opening> {
    let root = Path::new("/");
    let mut all: Vec<Opening> = OWN_MOUNTS
        .iter()
        .map(|name| Opening::MountPoint { relative: name.into(), kind: Kind::Directory })
        .collect();
    all.extend(openings(tree, root));
    for (place, text) in links {
        let hidden = !matches!(tree.access(place), Some(Access::Read | Access::Write));
        let Ok(relative) = place.strip_prefix(root) else { continue };
        let link = Opening::Link { relative: relative.to_path_buf(), text: text.clone() };
        if hidden && !all.contains(&link) {
            all.push(link);
        }
    }
    all
}

/// Directories in writable places above a cover. The covered places themselves can't be moved: they are mount points.
fn pins(tree: &GrantTree, covers: &[Cover]) -> Vec<PathBuf> {
    let mut pins: Vec<PathBuf> = covers
        .iter()
        .flat_map(|cover| tree.movable_ancestors(&cover.path))
        .filter(|path| covers.iter().all(|cover| cover.path != *path))
        .collect();
    pins.sort();
    pins.dedup();
    pins
}

impl LaunchPlan {
    pub(crate) fn base_is_empty(&self) -> bool {
        self.base == Base::Empty
    }

    /// Where nothing is mounted yet, these have to be there before there can be pins in them; parents first.
    pub(crate) fn pin_holders(&self) -> impl Iterator<Item = &Cover> {
        let holder =
            |pin: &PathBuf| self.covers.iter().rposition(|cover| pin.starts_with(&cover.path));
        let mut holders: Vec<usize> = match self.base {
            Base::Empty => self.pins.iter().filter_map(holder).collect(),
            Base::Readable | Base::Writable => Vec::new(),
        };
        holders.sort_unstable();
        holders.dedup();
        holders.into_iter().filter_map(|index| self.covers.get(index))
    }

    /// Whether the command may write at `path`, which is real.
    pub(crate) fn is_writable(&self, path: &Path) -> bool {
        let deepest = self.covers.iter().rev().find(|cover| path.starts_with(&cover.path));
        match deepest.map(|cover| &cover.action) {
            Some(action) => *action == Action::Show { read_only: false },
            None => self.base == Base::Writable,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
