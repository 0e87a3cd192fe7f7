//! The token of one connection: from memory while it is good, exchanged once when it is not, gone at
//! once when its identity is signed out.

mod acquire;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use plenipo_oauth::{DpopKey, EndpointUrl, TokenEndpoint, TokenType};
use plenipo_redact::Secret;
use tokio::sync::{Mutex, OnceCell, watch};

use crate::error::EnterpriseError;
use crate::identity::Pin;
use crate::provider::{IdentityProvider, Network};
use crate::resource::{ManagedServer, Resource};
use crate::select::{Wanted, select};
use crate::store::Identities;

/// What a connection's tokens come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BearerOptions {
    /// The identity provider.
    pub provider: IdentityProvider,
    /// The server.
    pub server: ManagedServer,
    /// Where the sign-ins are kept.
    pub identities: Identities,
    /// To the identity provider.
    pub to_provider: Network,
    /// To the server and its authorization server.
    pub to_server: Network,
    /// Before the one new assertion after a refused one, so that clocks that differ a little agree.
    /// Default: 1 s.
    pub pause: Duration,
    /// How often the store is looked at for a sign-out elsewhere while there is a token. Default: 1 s.
    pub watch: Duration,
}

/// A token that may be sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Bearer {
    /// The token.
    pub value: Secret<String>,
    /// How it is presented.
    pub token_type: TokenType,
    /// The key that it is bound to.
    pub dpop: Option<DpopKey>,
    /// Tells the tokens of a connection apart; say it in [`BearerClient::refused`].
    pub number: u64,
    ends: SystemTime,
}

/// The tokens of one connection under one pinned identity. Clones are the same.
#[derive(Clone)]
pub struct BearerClient(Arc<Inner>);

struct Inner {
    options: BearerOptions,
    pin: Pin,
    current: ArcSwapOption<Bearer>,
    numbers: AtomicU64,
    flight: Mutex<Option<(Instant, EnterpriseError)>>,
    resource: OnceCell<Resource>,
    endpoint: OnceCell<TokenEndpoint>,
    takes_refresh_tokens: AtomicBool,
    /// Whether the connection has come to its end; looked at by each request.
    is_withdrawn: AtomicBool,
    /// The same, for those who wait for it.
    withdrawn: watch::Sender<bool>,
    watcher: std::sync::Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl BearerOptions {
    /// Defaults for the rest.
    #[must_use]
    pub fn new(
        provider: IdentityProvider,
        server: ManagedServer,
        identities: Identities,
        (to_provider, to_server): (Network, Network),
    ) -> Self {
        let second = Duration::from_secs(1);
        Self { provider, server, identities, to_provider, to_server, pause: second, watch: second }
    }
}

impl BearerClient {
    /// Chooses whose identity is used ([`select`]), and pins it. Reads the store on this thread;
    /// nothing is sent.
    ///
    /// # Errors
    /// [`EnterpriseError::Unselected`], [`EnterpriseError::Store`].
    pub fn open(options: BearerOptions, person: Option<&str>) -> Result<Self, EnterpriseError> {
        let kept = options.identities.kept(options.to_provider.client.now())?;
        let provider = &options.provider;
        let wanted = Wanted::new(&provider.issuer, &provider.client.client_id).of_person(person);
        let pin = select(wanted, &kept)?.clone();
        Ok(Self::pinned(options, pin))
    }

    /// With an identity that was chosen before.
    #[must_use]
    pub fn pinned(options: BearerOptions, pin: Pin) -> Self {
        Self(Arc::new(Inner {
            options,
            pin,
            current: ArcSwapOption::empty(),
            numbers: AtomicU64::new(1),
            flight: Mutex::default(),
            resource: OnceCell::new(),
            endpoint: OnceCell::new(),
            takes_refresh_tokens: AtomicBool::new(true),
            is_withdrawn: AtomicBool::new(false),
            withdrawn: watch::Sender::new(false),
            watcher: std::sync::Mutex::default(),
        }))
    }

    /// What the connection is pinned to.
    #[must_use]
    pub fn pin(&self) -> &Pin {
        &self.0.pin
    }

    /// The only URL that a token may go to.
    #[must_use]
    pub fn url(&self) -> &EndpointUrl {
        &self.0.options.server.url
    }

    /// The token in memory, if it is good and may be used. Takes no lock, and looks at nothing but the clock.
    #[must_use]
    pub fn fresh(&self) -> Option<Arc<Bearer>> {
        self.0.fresh()
    }

    /// A token for a request to `url`, exchanged if it has to be. Everybody who asks meanwhile waits
    /// for the same exchange.
    ///
    /// # Errors
    /// [`EnterpriseError`].
    pub async fn token(&self, url: &str) -> Result<Arc<Bearer>, EnterpriseError> {
        if url != self.url().as_str() && !is_same(url, self.url()) {
            return Err(EnterpriseError::Outside);
        }
        if self.0.is_withdrawn.load(Ordering::Acquire) {
            return Err(EnterpriseError::Withdrawn);
        }
        match self.fresh() {
            Some(token) => Ok(token),
            None => self.exchanged().await,
        }
    }

    /// The server answered 401 to the token with this number: it is not used again, but another one
    /// that came meanwhile is. The request fails; it is never sent again.
    pub fn refused(&self, number: u64) -> EnterpriseError {
        let current = self.0.current.load();
        if current.as_ref().is_some_and(|current| current.number == number) {
            self.0.current.compare_and_swap(&*current, None);
        }
        EnterpriseError::BearerRefused
    }

    /// Ends the connection's authority: what is under way is cancelled, and nothing goes out any more.
    pub fn withdraw(&self) {
        self.0.withdraw();
    }

    /// Waits until the authority ends: by [`withdraw`](Self::withdraw), by a sign-out or a new sign-in
    /// in whatever process.
    pub async fn withdrawn(&self) {
        let mut withdrawn = self.0.withdrawn.subscribe();
        // The sender lives as long as this client.
        if withdrawn.wait_for(|withdrawn| *withdrawn).await.is_err() {
            std::future::pending().await
        }
    }

    async fn exchanged(&self) -> Result<Arc<Bearer>, EnterpriseError> {
        let (inner, asked) = (Arc::clone(&self.0), Instant::now());
        // A task of its own: a caller who goes away must not take a renewed token with him.
        let task = tokio::spawn(async move { inner.exchanged(asked).await });
        task.await.unwrap_or(Err(EnterpriseError::Withdrawn))
    }
}

impl Inner {
    fn fresh(&self) -> Option<Arc<Bearer>> {
        let current = self.current.load();
        let current = current.as_ref()?;
        (self.options.to_server.client.now() < current.ends).then(|| Arc::clone(current))
    }

    async fn exchanged(self: &Arc<Self>, asked: Instant) -> Result<Arc<Bearer>, EnterpriseError> {
        let mut flight = self.flight.lock().await;
        if let Some(token) = self.fresh() {
            return Ok(token);
        }
        match &*flight {
            // It was going on when this was asked for.
            Some((ended, error)) if *ended >= asked => return Err(error.clone()),
            _ => {}
        }
        let acquired = self.acquire().await;
        *flight = acquired.as_ref().err().map(|error| (Instant::now(), error.clone()));
        if matches!(acquired, Err(EnterpriseError::Changed)) {
            self.withdraw();
        }
        let token = acquired?;
        self.current.store(Some(Arc::clone(&token)));
        if self.is_withdrawn.load(Ordering::Acquire) {
            self.current.store(None);
            return Err(EnterpriseError::Withdrawn);
        }
        self.watch();
        Ok(token)
    }

    fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::Release);
        self.current.store(None);
        self.withdrawn.send_replace(true);
    }

    /// Looks for a sign-out elsewhere, as long as there is a connection to end.
    fn watch(self: &Arc<Self>) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_some() {
            return;
        }
        let (inner, every) = (Arc::downgrade(self), self.options.watch);
        *watcher = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(inner) = inner.upgrade() else { return };
                let (identities, pin) = (inner.options.identities.clone(), inner.pin.clone());
                let look = tokio::task::spawn_blocking(move || identities.is_current(&pin));
                // A store that cannot be read now says nothing; the next exchange will.
                if matches!(look.await, Ok(Ok(false))) {
                    inner.withdraw();
                    return;
                }
            }
        }));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let watcher = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = watcher {
            watcher.abort();
        }
    }
}

/// The same origin, path and query, however the origin is spelled.
fn is_same(url: &str, own: &EndpointUrl) -> bool {
    EndpointUrl::parse(url).is_ok_and(|url| {
        url.is_same_origin(own) && url.path() == own.path() && url.query() == own.query()
    })
}

impl fmt::Debug for BearerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerClient")
            .field("pin", &self.0.pin)
            .field("server", &self.0.options.server)
            .finish_non_exhaustive()
    }
}
