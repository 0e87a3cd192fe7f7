//! Sign-ins in a store: the steps of [`crate::steps`], carried out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plenipo_credentials::{Lease, Owner, RecordId, Store, StoreError, StoreFault, Vault};
use plenipo_oauth::Issuer;
use plenipo_redact::Secret;

use crate::error::EnterpriseError;
use crate::grant::{self, IdentityGrant};
use crate::identity::{Generation, Identity, Pin, Source, slot};
use crate::select::{Condition, Kept};
use crate::steps::{Came, End, Entry, Place, Sequence, SignIn, SignOut, Step};

/// Longer than what is done at the identity provider under a lease takes at most.
const PATIENCE: Duration = Duration::from_secs(100);

/// The sign-ins of people, in a store that others may use at the same time. All methods block.
#[derive(Debug, Clone)]
pub struct Identities {
    store: Arc<dyn Store>,
}

/// A sign-in that was begun. It comes to nothing when somebody else signs in or out before it ends.
#[derive(Debug, Clone)]
pub struct Begun {
    source: Source,
    issuer: Issuer,
    client_id: String,
    slot: Option<Generation>,
}

/// Carries out the steps of one sequence, and holds its leases.
#[derive(Debug)]
pub(crate) struct Carrier {
    store: Arc<dyn Store>,
    slot: RecordId,
    entry: RecordId,
    slot_lease: Option<Box<dyn Lease>>,
    entry_lease: Option<Box<dyn Lease>>,
}

impl Identities {
    /// Those of `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// All sign-ins, also those that were signed out, the enterprise's first.
    ///
    /// # Errors
    /// [`StoreError`] for the first that cannot be read.
    pub fn kept(&self, now: SystemTime) -> Result<Vec<Kept>, StoreError> {
        let mut all = Vec::new();
        for (id, text) in self.store.all()? {
            let text = match text {
                Ok(text) => text,
                Err(_) if self.is_nobodys(&id) => continue,
                // It may be the one that counts: nothing takes its place.
                Err(error) => return Err(error),
            };
            if !grant::is_entry(&text) {
                continue;
            }
            let entry = decoded(&self.store, &id, &text)?;
            let condition = match &entry.grant {
                None => Condition::SignedOut,
                Some(grant) => grant.condition(now),
            };
            let name = entry.grant.as_ref().and_then(|grant| grant.name.clone());
            let mut kept = Kept::new(Pin::new(entry.identity, entry.generation), condition);
            kept.name = name;
            all.push(kept);
        }
        all.sort_by_cached_key(|kept| {
            let Identity { source, issuer, client_id, subject } = &kept.pin.identity;
            (*source, issuer.as_str().to_owned(), client_id.clone(), subject.clone())
        });
        Ok(all)
    }

    /// Begins a sign-in; the person is asked afterwards.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin(
        &self,
        source: Source,
        issuer: &Issuer,
        client_id: &str,
    ) -> Result<Begun, StoreError> {
        let id = slot(source, issuer, client_id);
        let found = self.store.load(&id)?;
        Ok(Begun {
            source,
            issuer: issuer.clone(),
            client_id: client_id.to_owned(),
            slot: found.map(|text| decoded_slot(&self.store, &id, &text)).transpose()?,
        })
    }

    /// Keeps what a sign-in brought, as a new generation.
    ///
    /// # Errors
    /// [`EnterpriseError::Changed`] when somebody signed in or out since it was begun: then nothing
    /// is kept. [`EnterpriseError::Store`].
    pub fn sign_in(
        &self,
        begun: Begun,
        subject: &str,
        grant: IdentityGrant,
    ) -> Result<Pin, EnterpriseError> {
        let Begun { source, issuer, client_id, slot } = begun;
        let identity = Identity::new(source, issuer, client_id, subject);
        let mut carrier = Carrier::new(&self.store, &identity);
        let entry = Entry { identity, generation: self.generation()?, grant: Some(grant) };
        let next_slot = self.generation()?;
        match carrier.run(SignIn { begun: slot, entry, next_slot, at: 0 })? {
            End::SignedIn(pin) => Ok(pin),
            _ => Err(EnterpriseError::Changed),
        }
    }

    /// Forgets a sign-in; what was forgotten, for revocation. A sign-in that is under way comes to
    /// nothing. Connections that were made with it find out at their next exchange, or at once where
    /// they watch.
    ///
    /// # Errors
    /// [`EnterpriseError::Store`].
    pub fn sign_out(&self, identity: &Identity) -> Result<Option<IdentityGrant>, EnterpriseError> {
        let mut carrier = Carrier::new(&self.store, identity);
        let sequence = SignOut::new(self.generation()?, self.generation()?);
        match carrier.run(sequence)? {
            End::SignedOut(found) => Ok(found.and_then(|entry| entry.grant)),
            _ => Ok(None),
        }
    }

    /// Whether the sign-in is the one that a connection was made with.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn is_current(&self, pin: &Pin) -> Result<bool, StoreError> {
        let id = pin.identity.record();
        let Some(text) = self.store.load(&id)? else { return Ok(false) };
        let entry = decoded(&self.store, &id, &text)?;
        Ok(entry.grant.is_some()
            && entry.identity == pin.identity
            && entry.generation == pin.generation)
    }

    /// Whether a record that cannot be used is certainly nobody's sign-in, but a server's credential, say.
    fn is_nobodys(&self, id: &RecordId) -> bool {
        match Vault::new(Arc::clone(&self.store)).owner(id) {
            Owner::Server(_) => true,
            Owner::NoServer => self.store.peek(id).is_some_and(|text| !grant::is_entry(&text)),
            _ => false,
        }
    }

    /// Where they are kept, for a person.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}: {}", self.store.kind().as_str(), self.store.place())
    }

    pub(crate) fn carrier(&self, identity: &Identity) -> Carrier {
        Carrier::new(&self.store, identity)
    }

    fn generation(&self) -> Result<Generation, StoreError> {
        let place = || self.store.place();
        Generation::random().ok_or_else(|| StoreError::new("write", place(), StoreFault::Random))
    }
}

impl Carrier {
    fn new(store: &Arc<dyn Store>, identity: &Identity) -> Self {
        Self {
            store: Arc::clone(store),
            slot: slot(identity.source, &identity.issuer, &identity.client_id),
            entry: identity.record(),
            slot_lease: None,
            entry_lease: None,
        }
    }

    /// To the end, for a sequence that asks nobody.
    fn run(
        &mut self,
        mut sequence: impl Sequence<IdentityGrant>,
    ) -> Result<End<IdentityGrant>, StoreError> {
        let mut came = Came::Done;
        loop {
            match sequence.next(came) {
                Step::Done(end) => return Ok(end),
                step => came = self.carry(step)?,
            }
        }
    }

    /// One step at the store. Asking and redeeming are for others.
    pub(crate) fn carry(
        &mut self,
        step: Step<IdentityGrant>,
    ) -> Result<Came<IdentityGrant>, StoreError> {
        match step {
            Step::Lease(Place::Slot) => {
                self.slot_lease = Some(self.store.lease(&self.slot, PATIENCE)?);
            }
            Step::Lease(Place::Entry) => {
                self.entry_lease = Some(self.store.lease(&self.entry, PATIENCE)?);
            }
            Step::ReadSlot => {
                let text = load(&self.store, &self.slot, self.slot_lease.as_mut())?;
                let slot = text.map(|text| decoded_slot(&self.store, &self.slot, &text));
                return slot.transpose().map(Came::Slot);
            }
            Step::ReadEntry => {
                let text = load(&self.store, &self.entry, self.entry_lease.as_mut())?;
                let entry = text.map(|text| decoded(&self.store, &self.entry, &text));
                return entry.transpose().map(Came::Entry);
            }
            Step::WriteSlot(generation) => {
                let text = grant::encode_slot(&generation);
                self.write(Place::Slot, text)?;
            }
            Step::WriteEntry(entry) => {
                let text = grant::encode(&entry);
                self.write(Place::Entry, text)?;
            }
            Step::Release => self.release(),
            Step::Ask(_) | Step::Redeem | Step::Done(_) => {}
        }
        Ok(Came::Done)
    }

    pub(crate) fn release(&mut self) {
        self.entry_lease = None;
        self.slot_lease = None;
    }

    fn write(
        &mut self,
        place: Place,
        text: Result<Secret<Vec<u8>>, StoreFault>,
    ) -> Result<(), StoreError> {
        let (id, lease) = match place {
            Place::Slot => (&self.slot, &mut self.slot_lease),
            Place::Entry => (&self.entry, &mut self.entry_lease),
        };
        let failed = |fault| StoreError::new("write", self.store.place_of(id), fault);
        let text = text.map_err(failed)?;
        match lease {
            Some(lease) => lease.save(&text),
            None => Err(failed(StoreFault::SessionLost)),
        }
    }
}

fn load(
    store: &Arc<dyn Store>,
    id: &RecordId,
    lease: Option<&mut Box<dyn Lease>>,
) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
    match lease {
        Some(lease) => lease.load(),
        None => store.load(id),
    }
}

fn decoded(
    store: &Arc<dyn Store>,
    id: &RecordId,
    text: &Secret<Vec<u8>>,
) -> Result<Entry<IdentityGrant>, StoreError> {
    grant::decode(text).map_err(|fault| StoreError::new("read", store.place_of(id), fault))
}

fn decoded_slot(
    store: &Arc<dyn Store>,
    id: &RecordId,
    text: &Secret<Vec<u8>>,
) -> Result<Generation, StoreError> {
    grant::decode_slot(text).map_err(|fault| StoreError::new("read", store.place_of(id), fault))
}
