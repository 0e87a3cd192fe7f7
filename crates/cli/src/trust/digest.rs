//! What consent is given to: one content at one place.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// SHA-256 over a file's canonical path and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest(String);

impl Digest {
    /// The length goes first, so that no path and content can pass for others.
    pub(crate) fn of(path: &Path, content: &[u8]) -> Self {
        let path = path.as_os_str().as_bytes();
        let mut hash = Sha256::new();
        hash.update(b"plenipo trust 1\0");
        hash.update((path.len() as u64).to_le_bytes());
        hash.update(path);
        hash.update(content);
        Self(hex(&hash.finalize()))
    }

    /// Of a path alone.
    pub(super) fn of_path(path: &Path) -> Self {
        Self(hex(&Sha256::digest(path.as_os_str().as_bytes())))
    }

    /// 64 lower-case hexadecimal digits.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_binds_path_and_content_apart() {
        let of = |path: &str, content: &str| Digest::of(Path::new(path), content.as_bytes());
        assert_eq!(of("/a", "b"), of("/a", "b"));
        assert_ne!(of("/a", "b"), of("/ab", ""));
        assert_ne!(of("/a", "b"), of("/b", "b"));
        assert_eq!(of("/a", "b").as_str().len(), 64);
    }
}
