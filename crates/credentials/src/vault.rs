//! Records in a store: signing in, signing out, finding.

use std::sync::Arc;
use std::time::Duration;

use plenipo_oauth::{Issuer, ResourceId};
use plenipo_redact::Secret;

use crate::error::{StoreError, StoreFault};
use crate::key::{CredentialKey, RecordId};
use crate::record::{Grant, Record};
use crate::store::{Lease, Store};

/// How long a sign-in or sign-out waits for a refresh that is going on elsewhere: longer than one
/// request to a token endpoint takes at most.
const PATIENCE: Duration = Duration::from_secs(40);

/// Everything in a store, whatever state it is in.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// The records, the signed-out ones too, ordered by resource, issuer and client.
    pub records: Vec<Record>,
    /// Those that cannot be read.
    pub unread: Vec<Unread>,
    /// What is there and is no record.
    pub strays: Vec<String>,
}

/// A record that is there and is not used.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unread {
    /// Why.
    pub error: StoreError,
    /// Whose it is, as far as it can be told.
    pub owner: Owner,
}

/// Whose a record is that is not used. It counts for finding out what is missing, never for what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// A server's.
    Server(Box<CredentialKey>),
    /// No server's: a record of another kind.
    NoServer,
    /// Anybody's.
    Unknown,
}

impl Unread {
    /// Whether it is one of those that `covers` says yes to; `None`: there is no telling.
    #[must_use]
    pub fn is_of(&self, covers: impl FnOnce(&CredentialKey) -> bool) -> Option<bool> {
        match &self.owner {
            Owner::Server(key) => Some(covers(key)),
            Owner::NoServer => Some(false),
            Owner::Unknown => None,
        }
    }
}

/// A store and what its records mean. All methods block.
#[derive(Debug, Clone)]
pub struct Vault {
    store: Arc<dyn Store>,
}

impl Vault {
    /// The records of `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A record, also one that was signed out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn record(&self, key: &CredentialKey) -> Result<Option<Record>, StoreError> {
        self.load(&key.id())
    }

    /// All records, the signed-out ones too, ordered by resource, issuer and client.
    ///
    /// # Errors
    /// [`StoreError`] for the first record that cannot be read.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        let (records, mut unread) = self.read_all()?;
        match unread.is_empty() {
            true => Ok(records),
            false => Err(unread.swap_remove(0).error),
        }
    }

    /// As [`records`](Self::records), going on after a record that cannot be read.
    ///
    /// # Errors
    /// [`StoreError`] when the store as a whole cannot be read.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        let (records, unread) = self.read_all()?;
        Ok(Survey { records, unread, strays: self.store.strays()? })
    }

    fn read_all(&self) -> Result<(Vec<Record>, Vec<Unread>), StoreError> {
        let (mut records, mut unread) = (Vec::new(), Vec::new());
        for (id, text) in self.store.all()? {
            let decoded = match text {
                Ok(text) if Record::is_of_another_kind(&text) => continue,
                Ok(text) => Record::decode(&text).map_err(|fault| self.unreadable(&id, fault)),
                Err(error) => Err(error),
            };
            match decoded {
                Ok(record) if record.key.id() == id => records.push(record),
                // Nobody else had access to it, so that it is whose it says.
                Ok(record) => {
                    let error = self.unreadable(&id, StoreFault::Misplaced);
                    unread.push(Unread { error, owner: Owner::Server(Box::new(record.key)) });
                }
                Err(error) => unread.push(Unread { error, owner: self.owner(&id) }),
            }
        }
        records.sort_by_cached_key(|record| {
            let key = &record.key;
            let texts = [key.resource.as_str(), key.issuer.as_str(), &key.client_id];
            (texts.map(str::to_owned), key.subject.clone())
        });
        Ok((records, unread))
    }

    /// Whose a record is that others could have written. One that is not where its key says is anybody's.
    #[must_use]
    pub fn owner(&self, id: &RecordId) -> Owner {
        let Some(text) = self.store.peek(id) else { return Owner::Unknown };
        if Record::is_of_another_kind(&text) {
            return Owner::NoServer;
        }
        match Record::decode(&text) {
            Ok(record) if record.key.id() == *id => Owner::Server(Box::new(record.key)),
            _ => Owner::Unknown,
        }
    }

    /// The records of `resource` that are signed in; with an `issuer`, only that one's. More than one
    /// is for the caller to choose from, never to guess.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn signed_in(
        &self,
        resource: &ResourceId,
        issuer: Option<&Issuer>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut records = self.records()?;
        records.retain(|record| {
            let issuer_fits = issuer.is_none_or(|issuer| record.key.issuer == *issuer);
            record.grant.is_some() && record.key.resource == *resource && issuer_fits
        });
        Ok(records)
    }

    /// Keeps a new sign-in in place of an old one; the record's generation is new.
    ///
    /// # Errors
    /// [`StoreError`]; the old record stays then.
    pub fn sign_in(&self, key: &CredentialKey, grant: Grant) -> Result<Record, StoreError> {
        self.turn(key, Some(grant))
    }

    /// Forgets a sign-in; returns the grant, for revocation. What is left tells others that the
    /// credential changed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sign_out(&self, key: &CredentialKey) -> Result<Option<Grant>, StoreError> {
        match self.record(key)?.and_then(|record| record.grant) {
            None => Ok(None),
            Some(_) => {
                let mut lease = self.store.lease(&key.id(), PATIENCE)?;
                let record = self.decode(lease.load()?, key)?;
                let grant = record.grant.clone();
                self.write(lease.as_mut(), record, None)?;
                Ok(grant)
            }
        }
    }

    fn turn(&self, key: &CredentialKey, grant: Option<Grant>) -> Result<Record, StoreError> {
        let mut lease = self.store.lease(&key.id(), PATIENCE)?;
        let record = self.decode(lease.load()?, key)?;
        self.write(lease.as_mut(), record, grant)
    }

    fn write(
        &self,
        lease: &mut dyn Lease,
        mut record: Record,
        grant: Option<Grant>,
    ) -> Result<Record, StoreError> {
        record.generation = record.generation.saturating_add(1);
        record.grant = grant;
        self.save(lease, &record)?;
        Ok(record)
    }

    fn load(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        let text = self.store.load(id)?;
        text.map(|text| self.read(id, &text)).transpose()
    }

    fn read(&self, id: &RecordId, text: &Secret<Vec<u8>>) -> Result<Record, StoreError> {
        match Record::decode(text) {
            Ok(record) if record.key.id() == *id => Ok(record),
            Ok(_) => Err(self.unreadable(id, StoreFault::Misplaced)),
            Err(fault) => Err(self.unreadable(id, fault)),
        }
    }

    fn unreadable(&self, id: &RecordId, fault: StoreFault) -> StoreError {
        StoreError::new("read", self.named(id), fault)
    }

    pub(crate) fn save(&self, lease: &mut dyn Lease, record: &Record) -> Result<(), StoreError> {
        let text = record.encode();
        let text =
            text.map_err(|fault| StoreError::new("write", self.named(&record.key.id()), fault))?;
        lease.save(&text)
    }

    /// What a lease loaded; a key without record is a record that was never signed in.
    pub(crate) fn decode(
        &self,
        text: Option<Secret<Vec<u8>>>,
        key: &CredentialKey,
    ) -> Result<Record, StoreError> {
        match text {
            None => Ok(Record::new(key.clone())),
            Some(text) => self.read(&key.id(), &text),
        }
    }

    fn named(&self, id: &RecordId) -> String {
        self.store.place_of(id)
    }
}
