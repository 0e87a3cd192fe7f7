//! A token that stays good: from memory while it is, refreshed once when it is not.

mod renewal;
mod settling;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use plenipo_oauth::{AddressPolicy, DpopKey, HttpClient, Scopes, ServerMetadata, TokenType};
use plenipo_redact::Secret;
use tokio::sync::{Mutex, OnceCell};

use crate::error::TokenError;
use crate::key::CredentialKey;
use crate::record::{Grant, Record};
use crate::vault::Vault;
pub use settling::refreshes_settled;

/// What a source needs besides its record.
#[derive(Clone)]
#[non_exhaustive]
pub struct SourceOptions {
    /// The issuer's metadata, where a refresh is asked for. Default: read when it is first needed.
    pub metadata: Option<Arc<ServerMetadata>>,
    /// Carries the request.
    pub client: Arc<dyn HttpClient>,
    /// Addresses it may connect to.
    pub addresses: AddressPolicy,
    /// A token that ends within this time is refreshed before it is used. Default: 30 s.
    pub skew: Duration,
    /// How long a refresh waits for one of another process. Default: 40 s, more than one request to
    /// a token endpoint takes.
    pub patience: Duration,
    /// A key or secret of the configuration, which no store keeps; in place of the record's.
    pub credential: Option<plenipo_oauth::ClientCredential>,
}

/// An access token, as it was at one time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AccessToken {
    /// The token.
    pub value: Secret<String>,
    /// How it is presented.
    pub token_type: TokenType,
    /// Its scopes, as far as known.
    pub scopes: Option<Scopes>,
    /// Tells tokens of one source apart; say it in [`TokenSource::refused`].
    pub serial: u64,
    expires_at: Option<SystemTime>,
    obtained_at: SystemTime,
}

/// The tokens of one credential, in one generation. Clones are the same source.
///
/// A fresh token costs a look into memory: neither the store nor the issuer is asked. A stale one is
/// refreshed by whoever sees it first; everybody else in the process waits for the outcome, success
/// or failure, and everybody in other processes for the lease, and then finds the new token in the
/// store. A refresh runs to its end even when nobody waits any more, since the issuer may have
/// replaced the refresh token already.
#[derive(Clone)]
pub struct TokenSource {
    inner: Arc<Inner>,
}

struct Inner {
    key: CredentialKey,
    /// The one that this source is pinned to.
    generation: u64,
    dpop: Option<DpopKey>,
    vault: Vault,
    options: SourceOptions,
    metadata: OnceCell<Arc<ServerMetadata>>,
    /// Read without a lock, whatever goes on beside it.
    current: ArcSwap<AccessToken>,
    serials: AtomicU64,
    flight: Mutex<Flight>,
}

/// What the last refresh of this process came to.
#[derive(Default)]
struct Flight {
    failed: Option<(Instant, TokenError)>,
}

impl SourceOptions {
    /// Defaults for the rest.
    #[must_use]
    pub fn new(client: Arc<dyn HttpClient>, addresses: AddressPolicy) -> Self {
        Self {
            metadata: None,
            client,
            addresses,
            skew: Duration::from_secs(30),
            patience: Duration::from_secs(40),
            credential: None,
        }
    }
}

impl AccessToken {
    fn is_fresh(&self, now: SystemTime, skew: Duration) -> bool {
        crate::record::is_fresh(self.expires_at, self.obtained_at, now, skew)
    }
}

impl TokenSource {
    /// The tokens of a record, as long as nobody signs in or out.
    ///
    /// # Errors
    /// [`TokenError::NotSignedIn`] for a record without grant.
    pub fn new(record: Record, vault: Vault, options: SourceOptions) -> Result<Self, TokenError> {
        let Record { key, generation, grant } = record;
        let grant = grant.ok_or_else(|| TokenError::NotSignedIn { credential: key.to_string() })?;
        let current = ArcSwap::from_pointee(token(&grant, 0));
        let inner = Inner {
            key,
            generation,
            dpop: grant.dpop,
            vault,
            metadata: OnceCell::new_with(options.metadata.clone()),
            options,
            current,
            serials: AtomicU64::new(1),
            flight: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the credential is named by.
    #[must_use]
    pub fn key(&self) -> &CredentialKey {
        &self.inner.key
    }

    /// The generation that the source is pinned to.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.inner.generation
    }

    /// The key that the tokens are bound to, if they are.
    #[must_use]
    pub fn dpop(&self) -> Option<&DpopKey> {
        self.inner.dpop.as_ref()
    }

    /// The token in memory, if it is fresh. No lock is taken.
    #[must_use]
    pub fn fresh(&self) -> Option<Arc<AccessToken>> {
        let current = self.inner.current();
        let now = self.inner.options.client.now();
        current.is_fresh(now, self.inner.options.skew).then_some(current)
    }

    /// A token that is fresh, refreshed if it has to be.
    ///
    /// # Errors
    /// [`TokenError`]. A token that has not ended yet is returned although its refresh failed for a
    /// passing reason.
    pub async fn token(&self) -> Result<Arc<AccessToken>, TokenError> {
        match self.fresh() {
            Some(token) => Ok(token),
            None => self.renew(None).await,
        }
    }

    /// Another token than the one with this serial, which the resource answered 401 to. Many may say
    /// so of the same one: it is refreshed once.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn refused(&self, serial: u64) -> Result<Arc<AccessToken>, TokenError> {
        match self.fresh() {
            Some(token) if token.serial != serial => Ok(token),
            _ => self.renew(Some(serial)).await,
        }
    }

    async fn renew(&self, refused: Option<u64>) -> Result<Arc<AccessToken>, TokenError> {
        let (inner, asked) = (Arc::clone(&self.inner), Instant::now());
        // A task of its own: a caller who goes away must not take a rotated token with him.
        let task = tokio::spawn(async move { inner.renew(refused, asked).await });
        task.await.unwrap_or_else(|_| Err(self.inner.interrupted()))
    }
}

impl Inner {
    fn current(&self) -> Arc<AccessToken> {
        self.current.load_full()
    }

    async fn renew(
        &self,
        refused: Option<u64>,
        asked: Instant,
    ) -> Result<Arc<AccessToken>, TokenError> {
        let mut flight = self.flight.lock().await;
        let current = self.current();
        let is_other = refused.is_none_or(|serial| serial != current.serial);
        if is_other && current.is_fresh(self.options.client.now(), self.options.skew) {
            return Ok(current);
        }
        match &flight.failed {
            // It was going on when this was asked for.
            Some((ended, error)) if *ended >= asked => return Err(error.clone()),
            _ => {}
        }
        let outcome = self.renewed(&current, refused.is_some() && !is_other).await;
        flight.failed = match &outcome {
            Ok(_) => None,
            Err(error) => Some((Instant::now(), error.clone())),
        };
        match outcome {
            Ok(grant) => Ok(self.adopt(&grant)),
            Err(error) if is_other && self.may_bridge(&current, &error) => Ok(current),
            Err(error) => Err(error),
        }
    }

    /// A token in its last seconds is better than none, when the failure is a passing one.
    fn may_bridge(&self, current: &AccessToken, error: &TokenError) -> bool {
        error.kind() == crate::error::ErrorKind::Transient
            && current.is_fresh(self.options.client.now(), Duration::ZERO)
    }

    fn adopt(&self, grant: &Grant) -> Arc<AccessToken> {
        let token = Arc::new(token(grant, self.serials.fetch_add(1, Ordering::Relaxed)));
        self.current.store(Arc::clone(&token));
        token
    }
}

fn token(grant: &Grant, serial: u64) -> AccessToken {
    AccessToken {
        value: grant.access_token.clone(),
        token_type: grant.token_type,
        scopes: grant.scopes.clone(),
        serial,
        expires_at: grant.expires_at,
        obtained_at: grant.obtained_at,
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource")
            .field("key", &self.inner.key)
            .field("generation", &self.inner.generation)
            .finish_non_exhaustive()
    }
}
