//! Reading configuration files: bounded, and nothing but plain files.

use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::failure::Failure;

/// Longest configuration file that is read.
const MAX_CONFIG_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn read_optional(path: &Path) -> Result<Option<String>, Failure> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Also from a pipe, for `--config <(…)`.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    text_of(std::fs::File::open(path)?, MAX_CONFIG_BYTES)
}

/// A managed file that others could write is nobody's authority. The file that is checked is the one that is read.
pub(super) fn read_managed(path: &Path) -> Result<Option<String>, Failure> {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if metadata.uid() != 0 || metadata.mode() & OTHERS_MAY_WRITE != 0 {
        let message = format!("{} can be written by others than root", path.display());
        return Err(Failure::usage(message).with_hint(
            "the managed configuration has to belong to root, with no group or world write",
        ));
    }
    text_of(file, MAX_CONFIG_BYTES).map(Some).map_err(|error| unreadable(path, &error))
}

/// A file that somebody else may have made: a plain file and no link, so that opening it cannot hang and its path
/// says where it is.
pub(super) fn read_plain(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    bytes_of(file, limit)
}

fn text_of(file: std::fs::File, limit: u64) -> io::Result<String> {
    String::from_utf8(bytes_of(file, limit)?).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn bytes_of(file: std::fs::File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(io::Error::other(format!("it is longer than {} MiB", limit / (1024 * 1024))));
    }
    Ok(bytes)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("failed to read the configuration {}: {error}", path.display()))
}
