//! Reading git's small files: no symbolic link, nothing but a regular file, never more than a bound.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use crate::error::{LaunchError, unreadable};

/// Longest file that is read; git's own are a few kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The bytes of the regular file at `path`; `None` if there is none to be read by this user.
///
/// # Errors
/// It is longer than 1 MiB: what it says about hooks would be missed.
pub(super) fn read_small(path: &Path) -> Result<Option<Vec<u8>>, LaunchError> {
    // Not blocking: a FIFO in its place would hold the launch up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let Ok(file) = opened else { return Ok(None) };
    let is_regular = fstat(&file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if !is_regular {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path.to_path_buf(), error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        let message = format!("{} is longer than 1 MiB", path.display());
        return Err(LaunchError::unenforceable(message));
    }
    Ok(Some(bytes))
}

/// A path as git's files spell it; like git's, it ends at a NUL.
pub(super) fn text_path(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    PathBuf::from(OsStr::from_bytes(bytes.get(..end).unwrap_or(bytes)))
}
