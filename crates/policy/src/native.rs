//! Checks on paths as text: absolute, bounded, without tricks. Nothing touches the file system.

use std::path::{Component, Path, PathBuf};

/// The longest path accepted anywhere, in bytes (`PATH_MAX` of Linux).
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// An absolute path, lexically clean: `.`, doubled and trailing `/` are dropped.
///
/// `..` is refused: where a symbolic link precedes it, its lexical and its real meaning differ.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, &'static str> {
    bounded(path.as_os_str().as_encoded_bytes())?;
    if !path.is_absolute() {
        return Err("must be an absolute path");
    }
    without_parents(path)
}

/// A path below another one: relative and without `..`, lexically clean (`.` becomes empty).
pub(crate) fn relative(path: &str) -> Result<PathBuf, &'static str> {
    bounded(path.as_bytes())?;
    if path.is_empty() {
        return Err("must not be empty");
    }
    if path.starts_with('/') {
        return Err("must be a relative path");
    }
    without_parents(Path::new(path))
}

/// A glob: not empty, bounded, and without `..`.
pub(crate) fn glob(pattern: &str) -> Result<(), &'static str> {
    bounded(pattern.as_bytes())?;
    if pattern.trim_matches('/').is_empty() {
        return Err("must not be empty");
    }
    without_parents(Path::new(pattern)).map(drop)
}

/// A name that is only carried.
pub(crate) fn carried(path: &str) -> Result<(), &'static str> {
    bounded(path.as_bytes())
}

fn bounded(bytes: &[u8]) -> Result<(), &'static str> {
    if bytes.contains(&0) {
        return Err("must not contain NUL");
    }
    if bytes.len() > MAX_PATH_BYTES {
        return Err("must not be longer than 4096 bytes");
    }
    Ok(())
}

fn without_parents(path: &Path) -> Result<PathBuf, &'static str> {
    if path.components().any(|component| component == Component::ParentDir) {
        return Err("must not contain a `..` component");
    }
    // An embedded `.` is dropped by `components`, a leading one is not.
    Ok(path.components().filter(|component| *component != Component::CurDir).collect())
}
