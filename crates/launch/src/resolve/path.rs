//! Following a path once, link by link, without opening anything for reading.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{LaunchError, unreadable};
use crate::placeholder::is_placeholder;
use crate::tree::{Identity, Kind};

/// Links followed in one path before it counts as a loop; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// What a path led to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) identity: Identity,
    /// Names of the file (`st_nlink`).
    pub(super) links: u64,
    /// It looks like a placeholder: the launch that made it may end before this one, so what stands on it has to share
    /// it. Or a command made it look so; as it is empty, sharing it lowers nothing.
    pub(super) placeholder: bool,
}

/// A path followed to its end, or to the first component that does not exist.
#[derive(Debug)]
pub(super) struct Walk {
    /// Real path of what was found, or of what would be there.
    pub(super) real: PathBuf,
    /// Absent if some component is missing.
    pub(super) found: Option<Found>,
    /// Deepest existing directory of a missing path.
    pub(super) parent: PathBuf,
    /// Whether that directory looks like a placeholder.
    pub(super) parent_is_placeholder: bool,
    /// The first missing component in it.
    pub(super) first_missing: PathBuf,
    /// Symbolic links followed, as (real place, text).
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Whether `parent` is somebody else's directory that this user cannot search: whatever is in it, a command of this
    /// user does not get there.
    pub(super) out_of_reach: bool,
}

/// Every path is looked at once a launch, so that all rules agree on what a name leads to, whoever replaces it meanwhile.
#[derive(Debug, Default)]
pub(super) struct Looks {
    seen: HashMap<OsString, Look>,
    /// Paths that were found without a link in them, as they were written.
    plain: HashSet<OsString>,
}

/// What one name was, without following it.
#[derive(Debug, Clone)]
enum Look {
    Missing,
    Link(PathBuf),
    Found(Found),
    OutOfReach,
}

impl Looks {
    /// Follows `path`, which is absolute.
    pub(super) fn walk(&mut self, path: &Path) -> Result<Walk, LaunchError> {
        if is_plain(path) {
            if let Some(walk) = self.walk_last_name(path)? {
                return Ok(walk);
            }
            if let Some(walk) = self.walk_names(path)? {
                return Ok(walk);
            }
        }
        let walk = self.walk_all(path)?;
        if walk.links.is_empty()
            && path.parent().map(Path::as_os_str) == Some(walk.parent.as_os_str())
        {
            self.plain.insert(walk.parent.as_os_str().to_owned());
        }
        Ok(walk)
    }

    /// The short way for a name in a directory that is known to be a plain path: rules often come in crowds.
    fn walk_last_name(&mut self, path: &Path) -> Result<Option<Walk>, LaunchError> {
        let parent = directory(path);
        if !self.plain.contains(parent.as_os_str()) {
            return Ok(None);
        }
        let on_placeholder = matches!(self.look(parent)?, Look::Found(found) if found.placeholder);
        let (parent, place) = (parent.to_path_buf(), path.to_path_buf());
        match self.look(path)? {
            Look::Link(_) => Ok(None),
            Look::Found(found) => {
                Ok(Some(Walk { found: Some(found), ..cut_short(parent, place, &[], Vec::new()) }))
            }
            Look::Missing => Ok(Some(Walk {
                parent_is_placeholder: on_placeholder,
                ..cut_short(parent, place, &[], Vec::new())
            })),
            Look::OutOfReach => {
                Ok(Some(Walk { out_of_reach: true, ..cut_short(parent, place, &[], Vec::new()) }))
            }
        }
    }

    /// The way of a plain path that leads through no link: nothing has to be put together. `None` if there is one.
    fn walk_names(&mut self, path: &Path) -> Result<Option<Walk>, LaunchError> {
        let bytes = path.as_os_str().as_bytes();
        let separators = bytes.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
        let ends = separators.map(|(end, _)| end).chain([bytes.len()]);
        let (mut last, mut on_placeholder) = (None, false);
        for end in ends {
            let place = Path::new(OsStr::from_bytes(bytes.get(..end).unwrap_or(bytes)));
            let look = self.look(place)?;
            if let Look::Found(found) = look {
                (last, on_placeholder) = (Some(found), found.placeholder);
                continue;
            }
            let out_of_reach = matches!(look, Look::OutOfReach);
            return Ok(matches!(look, Look::Missing | Look::OutOfReach).then(|| Walk {
                real: path.to_path_buf(),
                found: None,
                parent: directory(place).to_path_buf(),
                parent_is_placeholder: on_placeholder && !out_of_reach,
                first_missing: place.to_path_buf(),
                links: Vec::new(),
                out_of_reach,
            }));
        }
        let (parent, place) = (directory(path).to_path_buf(), path.to_path_buf());
        Ok(Some(Walk { found: last, ..cut_short(parent, place, &[], Vec::new()) }))
    }

    fn walk_all(&mut self, path: &Path) -> Result<Walk, LaunchError> {
        let mut pending: Vec<OsString> = components(path);
        let mut real = PathBuf::from("/");
        let mut links = Vec::new();
        let mut on_placeholder = false;
        while let Some(name) = pending.pop() {
            if name == ".." {
                real.pop();
                on_placeholder = false;
                continue;
            }
            let place = real.join(&name);
            match self.look(&place)? {
                Look::Missing => {
                    return Ok(Walk {
                        parent_is_placeholder: on_placeholder,
                        ..cut_short(real, place, &pending, links)
                    });
                }
                Look::OutOfReach => {
                    return Ok(Walk {
                        out_of_reach: true,
                        ..cut_short(real, place, &pending, links)
                    });
                }
                Look::Found(found) => (real, on_placeholder) = (place, found.placeholder),
                Look::Link(_) if links.len() >= MAX_LINKS => {
                    let error = io::Error::from_raw_os_error(libc::ELOOP);
                    return Err(unreadable(path.to_path_buf(), error));
                }
                Look::Link(text) => {
                    if text.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    pending.extend(components(&text));
                    links.push((place, text));
                }
            }
        }
        let Look::Found(found) = self.look(&real)? else {
            return Err(unreadable(real, io::ErrorKind::NotFound.into()));
        };
        let parent = real.parent().unwrap_or(Path::new("/")).to_path_buf();
        let first_missing = real.clone();
        Ok(Walk { found: Some(found), ..cut_short(parent, first_missing, &[], links) })
    }

    fn look(&mut self, place: &Path) -> Result<Look, LaunchError> {
        if let Some(look) = self.seen.get(place.as_os_str()) {
            return Ok(look.clone());
        }
        let look = look_at(place)?;
        self.seen.insert(place.as_os_str().to_owned(), look.clone());
        Ok(look)
    }
}

/// Whether a path is written as a real one is: one separator before each name, no `.`, no `..`.
fn is_plain(path: &Path) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    let names = path.as_os_str().as_bytes().strip_prefix(b"/");
    names.is_some_and(|names| names.split(|byte| *byte == b'/').all(is_name))
}

/// What a plain path is in.
fn directory(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
    Path::new(OsStr::from_bytes(bytes.get(..end.max(1)).unwrap_or(bytes)))
}

fn look_at(place: &Path) -> Result<Look, LaunchError> {
    let failed = |error| Err(unreadable(place.to_path_buf(), error));
    match std::fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_symlink() => match std::fs::read_link(place) {
            Ok(text) => Ok(Look::Link(text)),
            Err(error) => failed(error),
        },
        Ok(metadata) => Ok(Look::Found(describe(place, &metadata))),
        Err(error) if is_missing(&error) => Ok(Look::Missing),
        Err(error) if is_foreign_and_closed(place.parent().unwrap_or(place), &error) => {
            Ok(Look::OutOfReach)
        }
        Err(error) => failed(error),
    }
}

fn cut_short(
    parent: PathBuf,
    first_missing: PathBuf,
    pending: &[OsString],
    links: Vec<(PathBuf, PathBuf)>,
) -> Walk {
    let real = pending.iter().rev().fold(first_missing.clone(), |path, name| path.join(name));
    let (found, parent_is_placeholder, out_of_reach) = (None, false, false);
    Walk { real, found, parent, parent_is_placeholder, first_missing, links, out_of_reach }
}

/// A directory's owner could open it, so only somebody else's counts.
fn is_foreign_and_closed(directory: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
        && std::fs::symlink_metadata(directory)
            .is_ok_and(|metadata| metadata.uid() != rustix::process::geteuid().as_raw())
}

/// Normal components in reverse, so that the next one is popped from the end.
fn components(path: &Path) -> Vec<OsString> {
    let keep = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    let mut names: Vec<OsString> = path.components().filter_map(keep).collect();
    names.reverse();
    names
}

fn describe(place: &Path, metadata: &std::fs::Metadata) -> Found {
    Found {
        kind: if metadata.is_dir() { Kind::Directory } else { Kind::File },
        identity: Identity { device: metadata.dev(), inode: metadata.ino() },
        links: metadata.nlink(),
        placeholder: is_placeholder(place, metadata),
    }
}

/// A file in the middle of a path is as missing as an absent name.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use plenipo_testkit::Fixture;

    use super::*;

    /// The short ways are the long one, made shorter.
    #[test]
    fn every_way_to_a_place_tells_the_same_of_it() {
        let fixture = Fixture::new();
        fixture.file("a/b/file", "");
        std::os::unix::fs::symlink("b", fixture.path().join("a/link")).unwrap();
        let top = fixture.path().to_str().unwrap();
        let below = [
            "",
            "/a",
            "/a/b/file",
            "/a/b/none",
            "/none/of/them",
            "/a/b/file/x",
            "/a/link/file",
            "/a/./b",
        ];
        let more = ["/", "/proc", "/none", "//proc", "/proc/"].map(str::to_owned);
        let paths: Vec<String> =
            below.iter().map(|path| format!("{top}{path}")).chain(more).collect();
        let mut known = Looks::default();
        for path in paths.iter().chain(&paths).map(Path::new) {
            let short = format!("{:?}", known.walk(path).unwrap());
            assert_eq!(
                short,
                format!("{:?}", Looks::default().walk_all(path).unwrap()),
                "{path:?}"
            );
        }
        let plain = |path: &str| is_plain(Path::new(path));
        assert!(plain("/a") && plain("/a/b..") && plain("/..a"));
        assert!(["/", "a", "", "//a", "/a/", "/a/.", "/../a"].iter().all(|path| !plain(path)));
    }
}
