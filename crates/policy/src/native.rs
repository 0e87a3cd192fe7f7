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

/// Whether [`absolute`] takes it.
pub(crate) fn check_absolute(path: &Path) -> Result<(), &'static str> {
    if path.is_absolute() && is_clean(path) {
        return bounded(path.as_os_str().as_encoded_bytes());
    }
    absolute(path).map(drop)
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
    if is_clean(path) {
        return Ok(path.to_path_buf());
    }
    if path.components().any(|component| component == Component::ParentDir) {
        return Err("must not contain a `..` component");
    }
    // An embedded `.` is dropped by `components`, a leading one is not.
    Ok(path.components().filter(|component| *component != Component::CurDir).collect())
}

/// Whether the path is written as its components are, which is told at once: most are.
fn is_clean(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.strip_prefix(b"/").unwrap_or(bytes);
    names.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// A clean absolute path for comparing, as [`Path`] compares and many times as fast: a separator is less than all else, so
/// a directory comes right before what is in it.
pub(crate) fn sort_key(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.strip_prefix(b"/").unwrap_or(bytes);
    names.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}
