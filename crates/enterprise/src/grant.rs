//! The tokens of a sign-in, and how they are kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plenipo_credentials::StoreFault;
use plenipo_oauth::Issuer;
use plenipo_redact::Secret;
use serde::{Deserialize, Serialize};

use crate::identity::{Generation, Identity, Source};
use crate::select::Condition;
use crate::steps::Entry;

const ENTRY: &str = "plenipo enterprise entry 1";
const SLOT: &str = "plenipo enterprise slot 1";
/// An ID token that ends within this time is not asked with any more.
const SKEW: Duration = Duration::from_secs(30);

/// What the identity provider gave. Nothing secret of it is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentityGrant {
    /// The refresh token, unless there is none or it was refused.
    pub refresh_token: Option<Secret<String>>,
    /// The ID token; verified when it came.
    pub id_token: Option<Secret<String>>,
    /// Its `exp`.
    pub id_token_expires_at: Option<SystemTime>,
    /// When it was granted, by the clock here.
    pub obtained_at: SystemTime,
    /// A name or an address, to show.
    pub name: Option<String>,
    /// The identity provider refused it.
    pub rejected: bool,
}

impl IdentityGrant {
    /// Without tokens.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        Self {
            refresh_token: None,
            id_token: None,
            id_token_expires_at: None,
            obtained_at: now,
            name: None,
            rejected: false,
        }
    }

    /// The ID token, if it is still good to ask with.
    #[must_use]
    pub fn fresh_id_token(&self, now: SystemTime) -> Option<&Secret<String>> {
        let ends = self.id_token_expires_at?;
        let then = now.checked_add(SKEW)?;
        self.id_token.as_ref().filter(|_| then < ends)
    }

    /// What it is good for.
    #[must_use]
    pub fn condition(&self, now: SystemTime) -> Condition {
        match self.refresh_token.is_some() || self.fresh_id_token(now).is_some() {
            _ if self.rejected => Condition::Rejected,
            true => Condition::Live,
            false => Condition::Expired,
        }
    }

    /// What is left of it once the identity provider refused it.
    pub(crate) fn refused(&self) -> Self {
        Self { name: self.name.clone(), rejected: true, ..Self::new(self.obtained_at) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    kind: String,
    source: String,
    issuer: String,
    client_id: String,
    subject: String,
    generation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<StoredGrant>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredGrant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id_token_expires_at: Option<u64>,
    obtained_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default)]
    rejected: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSlot {
    kind: String,
    generation: String,
}

pub(crate) fn encode(entry: &Entry<IdentityGrant>) -> Result<Secret<Vec<u8>>, StoreFault> {
    let exposed = |secret: &Secret<String>| secret.expose().clone();
    let grant = entry.grant.as_ref().map(|grant| StoredGrant {
        refresh_token: grant.refresh_token.as_ref().map(exposed),
        id_token: grant.id_token.as_ref().map(exposed),
        id_token_expires_at: grant.id_token_expires_at.map(seconds),
        obtained_at: seconds(grant.obtained_at),
        name: grant.name.clone(),
        rejected: grant.rejected,
    });
    let identity = &entry.identity;
    written(&StoredEntry {
        kind: ENTRY.to_owned(),
        source: identity.source.as_str().to_owned(),
        issuer: identity.issuer.as_str().to_owned(),
        client_id: identity.client_id.clone(),
        subject: identity.subject.clone(),
        generation: entry.generation.as_str().to_owned(),
        grant,
    })
}

/// The reverse. The fault never quotes the text.
pub(crate) fn decode(text: &Secret<Vec<u8>>) -> Result<Entry<IdentityGrant>, StoreFault> {
    let corrupt = |what| StoreFault::Corrupt { what };
    let stored: StoredEntry = read(text, ENTRY)?;
    let source = Source::parse(&stored.source).ok_or_else(|| corrupt("source"))?;
    let issuer = Issuer::parse(&stored.issuer).map_err(|_| corrupt("issuer"))?;
    let grant = stored.grant.map(read_grant).transpose()?;
    Ok(Entry {
        identity: Identity::new(source, issuer, stored.client_id, stored.subject),
        generation: parsed(&stored.generation)?,
        grant,
    })
}

fn read_grant(stored: StoredGrant) -> Result<IdentityGrant, StoreFault> {
    let time = |seconds| {
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        time.ok_or(StoreFault::Corrupt { what: "time" })
    };
    Ok(IdentityGrant {
        refresh_token: stored.refresh_token.map(Secret::new),
        id_token: stored.id_token.map(Secret::new),
        id_token_expires_at: stored.id_token_expires_at.map(time).transpose()?,
        obtained_at: time(stored.obtained_at)?,
        name: stored.name,
        rejected: stored.rejected,
    })
}

pub(crate) fn encode_slot(generation: &Generation) -> Result<Secret<Vec<u8>>, StoreFault> {
    written(&StoredSlot { kind: SLOT.to_owned(), generation: generation.as_str().to_owned() })
}

pub(crate) fn decode_slot(text: &Secret<Vec<u8>>) -> Result<Generation, StoreFault> {
    parsed(&read::<StoredSlot>(text, SLOT)?.generation)
}

/// Whether a text in the store is an entry, not a slot or a server's credential.
pub(crate) fn is_entry(text: &Secret<Vec<u8>>) -> bool {
    kind_of(text).as_deref() == Some(ENTRY)
}

fn parsed(generation: &str) -> Result<Generation, StoreFault> {
    Generation::parse(generation).ok_or(StoreFault::Corrupt { what: "generation" })
}

fn written(value: &impl Serialize) -> Result<Secret<Vec<u8>>, StoreFault> {
    let text = serde_json::to_vec(value).map_err(|_| StoreFault::Corrupt { what: "JSON" })?;
    Ok(Secret::new(text))
}

fn read<'t, T: Deserialize<'t>>(
    text: &'t Secret<Vec<u8>>,
    kind: &'static str,
) -> Result<T, StoreFault> {
    if kind_of(text).as_deref() != Some(kind) {
        return Err(StoreFault::Corrupt { what: "kind" });
    }
    serde_json::from_slice(text.expose()).map_err(|_| StoreFault::Corrupt { what: "JSON" })
}

fn kind_of(text: &Secret<Vec<u8>>) -> Option<String> {
    #[derive(Deserialize)]
    struct OnlyKind {
        kind: String,
    }
    serde_json::from_slice::<OnlyKind>(text.expose()).ok().map(|only| only.kind)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
