//! The program that enforces a state: its path, and whether that path can be relied on.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde_json::value::{RawValue, to_raw_value};

use crate::LauncherFault;

mod verify;

/// What the kernel appends to the path of a running executable that was removed.
const DELETED_SUFFIX: &str = " (deleted)";

/// The path of a launcher as it is written into `_meta`: absolute and UTF-8, without NUL.
///
/// Says nothing about whether the file can be relied on: a host sends a [`VerifiedLauncher`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SandboxLauncher(String);

impl SandboxLauncher {
    /// Takes `path` as it is; nothing is looked up.
    ///
    /// # Errors
    ///
    /// [`LauncherFault`] when the path is not absolute, not UTF-8, holds a NUL, or is what the
    /// kernel shows for a removed executable (`… (deleted)`).
    pub fn new(path: &Path) -> Result<Self, LauncherFault> {
        let owned = || path.to_path_buf();
        let text = path.to_str().ok_or_else(|| LauncherFault::NotUtf8 { path: owned() })?;
        if text.contains('\0') {
            return Err(LauncherFault::Nul { path: owned() });
        }
        if !path.is_absolute() {
            return Err(LauncherFault::NotAbsolute { path: owned() });
        }
        if text.ends_with(DELETED_SUFFIX) {
            return Err(LauncherFault::Deleted { path: owned() });
        }
        Ok(Self(text.to_owned()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The value of the `_meta` entry: `{"codexExecutable":"…"}`.
    pub(crate) fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&BTreeMap::from([("codexExecutable", &self.0)]))
    }
}

impl fmt::Debug for SandboxLauncher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SandboxLauncher").field(&self.0).finish()
    }
}

/// A launcher that nobody but root and the current user could have replaced, with the identity of
/// its file.
///
/// What remains open: between the moment the path is attached to a call and the server's `execve`,
/// root or the user themselves may put another file there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLauncher {
    launcher: SandboxLauncher,
    identity: FileIdentity,
}

impl VerifiedLauncher {
    /// Verifies the file at `path` and every directory on the way to it, following symbolic links
    /// by hand: each must belong to root or to the effective user, and none may be writable by
    /// group or others, except directories with the sticky bit (such as `/tmp`). The file must be
    /// a regular one with an execute bit.
    ///
    /// # Errors
    ///
    /// [`LauncherFault`] naming the first thing that is wrong; always on systems other than Unix,
    /// and where `/proc/self/status` cannot be read.
    pub fn verify(path: &Path) -> Result<Self, LauncherFault> {
        let launcher = SandboxLauncher::new(path)?;
        let identity = verify::verify(path)?;
        Ok(Self { launcher, identity })
    }

    /// Compares the file now at the path with the one verified: device, inode, size, mtime, ctime.
    ///
    /// # Errors
    ///
    /// [`LauncherFault::Changed`] when it is another, [`LauncherFault::Unreadable`] when it is gone.
    pub fn still_same(&self) -> Result<(), LauncherFault> {
        let path = self.launcher.as_path();
        if verify::identity(path)? == self.identity {
            Ok(())
        } else {
            Err(LauncherFault::Changed { path: PathBuf::from(path) })
        }
    }

    /// The path to send.
    pub fn launcher(&self) -> &SandboxLauncher {
        &self.launcher
    }

    /// Path and file identity as bytes, for a digest.
    pub(crate) fn identity_bytes(&self) -> Vec<u8> {
        let mut bytes = self.launcher.as_str().as_bytes().to_vec();
        bytes.push(0);
        for number in self.identity.0 {
            bytes.extend(number.to_be_bytes());
        }
        bytes
    }
}

/// Device, inode, size, mtime and ctime (seconds, nanoseconds each) of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity([i128; 7]);

#[cfg(test)]
mod tests;
