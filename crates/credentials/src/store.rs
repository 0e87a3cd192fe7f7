//! Where records are kept.

mod deferred;
mod file;
#[cfg(feature = "keyring")]
mod keyring;
#[cfg(feature = "postgres")]
mod postgres;
mod private;

use std::fmt;
use std::time::Duration;

use plenipo_redact::Secret;

pub use deferred::{DeferredStore, Opener};
pub use file::FileStore;
#[cfg(feature = "keyring")]
pub use keyring::KeyringStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;

use crate::error::StoreError;
use crate::key::RecordId;

/// The longest record, in bytes. Tokens of a few kilobytes are common.
pub const MAX_RECORD_BYTES: usize = 256 * 1024;

/// A record, or why it cannot be read.
pub type Loaded = (RecordId, Result<Secret<Vec<u8>>, StoreError>);

/// What kind of place a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// Files of one directory.
    File,
    /// The keyring of the desktop session.
    Keyring,
    /// A database.
    Postgres,
}

/// Keeps records under their ids. All methods block.
pub trait Store: Send + Sync + fmt::Debug {
    /// What kind of place.
    fn kind(&self) -> StoreKind;

    /// Which place, for a person.
    fn place(&self) -> String;

    /// Where a record is, for a person who has to mend it.
    fn place_of(&self, id: &RecordId) -> String {
        format!("{id} in {}", self.place())
    }

    /// A record as it is now.
    ///
    /// # Errors
    /// [`StoreError`]; that there is none is `Ok(None)`.
    fn load(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreError>;

    /// The ids of all records, in no order.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ids(&self) -> Result<Vec<RecordId>, StoreError>;

    /// All records, in no order.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be listed; one that cannot be read is an error in its place.
    fn all(&self) -> Result<Vec<Loaded>, StoreError> {
        let load = |id: RecordId| {
            let text = self.load(&id).transpose()?;
            Some((id, text))
        };
        Ok(self.ids()?.into_iter().filter_map(load).collect())
    }

    /// What stands in a record that [`load`](Self::load) refuses because others had access to it: good for telling
    /// whose it is, and for nothing else. Default: there is no telling.
    fn peek(&self, _id: &RecordId) -> Option<Secret<Vec<u8>>> {
        None
    }

    /// What is in the store's own place and is not a record of it, for a person who has to look at
    /// it. Default: nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    fn strays(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Whether who reads the place itself reads no secrets. Default: he does.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// Waits until nobody else, in any process, has the lease of `id`, at most for `patience`.
    ///
    /// # Errors
    /// [`StoreFault::Busy`](crate::StoreFault::Busy) when the patience is over.
    fn lease(&self, id: &RecordId, patience: Duration) -> Result<Box<dyn Lease>, StoreError>;
}

/// The right to write one record. Given back when dropped, and by the system when the process ends
/// in whatever way.
pub trait Lease: Send + fmt::Debug {
    /// The record as it is now: nobody else changes it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn load(&mut self) -> Result<Option<Secret<Vec<u8>>>, StoreError>;

    /// Replaces the record: a reader finds the old one or the new one, whatever happens.
    ///
    /// # Errors
    /// [`StoreError`]; also when the lease was lost meanwhile.
    fn save(&mut self, record: &Secret<Vec<u8>>) -> Result<(), StoreError>;
}

impl StoreKind {
    /// As in `credentials_store`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Keyring => "keyring",
            Self::Postgres => "postgres",
        }
    }
}
