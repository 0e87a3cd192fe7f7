//! What servers were found to be, kept in files between runs: each server's era, and tool lists for as long as the
//! server said. Losing it costs a question, so nothing here fails a command.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use plenipo_connect::memory::{Memory, MemoryKey};

/// Longer files are not ours.
const MOST_BYTES: u64 = 1024 * 1024;
/// From this many files on, the oldest makes room for a new one.
const MOST_FILES: usize = 256;

/// A directory that only its owner can look into. A sandboxed command cannot write it: it is below the directory that
/// holds what is trusted.
#[derive(Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    /// Below the directory for what must survive.
    pub(crate) fn below(data: &Path) -> Self {
        Self(data.join("memory"))
    }

    fn path(&self, key: &MemoryKey) -> PathBuf {
        self.0.join(format!("{key}.json"))
    }

    fn write(&self, key: &MemoryKey, text: &str) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let path = self.path(key);
        if !path.exists() {
            self.make_room()?;
        }
        // Another run may write the same one: whole files only, the last one stays.
        let fresh = self.0.join(format!("{key}.{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&fresh, &path));
        if written.is_err() {
            fs::remove_file(&fresh).ok();
        }
        written
    }

    fn make_room(&self) -> std::io::Result<()> {
        let mut files: Vec<_> = fs::read_dir(&self.0)?
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let over = (files.len() + 1).saturating_sub(MOST_FILES);
        for (_, path) in files.into_iter().take(over) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

impl Memory for Files {
    fn recall(&self, key: &MemoryKey) -> Option<String> {
        let mut text = String::new();
        // A FIFO in the file's place must not hold us up.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(nonblocking).open(self.path(key)).ok()?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn keep(&self, key: &MemoryKey, text: &str) {
        // A full disk or a read-only home: the next run asks again.
        self.write(key, text).ok();
    }
}
