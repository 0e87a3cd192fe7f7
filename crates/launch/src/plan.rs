//! The steps of a launch, worked out before anything is changed. Pure: the same tree gives the same plan.
//!
//! ```text
//! clone what is granted ─ sweep / ─ clone carve-outs ─ (masks, new root) ─ /dev ─ /proc ─ pins ─ attach, parents first ─ cwd
//! ```
//!
//! Granted places are cloned before the sweep makes everything read-only, so no step ever has to clear a flag, and a
//! mount that was read-only on the host stays so. What is to be read-only is cloned behind a sweep that makes it so. Pins come before the writable roots that bury them: a pinned
//! directory can't be renamed away from the carve-out below it, and still no mount boundary is in the way of renames
//! inside the root.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plenipo_policy::Access;
use serde::{Deserialize, Serialize};

use crate::tree::{Grant, GrantTree, Identity, Kind, is_at_or_below};

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
    let changes: Vec<(&Path, &Grant)> = tree.changes().collect();
    let mut openings = openings(base, &changes);
    let covers: Vec<Cover> = changes
        .iter()
        .filter(|(path, _)| *path != Path::new("/"))
        .map(|(path, grant)| cover(path, grant, &mut openings))
        .collect();
    let of_access = |access: Access| -> Vec<PathBuf> {
        let granted = changes.iter().filter(|(_, grant)| grant.access == access);
        granted.map(|(path, _)| path.to_path_buf()).collect()
    };
    let readable = match base {
        Base::Empty => of_access(Access::Read),
        Base::Readable | Base::Writable => vec![PathBuf::from("/")],
    };
    let of_root = openings.remove(Path::new("/")).unwrap_or_default();
    LaunchPlan {
        base,
        root_openings: match base {
            Base::Empty => root_openings(tree, of_root, links),
            Base::Readable | Base::Writable => Vec::new(),
        },
        pins: pins(tree, &covers),
        covers,
        writable: of_access(Access::Write),
        readable,
        cwd: cwd.to_path_buf(),
    }
}

/// Mount points for granted places, by the path of the rule that each of them is in.
type Openings<'a> = HashMap<&'a Path, Vec<Opening>>;

/// What has to be there in masks and in an empty root. `changes` has parents first.
fn openings<'a>(base: Base, changes: &[(&'a Path, &Grant)]) -> Openings<'a> {
    let mut all = Openings::new();
    if base != Base::Empty && changes.iter().all(|(_, grant)| grant.access != Access::Deny) {
        return all; // nothing hides anything
    }
    let mut above: Vec<&Path> = Vec::new();
    for (path, grant) in changes {
        while above.last().is_some_and(|above| !is_at_or_below(path, above)) {
            above.pop();
        }
        let nearest = above.last().copied().unwrap_or(Path::new("/"));
        above.push(path);
        if grant.access == Access::Deny || *path == nearest {
            continue;
        }
        if let Ok(relative) = path.strip_prefix(nearest) {
            let (relative, kind) = (relative.to_path_buf(), grant.kind);
            all.entry(nearest).or_default().push(Opening::MountPoint { relative, kind });
        }
    }
    all
}

fn cover(path: &Path, grant: &Grant, openings: &mut Openings<'_>) -> Cover {
    let action = match grant.access {
        Access::Deny => Action::Mask { openings: openings.remove(path).unwrap_or_default() },
        access => Action::Show { read_only: access != Access::Write },
    };
    Cover { path: path.to_path_buf(), kind: grant.kind, identity: grant.identity, action }
}

fn root_openings(
    tree: &GrantTree,
    granted: Vec<Opening>,
    links: &[(PathBuf, PathBuf)],
) -> Vec<Opening> {
    let root = Path::new("/");
    let mut all: Vec<Opening> = OWN_MOUNTS
        .iter()
        .map(|name| Opening::MountPoint { relative: name.into(), kind: Kind::Directory })
        .collect();
    all.extend(granted);
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
    let mut pins = Vec::new();
    let mut last = None;
    for cover in covers {
        let directory = cover.path.parent().map(Path::as_os_str);
        if last != Some(directory) {
            let movable = tree.movable_ancestors(&cover.path).into_iter();
            pins.extend(movable.filter(|path| !tree.is_change(path)));
        }
        last = Some(directory);
    }
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
        let deepest = self.covers.iter().rev().find(|cover| is_at_or_below(path, &cover.path));
        match deepest.map(|cover| &cover.action) {
            Some(action) => *action == Action::Show { read_only: false },
            None => self.base == Base::Writable,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
