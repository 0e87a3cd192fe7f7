//! A directory of files: one record each, mode 0600, replaced whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plenipo_redact::Secret;

use super::{Lease, MAX_RECORD_BYTES, Store, StoreKind, private};
use crate::error::{StoreError, StoreFault};
use crate::key::RecordId;
use crate::seal::{self, SALT_BYTES, SealingKey};

const RECORD: &str = "credential";
const LOCK: &str = "lock";
const SALT: &str = "salt";

/// Records as files `ID.credential` of one directory (mode 0700), each written under an advisory
/// lock on `ID.lock`. Directory and files have to be the user's own and nobody else's to read.
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: PathBuf,
    key: Option<SealingKey>,
}

#[derive(Debug)]
struct FileLease {
    store: FileStore,
    id: RecordId,
    /// The open file is the lock.
    _lock: File,
}

impl FileStore {
    /// Records in the clear, for their owner alone. The directory is made when it is needed.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), key: None }
    }

    /// Records encrypted with a key.
    #[must_use]
    pub fn sealed(directory: impl Into<PathBuf>, key: SealingKey) -> Self {
        Self { directory: directory.into(), key: Some(key) }
    }

    /// Records encrypted with a passphrase, and a salt that the directory keeps.
    ///
    /// # Errors
    /// [`StoreError`] when the salt can neither be read nor made.
    pub fn with_passphrase(
        directory: impl Into<PathBuf>,
        passphrase: &Secret<String>,
    ) -> Result<Self, StoreError> {
        let directory = directory.into();
        let salt = salt(&directory).map_err(|fault| {
            StoreError::new("read", directory.join(SALT).display().to_string(), fault)
        })?;
        let key = SealingKey::derive(passphrase, &salt)
            .map_err(|fault| StoreError::new("open", directory.display().to_string(), fault))?;
        Ok(Self { directory, key: Some(key) })
    }

    fn path(&self, id: &RecordId, ending: &str) -> PathBuf {
        self.directory.join(format!("{id}.{ending}"))
    }

    fn read(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreFault> {
        private::check_directory(&self.directory)?;
        let kept = private::read(&self.path(id, RECORD), MAX_RECORD_BYTES)?;
        kept.map(|kept| seal::open(self.key.as_ref(), id, kept)).transpose()
    }

    /// Locks a record, and removes what a writer that was killed left of it.
    fn lock(&self, id: &RecordId, path: &Path, patience: Duration) -> Result<File, StoreFault> {
        let lock = private::lock(&self.directory, path, patience)?;
        private::remove_unfinished(&self.path(id, RECORD))?;
        Ok(lock)
    }

    /// What is in the directory; nothing when there is none.
    fn names(&self) -> Result<Vec<OsString>, StoreFault> {
        private::check_directory(&self.directory)?;
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        Ok(names.collect::<io::Result<_>>()?)
    }
}

impl Store for FileStore {
    fn kind(&self) -> StoreKind {
        StoreKind::File
    }

    fn place(&self) -> String {
        self.directory.display().to_string()
    }

    fn place_of(&self, id: &RecordId) -> String {
        self.path(id, RECORD).display().to_string()
    }

    fn load(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        self.read(id).map_err(|fault| StoreError::new("read", self.place_of(id), fault))
    }

    fn ids(&self) -> Result<Vec<RecordId>, StoreError> {
        let names = self.names().map_err(|fault| StoreError::new("list", self.place(), fault))?;
        Ok(names.iter().filter_map(|name| id_of(name, RECORD)).collect())
    }

    fn peek(&self, id: &RecordId) -> Option<Secret<Vec<u8>>> {
        private::check_directory(&self.directory).ok()?;
        let kept = private::peek(&self.path(id, RECORD), MAX_RECORD_BYTES)?;
        seal::open(self.key.as_ref(), id, kept).ok()
    }

    fn strays(&self) -> Result<Vec<String>, StoreError> {
        let names = self.names().map_err(|fault| StoreError::new("list", self.place(), fault))?;
        let strays = names.into_iter().filter(|name| !is_ours(name));
        Ok(strays.map(|name| self.directory.join(name).display().to_string()).collect())
    }

    fn is_encrypted(&self) -> bool {
        self.key.is_some()
    }

    fn lease(&self, id: &RecordId, patience: Duration) -> Result<Box<dyn Lease>, StoreError> {
        let path = self.path(id, LOCK);
        let lock = self.lock(id, &path, patience);
        let lock =
            lock.map_err(|fault| StoreError::new("lease", path.display().to_string(), fault))?;
        Ok(Box::new(FileLease { store: self.clone(), id: id.clone(), _lock: lock }))
    }
}

impl Lease for FileLease {
    fn load(&mut self) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        self.store.load(&self.id)
    }

    fn save(&mut self, record: &Secret<Vec<u8>>) -> Result<(), StoreError> {
        let path = self.store.path(&self.id, RECORD);
        let written = match record.expose().len() {
            length if length > MAX_RECORD_BYTES / 2 => Err(StoreFault::TooLong),
            _ => seal::seal(self.store.key.as_ref(), &self.id, record)
                .and_then(|kept| private::replace(&path, &kept).map_err(StoreFault::from)),
        };
        written.map_err(|fault| StoreError::new("write", path.display().to_string(), fault))
    }
}

/// The directory's salt, made when there is none. Of two processes that make it one wins.
fn salt(directory: &Path) -> Result<[u8; SALT_BYTES], StoreFault> {
    private::make_directory(directory)?;
    let path = directory.join(SALT);
    if private::read(&path, SALT_BYTES)?.is_none() {
        private::create(&path, &seal::random::<SALT_BYTES>()?)?;
    }
    let salt = private::read(&path, SALT_BYTES)?.unwrap_or_default();
    salt.try_into().map_err(|_| StoreFault::Corrupt { what: "salt" })
}

/// The record that a file belongs to.
fn id_of(name: &OsStr, ending: &str) -> Option<RecordId> {
    RecordId::parse(name.to_str()?.strip_suffix(ending)?.strip_suffix('.')?)
}

/// Whether this store puts files of such a name into its directory.
fn is_ours(name: &OsStr) -> bool {
    let is_unfinished = || {
        let id = name.to_str().and_then(|name| RecordId::parse(name.split('.').next()?));
        let of = |id: RecordId| private::is_unfinished(name, format!("{id}.{RECORD}").as_ref());
        id.is_some_and(of) || private::is_unfinished(name, SALT.as_ref())
    };
    name == SALT
        || [RECORD, LOCK].iter().any(|ending| id_of(name, ending).is_some())
        || is_unfinished()
}
