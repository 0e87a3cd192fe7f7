//! Where new tokens come from: a person, or a grant that needs none.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use plenipo_oauth::{
    Asked, ClientRegistration, DpopKey, Grant, OAuthError, Prepared, Scopes, SignIn, SignInOptions,
    SignedIn,
};
use plenipo_redact::Secret;

use super::OAuthSettings;
use super::network::OAuthNetwork;

/// What a grantor returns.
pub type Granting<'a, T> = Pin<Box<dyn Future<Output = Result<T, GrantError>> + Send + 'a>>;

/// Why no token was granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The flow failed.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// There was nobody to ask, or what was to ask him failed.
    #[error(transparent)]
    Prompt(Box<dyn Error + Send + Sync>),
}

/// What is wanted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wish<'a> {
    /// What is known about the server.
    pub settings: &'a OAuthSettings,
    /// Carries the requests.
    pub network: &'a OAuthNetwork,
    /// What the challenge said.
    pub asked: &'a Asked,
    /// Scopes that are held, when more are wanted.
    pub held: Option<&'a Scopes>,
    /// Clients that were registered dynamically before.
    pub registered: &'a [ClientRegistration],
}

/// Gets tokens for a server.
pub trait Grantor: Send + Sync + fmt::Debug {
    /// Gets new ones.
    fn grant<'a>(&'a self, wish: Wish<'a>) -> Granting<'a, SignedIn>;

    /// Whether what is granted is kept for the next run. A grant that needs no person is cheaper to
    /// ask for again than to keep.
    fn is_kept(&self) -> bool;
}

/// Asks a person.
pub trait SignInPrompt: Send + Sync + fmt::Debug {
    /// Where the browser is to be sent back to. From here on, something listens there.
    fn redirect_uri(&self) -> String;

    /// Shows the page and waits for what comes back: a URL or its query.
    fn answer<'a>(&'a self, sign_in: &'a SignIn) -> Granting<'a, Secret<String>>;
}

/// The authorization code grant, with a person at a browser.
#[derive(Debug)]
pub struct PersonGrantor {
    prompt: Arc<dyn SignInPrompt>,
}

impl PersonGrantor {
    /// Asks by `prompt`.
    #[must_use]
    pub fn new(prompt: Arc<dyn SignInPrompt>) -> Self {
        Self { prompt }
    }
}

impl Grantor for PersonGrantor {
    fn grant<'a>(&'a self, wish: Wish<'a>) -> Granting<'a, SignedIn> {
        Box::pin(async move {
            let redirect_uri = self.prompt.redirect_uri();
            let options = wish.options(&redirect_uri)?;
            let http = wish.network.http();
            let sign_in = SignIn::begin(&http, &options).await?;
            let answer = self.prompt.answer(&sign_in).await?;
            Ok(sign_in.finish(&http, answer.expose()).await?)
        })
    }

    fn is_kept(&self) -> bool {
        true
    }
}

/// A grant without a person.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnattendedGrantor {
    /// Client credentials (RFC 6749 §4.4).
    ClientCredentials,
    /// A workload's own identity (RFC 7523): a JWT that the platform gives.
    Workload(Arc<dyn AssertionSource>),
}

/// Gives the JWT of a workload. Each is asked for anew: they live for minutes.
pub trait AssertionSource: Send + Sync + fmt::Debug {
    /// The JWT as it is now.
    fn assertion(&self) -> Granting<'_, Secret<String>>;
}

impl Grantor for UnattendedGrantor {
    fn grant<'a>(&'a self, wish: Wish<'a>) -> Granting<'a, SignedIn> {
        Box::pin(async move {
            let grant = match self {
                Self::ClientCredentials => Grant::ClientCredentials,
                Self::Workload(source) => Grant::JwtBearer(source.assertion().await?),
            };
            let (options, http) = (wish.options("")?, wish.network.http());
            let prepared = Prepared::for_grant(&http, &options, &grant).await?;
            Ok(prepared.grant(&http, grant).await?)
        })
    }

    fn is_kept(&self) -> bool {
        false
    }
}

impl<'a> Wish<'a> {
    /// A wish outside of a connection: a sign-in that a person asked for.
    #[must_use]
    pub fn new(settings: &'a OAuthSettings, network: &'a OAuthNetwork, asked: &'a Asked) -> Self {
        Self { settings, network, asked, held: None, registered: &[] }
    }

    /// For the flows.
    ///
    /// # Errors
    /// [`OAuthError::Key`] when a key has to be made and the system has no randomness.
    pub fn options<'b>(&self, redirect_uri: &'b str) -> Result<SignInOptions<'b>, OAuthError>
    where
        'a: 'b,
    {
        let settings = self.settings;
        let mut options = SignInOptions::new(&settings.server, redirect_uri);
        options.asked = Some(self.asked);
        options.issuer = settings.issuer.as_ref();
        options.resource = settings.resource.as_ref();
        // What a server asks for in a challenge comes on top of what was configured.
        options.scopes = settings.scopes.as_ref().filter(|_| self.held.is_none());
        options.held = self.held;
        options.configured = settings.client.as_ref();
        options.metadata_document = settings.metadata_document.as_deref();
        options.registered = self.registered;
        options.dpop = settings.dpop.then(DpopKey::generate).transpose()?;
        Ok(options)
    }
}
