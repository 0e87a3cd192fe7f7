//! Records in a store: signing in, signing out, finding.

use std::sync::Arc;
use std::time::Duration;

use plenipo_oauth::{Issuer, ResourceId};
use plenipo_redact::Secret;

use crate::error::StoreError;
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
    pub faults: Vec<StoreError>,
    /// What is there and is no record.
    pub strays: Vec<String>,
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
        let (records, mut faults) = self.read_all()?;
        match faults.is_empty() {
            true => Ok(records),
            false => Err(faults.swap_remove(0)),
        }
    }

    /// As [`records`](Self::records), going on after a record that cannot be read.
    ///
    /// # Errors
    /// [`StoreError`] when the store as a whole cannot be read.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        let (records, faults) = self.read_all()?;
        Ok(Survey { records, faults, strays: self.store.strays()? })
    }

    fn read_all(&self) -> Result<(Vec<Record>, Vec<StoreError>), StoreError> {
        let (mut records, mut faults) = (Vec::new(), Vec::new());
        for loaded in self.store.all()? {
            match loaded {
                Ok((_, text)) if Record::is_of_another_kind(&text) => {}
                Ok((id, text)) => match self.read(&id, &text) {
                    Ok(record) => records.push(record),
                    Err(error) => faults.push(error),
                },
                Err(error) => faults.push(error),
            }
        }
        records.sort_by_cached_key(|record| {
            let key = &record.key;
            let texts = [key.resource.as_str(), key.issuer.as_str(), &key.client_id];
            (texts.map(str::to_owned), key.subject.clone())
        });
        Ok((records, faults))
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
        let record = Record::decode(text);
        record.map_err(|fault| StoreError::new("read", self.named(id), fault))
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
            Some(text) => Record::decode(&text)
                .map_err(|fault| StoreError::new("read", self.named(&key.id()), fault)),
        }
    }

    fn named(&self, id: &RecordId) -> String {
        self.store.place_of(id)
    }
}
