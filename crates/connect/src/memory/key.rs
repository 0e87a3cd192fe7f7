//! Under which name something about a server is kept.

use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;

use plenipo_process::StdioCommand;
use sha2::{Digest as _, Sha256};

/// Names what is kept: 64 characters of `0-9a-f`, fit for a file's name. A digest over the server
/// and, where an answer may depend on it, over for whom it answers, so that neither can be read off.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemoryKey(String);

impl MemoryKey {
    /// Parts are told apart by their lengths.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of_bytes(parts.into_iter().map(str::as_bytes))
    }

    pub(crate) fn of_bytes<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut name = String::with_capacity(64);
        for byte in digest.finalize() {
            // Writing to a string cannot fail.
            write!(name, "{byte:02x}").ok();
        }
        Self(name)
    }

    /// For the era of a local server. Variables do not count: some change with every start, and few change what a
    /// program is.
    pub(crate) fn of_command(command: &StdioCommand) -> Self {
        let server = command.stands_for();
        let words =
            [server.program()].into_iter().chain(server.arguments()).map(OsStrExt::as_bytes);
        let cwd = server.directory().map(|cwd| cwd.as_os_str().as_bytes());
        Self::of_bytes([&b"stdio"[..]].into_iter().chain(words).chain(cwd))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_run_together() {
        assert_ne!(MemoryKey::of(["ab", "c"]), MemoryKey::of(["a", "bc"]));
        assert_ne!(MemoryKey::of(["a"]), MemoryKey::of(["a", ""]));
        assert_eq!(MemoryKey::of(["a", "b"]).as_str().len(), 64);
    }
}
