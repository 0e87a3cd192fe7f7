//! Where consent is remembered: one file for one project's file, in a directory that nobody else may write and that no
//! sandboxed command can.
//!
//! `$XDG_DATA_HOME/plenipo/trust`, else `~/.local/share/plenipo/trust`; directories 0700, files 0600. A file is named
//! after the digest of the path, so that a new consent replaces the old one.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use crate::edit::atomic;
use crate::env;
use crate::failure::{Code, Failure};
use crate::settings::Consent;

/// Longest entry that is read.
const MAX_ENTRY_BYTES: u64 = 64 * 1024;
const OTHERS_MAY_WRITE: u32 = 0o022;

pub(crate) struct TrustStore {
    directory: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    file: String,
    digest: String,
}

impl TrustStore {
    /// Absent when there is no home directory.
    pub(crate) fn usual() -> Option<Self> {
        Some(Self { directory: env::data_directory()?.join("trust") })
    }

    /// What the user said about `file`. An entry that others could have written says nothing.
    pub(crate) fn consent(&self, file: &Path, digest: &Digest) -> Consent {
        match self.read(&self.entry_of(file)) {
            Some(entry) if Path::new(&entry.file) != file => Consent::Missing,
            Some(entry) if entry.digest == digest.as_str() => Consent::Given,
            Some(_) => Consent::Changed,
            None => Consent::Missing,
        }
    }

    pub(super) fn add(&self, file: &Path, digest: &Digest) -> Result<(), Failure> {
        let path = file.to_str().ok_or_else(|| {
            Failure::usage(format!("{} cannot be trusted: its path is not UTF-8", file.display()))
        })?;
        let entry = Entry { file: path.to_owned(), digest: digest.as_str().to_owned() };
        let failed = |error: io::Error| self.failed(&error);
        let text = serde_json::to_string(&entry).map_err(|error| failed(error.into()))?;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.directory).map_err(failed)?;
        if !is_ours(&self.directory) {
            let message = format!(
                "{} belongs to somebody else or can be written by others",
                self.directory.display()
            );
            return Err(Failure::new(Code::Refused, message)
                .with_hint("give it to yourself, with mode 0700"));
        }
        atomic::write(&self.entry_of(file), (text + "\n").as_bytes(), 0o600).map_err(failed)
    }

    /// Whether there was anything to take back.
    pub(super) fn remove(&self, file: &Path) -> Result<bool, Failure> {
        match std::fs::remove_file(self.entry_of(file)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Files and digests, sorted by file.
    pub(super) fn list(&self) -> Result<Vec<(String, String)>, Failure> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&error)),
        };
        let mut list: Vec<(String, String)> = entries
            .filter_map(|entry| self.read(&entry.ok()?.path()))
            .map(|entry| (entry.file, entry.digest))
            .collect();
        list.sort();
        Ok(list)
    }

    fn entry_of(&self, file: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of_path(file)))
    }

    fn read(&self, entry: &Path) -> Option<Entry> {
        if !is_ours(&self.directory) || !is_ours(entry) {
            return None;
        }
        let length = std::fs::metadata(entry).ok()?.len();
        let text = (length <= MAX_ENTRY_BYTES).then(|| std::fs::read_to_string(entry).ok())??;
        serde_json::from_str(&text).ok()
    }

    fn failed(&self, error: &io::Error) -> Failure {
        let message = format!("failed to keep trust in {}: {error}", self.directory.display());
        Failure::new(Code::Transport, message)
    }
}

/// A plain file or directory of this user (or root), that nobody else may write.
fn is_ours(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|metadata| {
        // What is neither could hold up whoever reads it.
        (metadata.is_file() || metadata.is_dir())
            && (metadata.uid() == user || metadata.uid() == 0)
            && metadata.mode() & OTHERS_MAY_WRITE == 0
    })
}
