//! A store that is opened when it is first used, and not before.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plenipo_redact::Secret;

use super::{Lease, Loaded, Store, StoreKind};
use crate::error::StoreError;
use crate::key::RecordId;

/// Opens a store, which may take a passphrase, a bus or a database.
pub type Opener = Box<dyn Fn() -> Result<Arc<dyn Store>, StoreError> + Send + Sync>;

/// A store behind its opening. One that cannot be opened fails whatever needs it, and is tried again
/// the next time.
pub struct DeferredStore {
    /// What it says of itself before it is open.
    kind: StoreKind,
    open: Opener,
    opened: OnceLock<Arc<dyn Store>>,
}

impl DeferredStore {
    /// The store that `open` opens, most probably of `kind`.
    #[must_use]
    pub fn new(kind: StoreKind, open: Opener) -> Self {
        Self { kind, open, opened: OnceLock::new() }
    }

    fn opened(&self) -> Result<&Arc<dyn Store>, StoreError> {
        match self.opened.get() {
            Some(store) => Ok(store),
            None => {
                let store = (self.open)()?;
                Ok(self.opened.get_or_init(|| store))
            }
        }
    }
}

impl Store for DeferredStore {
    fn kind(&self) -> StoreKind {
        self.opened.get().map_or(self.kind, |store| store.kind())
    }

    fn place(&self) -> String {
        match self.opened.get() {
            Some(store) => store.place(),
            None => format!("the {} store", self.kind.as_str()),
        }
    }

    fn place_of(&self, id: &RecordId) -> String {
        match self.opened.get() {
            Some(store) => store.place_of(id),
            None => format!("{id} in {}", self.place()),
        }
    }

    fn load(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        self.opened()?.load(id)
    }

    fn ids(&self) -> Result<Vec<RecordId>, StoreError> {
        self.opened()?.ids()
    }

    fn all(&self) -> Result<Vec<Loaded>, StoreError> {
        self.opened()?.all()
    }

    fn peek(&self, id: &RecordId) -> Option<Secret<Vec<u8>>> {
        self.opened().ok()?.peek(id)
    }

    fn strays(&self) -> Result<Vec<String>, StoreError> {
        self.opened()?.strays()
    }

    fn is_encrypted(&self) -> bool {
        self.opened.get().is_some_and(|store| store.is_encrypted())
    }

    fn lease(&self, id: &RecordId, patience: Duration) -> Result<Box<dyn Lease>, StoreError> {
        self.opened()?.lease(id, patience)
    }
}

impl fmt::Debug for DeferredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredStore")
            .field("kind", &self.kind)
            .field("opened", &self.opened.get())
            .finish_non_exhaustive()
    }
}
