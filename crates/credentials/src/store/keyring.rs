//! The keyring of the desktop session, over D-Bus
//! (<https://specifications.freedesktop.org/secret-service/latest/>). It has no lock for others to
//! wait on, so that a lease is a file here.

mod session;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use plenipo_redact::Secret;

use super::{Lease, Loaded, MAX_RECORD_BYTES, Store, StoreKind, private};
use crate::error::{StoreError, StoreFault};
use crate::key::RecordId;
use session::Bus;

const LOCK: &str = "lock";
/// For one conversation. A bus that starts the service first takes a while.
const PATIENCE: Duration = Duration::from_secs(20);

/// Records as items of the default keyring, each found by its id, which tells nothing, and replaced
/// whole; each written under an advisory lock on `ID.lock` in a directory. Every program of the user
/// has to name the same directory: two of them would refresh the same token at once.
///
/// Nothing is unlocked and nobody is asked: a locked keyring is an error.
#[derive(Debug, Clone)]
pub struct KeyringStore {
    /// `None`: there is no session bus.
    bus: Option<String>,
    locks: PathBuf,
    patience: Duration,
}

#[derive(Debug)]
struct KeyringLease {
    store: KeyringStore,
    id: RecordId,
    /// The open file is the lock.
    _lock: File,
}

impl KeyringStore {
    /// The keyring behind a session bus, by its address
    /// (<https://dbus.freedesktop.org/doc/dbus-specification.html#addresses>). Nothing is connected to
    /// before it is needed.
    #[must_use]
    pub fn new(bus: Option<String>, locks: impl Into<PathBuf>) -> Self {
        Self { bus, locks: locks.into(), patience: PATIENCE }
    }

    /// Waits for an answer at most for so long. Default: 20 s.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn bus(&self) -> Bus<'_> {
        Bus { address: self.bus.as_deref(), patience: self.patience }
    }

    /// Whether there is a keyring at all, locked or not: a bus, a Secret Service on it, and a default
    /// keyring of that. One that is there and fails is not taken for one that is not.
    ///
    /// # Errors
    /// [`StoreError`] when there is no telling.
    pub fn exists(&self) -> Result<bool, StoreError> {
        match session::look(self.bus()) {
            Ok(()) | Err(StoreFault::Locked) => Ok(true),
            Err(StoreFault::NoKeyring { .. }) => Ok(false),
            Err(fault) => Err(self.failed("open", fault)),
        }
    }

    fn failed(&self, action: &'static str, fault: StoreFault) -> StoreError {
        StoreError::new(action, self.place(), fault)
    }
}

impl Store for KeyringStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Keyring
    }

    fn place(&self) -> String {
        "the default keyring of the desktop session".to_owned()
    }

    fn place_of(&self, id: &RecordId) -> String {
        format!("the item `{}` of the default keyring", session::label(id))
    }

    fn load(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        let found = session::load(self.bus(), id);
        found.map_err(|fault| StoreError::new("read", self.place_of(id), fault))
    }

    fn ids(&self) -> Result<Vec<RecordId>, StoreError> {
        session::ids(self.bus()).map_err(|fault| self.failed("list", fault))
    }

    fn all(&self) -> Result<Vec<Loaded>, StoreError> {
        let all = session::all(self.bus()).map_err(|fault| self.failed("list", fault))?;
        let named = all.into_iter().map(|(id, text)| {
            let text = text.map_err(|fault| StoreError::new("read", self.place_of(&id), fault));
            (id, text)
        });
        Ok(named.collect())
    }

    fn is_encrypted(&self) -> bool {
        true
    }

    fn lease(&self, id: &RecordId, patience: Duration) -> Result<Box<dyn Lease>, StoreError> {
        let path = self.locks.join(format!("{id}.{LOCK}"));
        let lock = private::lock(&self.locks, &path, patience);
        let lock =
            lock.map_err(|fault| StoreError::new("lease", path.display().to_string(), fault))?;
        Ok(Box::new(KeyringLease { store: self.clone(), id: id.clone(), _lock: lock }))
    }
}

impl Lease for KeyringLease {
    fn load(&mut self) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        self.store.load(&self.id)
    }

    fn save(&mut self, record: &Secret<Vec<u8>>) -> Result<(), StoreError> {
        let written = match record.expose().len() {
            length if length > MAX_RECORD_BYTES / 2 => Err(StoreFault::TooLong),
            _ => session::save(self.store.bus(), &self.id, record),
        };
        written.map_err(|fault| StoreError::new("write", self.store.place_of(&self.id), fault))
    }
}
