//! Placeholders: empty directories that keep a protected name from coming into being.
//!
//! A mount needs something to stand on, so a missing name gets an empty read-only directory on the host for as long as
//! a sandbox runs that protects it. (An empty directory keeps `git` looking further up; an empty file would not.)
//! Several launches share one: each holds a shared `flock(2)` on it, the last one removes it. A placeholder is told
//! from a directory of the user's by its mode and its fixed modification time, so that one left behind by a killed
//! launcher is taken over and removed by the next.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::error::LaunchError;

/// 2001-09-09 01:46:40 UTC: nothing else sets this time.
const MARK_SECONDS: i64 = 1_000_000_000;
const MODE: u32 = 0o555;
/// Tries against others that make or remove the same name at the same time.
const TRIES: usize = 100;

/// The placeholders of one launch; dropping it removes those that nobody else needs.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    held: Vec<(PathBuf, OwnedFd)>,
}

impl Placeholders {
    /// Makes or joins a placeholder at `place`. `false`: no directory can be made there, so a command of this user
    /// cannot make one either.
    pub(crate) fn reserve(&mut self, place: &Path) -> Result<bool, LaunchError> {
        for attempt in 0..TRIES {
            let made = make(place, attempt);
            match made {
                Ok(()) | Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOENT) => return Ok(false),
                Err(error) => return Err(LaunchError::at("reserve", place, error)),
            }
            match join(place) {
                Ok(Some(held)) => {
                    self.held.push((place.to_path_buf(), held));
                    return Ok(true);
                }
                Ok(None) => return Ok(true), // somebody's own directory or file: it exists, that is enough
                Err(Errno::NOENT) => {}      // just removed by its last holder
                Err(error) => return Err(LaunchError::at("open the placeholder", place, error)),
            }
        }
        Err(LaunchError::at("reserve", place, Errno::AGAIN))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.held.iter().map(|(path, _)| path.as_path())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for (place, held) in self.held.drain(..) {
            // Another holder keeps it; a failure leaves an empty marked directory that the next launch takes over.
            if fs::flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_marked(&held)
                && is_still_at(&held, &place)
            {
                fs::rmdir(&place).unwrap_or(());
            }
        }
    }
}

/// Makes the placeholder under another name and renames it, so that nobody ever sees it unmarked.
fn make(place: &Path, attempt: usize) -> Result<(), Errno> {
    if fs::lstat(place).is_ok() {
        return Err(Errno::EXIST);
    }
    let mut name = OsString::from(".plenipo-");
    name.push(format!("{}-{attempt}", std::process::id()));
    let temporary = place.with_file_name(name);
    fs::mkdir(&temporary, Mode::from_raw_mode(MODE))?;
    let marked = mark(&temporary).and_then(|()| {
        fs::renameat_with(fs::CWD, &temporary, fs::CWD, place, RenameFlags::NOREPLACE)
    });
    if marked.is_err() {
        fs::rmdir(&temporary).unwrap_or(());
    }
    marked
}

fn mark(directory: &Path) -> Result<(), Errno> {
    fs::chmod(directory, Mode::from_raw_mode(MODE))?;
    let time = Timespec { tv_sec: MARK_SECONDS, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    fs::utimensat(fs::CWD, directory, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Takes a share of a placeholder; `None` if what stands there is not one.
fn join(place: &Path) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match fs::open(place, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Err(Errno::NOENT),
        Err(_) => return Ok(None),
    };
    if !is_marked(&directory) {
        return Ok(None);
    }
    fs::flock(&directory, FlockOperation::LockShared)?;
    if is_still_at(&directory, place) { Ok(Some(directory)) } else { Err(Errno::NOENT) }
}

/// Whether what stands somewhere looks like a placeholder of this or another launch.
pub(crate) fn is_placeholder(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.is_dir() && metadata.mtime() == MARK_SECONDS && metadata.mode() & 0o7777 == MODE
}

fn is_marked(directory: &OwnedFd) -> bool {
    fs::fstat(directory)
        .is_ok_and(|stat| stat.st_mtime == MARK_SECONDS && stat.st_mode & 0o7777 == MODE)
}

fn is_still_at(directory: &OwnedFd, place: &Path) -> bool {
    let identity = |stat: fs::Stat| (stat.st_dev, stat.st_ino);
    match (fs::fstat(directory), fs::lstat(place)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
