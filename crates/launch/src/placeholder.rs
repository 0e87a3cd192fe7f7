//! Placeholders: empty directories that keep a protected name from coming into being.
//!
//! A mount needs something to stand on, so a missing name gets an empty read-only directory on the host for as long as
//! a sandbox runs that protects it. (An empty directory keeps `git` looking further up; an empty file would not.)
//! Several launches share one: each holds a shared `flock(2)` on it, the last one removes it. (Removing it earlier would
//! take the others' mounts with it.) A placeholder is told from a directory of the user's by its mode, its fixed
//! modification time and its emptiness, so that one left behind by a killed launcher is taken over and removed by the
//! next. A command can make such a directory itself, so the marks never lower anything: they only decide whether a place
//! that is going to be covered anyway is shared and removed.
//!
//! Commands of other sandboxes may write in the same directory while this works. So everything is done from a descriptor
//! of the directory, and nothing that could follow a symbolic link is done by name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{
    self, AtFlags, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps,
};
use rustix::io::Errno;

use crate::error::LaunchError;

/// 2001-09-09 01:46:40 UTC: nothing else sets this time.
const MARK_SECONDS: i64 = 1_000_000_000;
const MODE: u32 = 0o555;
/// The bits that tell: a directory inherits the set-group-ID bit.
const PERMISSIONS: u32 = 0o777;
/// Tries against others that make or remove the same name at the same time.
const TRIES: u32 = 1000;
/// From this one on, a try waits first: the last holder of a placeholder may be removing it.
const PATIENT: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// The placeholders of one launch; dropping it removes those that nobody else needs.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    held: Vec<Held>,
    parent: Option<(PathBuf, Rc<OwnedFd>)>,
}

#[derive(Debug)]
struct Held {
    place: PathBuf,
    parent: Rc<OwnedFd>,
    directory: OwnedFd,
}

/// Whether what stands at `place` looks like a placeholder of this or another launch. Counts only where this launch
/// would put one.
pub(crate) fn is_placeholder(place: &Path, metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.is_dir()
        && has_marks(metadata.mtime(), metadata.mode())
        && std::fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none())
}

fn has_marks(seconds: i64, mode: u32) -> bool {
    seconds == MARK_SECONDS && mode & PERMISSIONS == MODE
}

impl Placeholders {
    /// Makes or joins a placeholder at `place`. `false`: no directory can be made there, so a command of this user
    /// cannot make one either.
    ///
    /// # Errors
    /// The directory belongs to this user, who could open it later; somebody keeps the placeholder locked.
    pub(crate) fn reserve(&mut self, place: &Path) -> Result<bool, LaunchError> {
        let failed = |error| LaunchError::at("reserve", place, error);
        let (Some(above), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(failed(Errno::INVAL));
        };
        let parent = match self.open_parent(above) {
            Ok(parent) => parent,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        for attempt in 0..TRIES {
            if attempt >= PATIENT {
                std::thread::sleep(PAUSE);
            }
            match make(parent.as_fd(), name, attempt) {
                Ok(directory) => {
                    self.held.push(Held { place: place.to_path_buf(), parent, directory });
                    return Ok(true);
                }
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::AGAIN) => {}
                Err(error @ (Errno::ACCESS | Errno::PERM)) if is_own(parent.as_fd()) => {
                    return Err(failed(error).with_hint(
                        "a command could give itself the right to write there: make the directory writable, or do \
                         not grant it",
                    ));
                }
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOENT) => return Ok(false),
                Err(error) => return Err(failed(error)),
            }
            match join(parent.as_fd(), name) {
                Ok(Some(directory)) => {
                    self.held.push(Held { place: place.to_path_buf(), parent, directory });
                    return Ok(true);
                }
                Ok(None) => return Ok(true), // somebody's own directory or file: it exists, that is enough
                Err(Errno::NOENT | Errno::WOULDBLOCK) => {} // being removed by its last holder
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(Errno::WOULDBLOCK).with_hint("another process keeps this placeholder locked"))
    }

    /// Names in one directory come one after the other.
    fn open_parent(&mut self, path: &Path) -> Result<Rc<OwnedFd>, Errno> {
        if let Some((known, parent)) = &self.parent
            && known == path
        {
            return Ok(Rc::clone(parent));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let real = ResolveFlags::NO_SYMLINKS;
        let parent = Rc::new(fs::openat2(fs::CWD, path, flags, Mode::empty(), real)?);
        self.parent = Some((path.to_path_buf(), Rc::clone(&parent)));
        Ok(parent)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.held.iter().map(|held| held.place.as_path())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for Held { place, parent, directory } in self.held.drain(..) {
            let Some(name) = place.file_name() else { continue };
            // Another holder keeps it; a failure leaves an empty marked directory that the next launch takes over.
            if fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_marked(&directory)
                && is_still_at(&directory, parent.as_fd(), name)
            {
                fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).unwrap_or(());
            }
        }
    }
}

/// Makes the placeholder under another name and renames it, so that nobody ever sees it unmarked or without a holder.
fn make(parent: BorrowedFd<'_>, name: &OsStr, attempt: u32) -> Result<OwnedFd, Errno> {
    if fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(Errno::EXIST);
    }
    let temporary = OsString::from(format!(".plenipo-{}-{attempt}", std::process::id()));
    let caller = rustix::process::umask(Mode::empty());
    let made = fs::mkdirat(parent, &temporary, Mode::from_raw_mode(MODE));
    rustix::process::umask(caller);
    made?;
    let held = open_directory(parent, &temporary).and_then(|directory| {
        mark(&directory)?;
        fs::flock(&directory, FlockOperation::NonBlockingLockShared)?;
        fs::renameat_with(parent, &temporary, parent, name, RenameFlags::NOREPLACE)?;
        if is_still_at(&directory, parent, name) { Ok(directory) } else { Err(Errno::EXIST) }
    });
    held.map_err(|error| {
        fs::unlinkat(parent, &temporary, AtFlags::REMOVEDIR).unwrap_or(());
        match error {
            // It was just made: a command that may write here took it away, which must not pass for "cannot be made".
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM => {
                Errno::AGAIN
            }
            other => other,
        }
    })
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(parent, name, flags, Mode::empty())
}

fn mark(directory: &OwnedFd) -> Result<(), Errno> {
    // A default access control list may have taken bits away. (A change of mode is written to disk; a look is not.)
    if fs::fstat(directory)?.st_mode & PERMISSIONS != MODE {
        fs::fchmod(directory, Mode::from_raw_mode(MODE))?;
    }
    let time = Timespec { tv_sec: MARK_SECONDS, tv_nsec: 0 };
    fs::futimens(directory, &Timestamps { last_access: time, last_modification: time })
}

/// Takes a share of a placeholder; `None` if what stands there is not one.
fn join(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Option<OwnedFd>, Errno> {
    let directory = match open_directory(parent, name) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Err(Errno::NOENT),
        Err(_) => return Ok(None),
    };
    if !is_marked(&directory) {
        return Ok(None);
    }
    fs::flock(&directory, FlockOperation::NonBlockingLockShared)?;
    if is_still_at(&directory, parent, name) { Ok(Some(directory)) } else { Err(Errno::NOENT) }
}

fn is_marked(directory: &OwnedFd) -> bool {
    fs::fstat(directory).is_ok_and(|stat| has_marks(stat.st_mtime, stat.st_mode))
}

fn is_own(directory: BorrowedFd<'_>) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::fstat(directory).is_ok_and(|stat| stat.st_uid == user)
}

fn is_still_at(directory: &OwnedFd, parent: BorrowedFd<'_>, name: &OsStr) -> bool {
    let identity = |stat: fs::Stat| (stat.st_dev, stat.st_ino);
    match (fs::fstat(directory), fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
