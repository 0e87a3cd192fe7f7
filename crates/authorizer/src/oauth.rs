//! OAuth as an [`Authorizer`]: a token on every request, a refresh when it is refused, new ones when
//! there are none, more scopes when the server says so.
//!
//! ```text
//!   OAuthAuthorizer ──► Vault, TokenSource    stored, refreshed once
//!        │        │
//!        │        └──► Grantor    a person, a client's own credentials, a workload's identity
//!        ▼
//!   OAuthNetwork    one exchange at a time, addresses checked
//! ```

mod challenged;
mod failure;
mod grantor;
mod held;
mod network;
mod settings;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use plenipo_authority::CredentialPin;
use plenipo_credentials::{Record, StoreError, TokenError, Vault};
use plenipo_oauth::{
    ClientRegistration, EndpointUrl, HttpClient as _, OAuthError, RegistrationSource,
    ServerMetadata, StepUps, TokenType, dpop_nonce,
};
use tokio::task::spawn_blocking;

pub use grantor::{
    AssertionSource, GrantError, Granting, Grantor, PersonGrantor, SignInPrompt, UnattendedGrantor,
    Wish,
};
pub use held::stored;
pub use network::OAuthNetwork;
pub use settings::OAuthSettings;

use self::failure::{failed, store_failed, token_failed};
use self::held::{Held, Presented, source};
use crate::{
    Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Authorizing, Challenge, ErrorKind,
    Operation, Verdict,
};

/// Authorizes the requests of one connection.
pub struct OAuthAuthorizer(Arc<Inner>);

struct Inner {
    settings: OAuthSettings,
    network: OAuthNetwork,
    vault: Vault,
    grantor: Option<Box<dyn Grantor>>,
    pin: Option<CredentialPin>,
    principal: Option<String>,
    /// Why nothing stored is used. It matters only to a server that asks for a token.
    unusable: Option<Unusable>,
    /// What is sent now, and its number; read without a lock.
    current: ArcSwapOption<(u32, Held)>,
    numbers: AtomicU32,
    /// One sign-in or refresh at a time.
    turn: tokio::sync::Mutex<()>,
    step_ups: Mutex<StepUps>,
    /// Whether any operation wanted more scopes.
    stepped_up: AtomicBool,
}

/// Why what is stored is not used.
enum Unusable {
    Store(Arc<StoreError>),
    SeveralPeople,
}

impl OAuthAuthorizer {
    /// With the credential that is stored for the server, if there is one, and `grantor` for when
    /// there is none or it is no longer good.
    ///
    /// A store that cannot be read, or that holds several people's credentials, is told of when the
    /// server asks for a token, and not before.
    ///
    /// # Errors
    /// [`AuthorizeError`] when the runtime ends meanwhile.
    pub async fn new(
        settings: OAuthSettings,
        network: OAuthNetwork,
        vault: Vault,
        grantor: Option<Box<dyn Grantor>>,
    ) -> Result<Self, AuthorizeError> {
        let opened = spawn_blocking(move || Self::open(settings, network, vault, grantor)).await;
        opened.unwrap_or_else(|_| {
            Err(AuthorizeError::new(ErrorKind::Transport, "the runtime was shut down meanwhile"))
        })
    }

    /// As [`new`](Self::new), reading the store on this thread.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn open(
        settings: OAuthSettings,
        network: OAuthNetwork,
        vault: Vault,
        grantor: Option<Box<dyn Grantor>>,
    ) -> Result<Self, AuthorizeError> {
        let kept = grantor.as_ref().is_none_or(|grantor| grantor.is_kept());
        let (record, unusable) = match kept.then(|| find(&settings, &vault)) {
            None => (None, None),
            Some(Ok(record)) => (record, None),
            Some(Err(unusable)) => (None, Some(unusable)),
        };
        let pin = record.as_ref().map(pin);
        let principal = record.as_ref().map(|record| record.key.id().as_str().to_owned());
        let inner = Inner {
            settings,
            network,
            vault,
            grantor,
            pin,
            principal,
            unusable,
            current: ArcSwapOption::empty(),
            numbers: AtomicU32::new(1),
            turn: tokio::sync::Mutex::default(),
            step_ups: Mutex::default(),
            stepped_up: AtomicBool::new(false),
        };
        if let Some(record) = record {
            inner.hold(inner.source(record, None)?);
        }
        Ok(Self(Arc::new(inner)))
    }
}

impl Authorizer for OAuthAuthorizer {
    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizeRequest<'a>,
    ) -> Authorizing<'a, Authorization> {
        Box::pin(async move {
            match self.0.present().await? {
                Some((number, presented)) => self.0.headers(request, number, &presented),
                None => Ok(Authorization::new(HeaderMap::new(), 0)),
            }
        })
    }

    fn challenged<'a>(&'a self, challenge: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
        Box::pin(Arc::clone(&self.0).challenged(challenge))
    }

    fn answered(
        &self,
        url: &Uri,
        operation: Operation<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        // Most never need one, and look at a flag only.
        if status.is_success() && self.0.stepped_up.load(Ordering::Relaxed) {
            let mut step_ups = self.0.step_ups.lock().unwrap_or_else(PoisonError::into_inner);
            step_ups.succeeded(&name_of(operation));
        }
        // A challenge is looked at on its own, to tell a new nonce from an old one.
        if status != StatusCode::UNAUTHORIZED
            && let Some(nonce) = dpop_nonce(headers)
        {
            self.0.remember_nonce(url, &nonce);
        }
    }

    fn pin(&self) -> Option<CredentialPin> {
        self.0.pin.clone()
    }

    fn principal(&self) -> Option<String> {
        self.0.principal.clone()
    }
}

impl Inner {
    fn current(&self) -> Option<(u32, Held)> {
        self.current.load().as_deref().cloned()
    }

    /// Replaces what is held.
    fn hold(&self, held: Held) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.current.store(Some(Arc::new((number, held))));
    }

    /// A token to send. None at all is no error: the server's challenge tells what it wants.
    async fn present(&self) -> Result<Option<(u32, Presented)>, AuthorizeError> {
        let Some((number, held)) = self.current() else { return Ok(None) };
        match held.present(self.network.now()).await {
            Ok(presented) => Ok(presented.map(|presented| (number, presented))),
            Err(error) => match error.kind() {
                // New ones are granted after the challenge.
                plenipo_credentials::ErrorKind::SignIn if self.grantor.is_some() => Ok(None),
                _ => Err(self.token_failed(&error)),
            },
        }
    }

    /// The tokens of a record.
    fn source(
        &self,
        record: Record,
        metadata: Option<Arc<ServerMetadata>>,
    ) -> Result<Held, AuthorizeError> {
        let credential = self.settings.client.as_ref().map(|client| client.credential.clone());
        let source = source(record, &self.vault, &self.network, (credential, metadata));
        Ok(Held::Source(source.map_err(|error| self.token_failed(&error))?))
    }

    /// The token goes to the server's own origin, and in the header only.
    fn headers(
        &self,
        request: &AuthorizeRequest<'_>,
        number: u32,
        presented: &Presented,
    ) -> Result<Authorization, AuthorizeError> {
        let url = EndpointUrl::parse(&request.url.to_string());
        let url = url.ok().filter(|url| url.is_same_origin(&self.settings.server));
        let url = url.ok_or_else(|| {
            let reason = "the token is for another origin than the request";
            AuthorizeError::new(ErrorKind::Refused, reason)
        })?;
        let mut headers = HeaderMap::with_capacity(2);
        let scheme = match presented.token_type {
            TokenType::Dpop => "DPoP",
            _ => "Bearer",
        };
        let value = HeaderValue::try_from(format!("{scheme} {}", presented.value.expose()));
        let mut value = value.map_err(|_| {
            AuthorizeError::new(ErrorKind::SignIn, "the token has characters no header may have")
        })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        if let (TokenType::Dpop, Some(key)) = (presented.token_type, &presented.dpop) {
            let parts = (Some(&presented.value), Some(request.body.as_ref()));
            let proof = key.header_with_body(request.method, &url, parts, self.network.now());
            let (name, value) = proof.map_err(|error| self.failed(error))?;
            headers.insert(name, value);
        }
        Ok(Authorization::new(headers, generation(number, presented.serial)))
    }

    fn remember_nonce(&self, url: &Uri, nonce: &str) -> bool {
        let key = self.current().and_then(|(_, held)| held.dpop());
        match (key, EndpointUrl::parse(&url.to_string())) {
            (Some(key), Ok(url)) => key.remember_nonce(&url, nonce),
            _ => false,
        }
    }

    fn failed(&self, error: OAuthError) -> AuthorizeError {
        failed(error, &self.settings.sign_in_command)
    }

    fn token_failed(&self, error: &TokenError) -> AuthorizeError {
        token_failed(error, &self.settings.sign_in_command)
    }

    /// Clients that were registered for this program before, at whatever issuers.
    async fn registered(&self) -> Vec<ClientRegistration> {
        let vault = self.vault.clone();
        let survey = spawn_blocking(move || vault.survey()).await;
        let Ok(Ok(survey)) = survey else { return Vec::new() };
        let clients = survey.records.into_iter().filter_map(|record| Some(record.grant?.client));
        clients.filter(|client| client.source == RegistrationSource::Dynamic).collect()
    }
}

impl fmt::Debug for OAuthAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthAuthorizer")
            .field("settings", &self.0.settings)
            .field("grantor", &self.0.grantor)
            .field("current", &self.0.current())
            .finish_non_exhaustive()
    }
}

/// The stored credential for a server: the newest one, when all are of one person and none is left out.
fn find(settings: &OAuthSettings, vault: &Vault) -> Result<Option<Record>, Unusable> {
    let survey = vault.survey().map_err(|error| Unusable::Store(Arc::new(error)))?;
    let mut perhaps = None;
    for unread in survey.unread {
        match unread.is_of(|key| settings.covers_key(key)) {
            Some(true) => return Err(Unusable::Store(Arc::new(unread.error))),
            Some(false) => {}
            None => perhaps = Some(unread.error),
        }
    }
    let is_held = |record: &Record| record.grant.is_some() && settings.covers(record);
    let mut fitting: Vec<_> = survey.records.into_iter().filter(is_held).collect();
    let subject = fitting.first().map(|record| record.key.subject.clone());
    if fitting.iter().any(|record| Some(&record.key.subject) != subject.as_ref()) {
        return Err(Unusable::SeveralPeople);
    }
    fitting.sort_by_key(|record| record.grant.as_ref().map(|grant| grant.obtained_at));
    match (fitting.pop(), perhaps) {
        // It may have been the one.
        (None, Some(fault)) => Err(Unusable::Store(Arc::new(fault))),
        (found, _) => Ok(found),
    }
}

impl Unusable {
    fn error(&self) -> AuthorizeError {
        match self {
            Self::Store(error) => store_failed(Arc::clone(error)),
            Self::SeveralPeople => {
                let error =
                    "several people are signed in, and nothing says whose credential to use";
                let hint = "say it with `--as ACCOUNT`: `plenipo auth status` lists them";
                AuthorizeError::new(ErrorKind::SignIn, error).with_hint(hint)
            }
        }
    }
}

/// Issuer, client, person and sign-in; never a token.
fn pin(record: &Record) -> CredentialPin {
    let key = &record.key;
    CredentialPin::new(format!(
        "oauth {} {} {} {}",
        key.issuer,
        key.client_id,
        key.subject.as_deref().unwrap_or("-"),
        record.generation
    ))
}

/// What scopes are asked for.
fn name_of(operation: Operation<'_>) -> String {
    format!("{} {}", operation.method, operation.name.unwrap_or_default())
}

/// Which token was sent, for the challenge to name.
fn generation(number: u32, serial: u32) -> u64 {
    (u64::from(number) << 32) | u64::from(serial)
}
