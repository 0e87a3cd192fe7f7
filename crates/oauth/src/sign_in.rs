//! A whole sign-in, in two steps with a person between them: everything up to the page to open, and
//! everything after its answer. Nothing is registered before every document has been checked.

use std::sync::Arc;

use plenipo_redact::Secret;

use crate::authorization::{Authorization, AuthorizationOptions, PendingAuthorization};
use crate::challenge::Asked;
use crate::device::DeviceAuthorization;
use crate::discovery::{Discovered, DiscoveryOptions, discover};
use crate::dpop::DpopKey;
use crate::error::{Missing, OAuthError};
use crate::http_client::Http;
use crate::id_token::{Subject, check_id_token};
use crate::issuer::{Issuer, ResourceId};
use crate::registration::{
    ClientRegistration, RegistrationOptions, RegistrationRequest, Strategy, register,
};
use crate::scope::{ScopeSources, Scopes};
use crate::token::{Grant, TokenEndpoint, TokenRequest, TokenResponse};
use crate::url::EndpointUrl;

/// What is known before a sign-in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignInOptions<'a> {
    /// The server's URL.
    pub server: &'a EndpointUrl,
    /// What its challenge said.
    pub asked: Option<&'a Asked>,
    /// The configured issuer.
    pub issuer: Option<&'a Issuer>,
    /// The configured resource.
    pub resource: Option<&'a ResourceId>,
    /// Scopes that somebody asked for by name.
    pub scopes: Option<&'a Scopes>,
    /// Scopes that are held already and must not be lost.
    pub held: Option<&'a Scopes>,
    /// The client that was registered beforehand.
    pub configured: Option<&'a ClientRegistration>,
    /// The URL of our client id metadata document.
    pub metadata_document: Option<&'a str>,
    /// Clients that were registered dynamically, at whatever issuers.
    pub registered: &'a [ClientRegistration],
    /// Where the browser is sent back to.
    pub redirect_uri: &'a str,
    /// Shown to the person who consents.
    pub client_name: &'a str,
    /// A key to bind tokens to, whether the resource wants it or not.
    pub dpop: Option<DpopKey>,
}

impl<'a> SignInOptions<'a> {
    /// Only a server and where the browser comes back to.
    #[must_use]
    pub fn new(server: &'a EndpointUrl, redirect_uri: &'a str) -> Self {
        Self {
            server,
            asked: None,
            issuer: None,
            resource: None,
            scopes: None,
            held: None,
            configured: None,
            metadata_document: None,
            registered: &[],
            redirect_uri,
            client_name: "Plenipo",
            dpop: None,
        }
    }
}

/// A server's authorization server, a client it knows, and what to ask it for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// What was found out about the server.
    pub discovered: Discovered,
    /// The client at its token endpoint.
    pub endpoint: TokenEndpoint,
    /// What to ask for.
    pub scopes: Option<Scopes>,
}

/// A sign-in with a page to open.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignIn {
    /// What it is about.
    pub prepared: Prepared,
    /// For the browser.
    pub url: Secret<String>,
    /// What is waited for.
    pub pending: PendingAuthorization,
}

/// What a sign-in comes to: everything that is needed to refresh, to give back, and to ask again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignedIn {
    /// The client at its token endpoint.
    pub endpoint: TokenEndpoint,
    /// What the token is for.
    pub resource: ResourceId,
    /// What was granted, as far as is known.
    pub scopes: Option<Scopes>,
    /// The tokens.
    pub token: TokenResponse,
    /// Who signed in, when the scope `openid` was asked for.
    pub subject: Option<Subject>,
}

impl Prepared {
    /// Discovers, decides about the client, and registers one if there is no other way.
    ///
    /// # Errors
    /// [`OAuthError`]: see [`discover`], [`Strategy::choose`], [`register`].
    pub async fn new(http: &Http<'_>, options: &SignInOptions<'_>) -> Result<Self, OAuthError> {
        let discovered = Self::discover(http, options).await?;
        Self::register(http, discovered, options).await
    }

    /// As [`new`](Self::new), for a sign-in with a page: an issuer without PKCE or without a page
    /// is refused before a client is registered there.
    async fn checked(http: &Http<'_>, options: &SignInOptions<'_>) -> Result<Self, OAuthError> {
        let discovered = Self::discover(http, options).await?;
        Authorization::check(&discovered.metadata)?;
        Self::register(http, discovered, options).await
    }

    /// As [`new`](Self::new), for a sign-in on another device: an issuer without such sign-ins is
    /// refused before a client is registered there.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Missing::Endpoint`] without `device_authorization_endpoint`.
    pub async fn for_device(
        http: &Http<'_>,
        options: &SignInOptions<'_>,
    ) -> Result<Self, OAuthError> {
        let discovered = Self::discover(http, options).await?;
        let metadata = &discovered.metadata;
        let endpoint = metadata.device_authorization_endpoint.as_ref();
        metadata.need(endpoint, "device_authorization_endpoint")?;
        Self::register(http, discovered, options).await
    }

    async fn register(
        http: &Http<'_>,
        discovered: Discovered,
        options: &SignInOptions<'_>,
    ) -> Result<Self, OAuthError> {
        let metadata = &discovered.metadata;
        metadata.need(metadata.token_endpoint.as_ref(), "token_endpoint")?;
        let usable = |client: &&ClientRegistration| {
            client.is_for(&metadata.issuer)
                && client.redirect_uris.iter().any(|uri| uri == options.redirect_uri)
                && !client.has_expired(http.now())
        };
        let strategy = Strategy::choose(
            metadata,
            RegistrationOptions {
                configured: options.configured,
                metadata_document: options.metadata_document,
                registered: options.registered.iter().find(usable),
            },
        )?;
        let scopes = chosen_scopes(&discovered, options);
        let client = match strategy {
            Strategy::Use(client) => client,
            Strategy::Register(url) => {
                let redirect_uris = [options.redirect_uri.to_owned()];
                let request = RegistrationRequest::new(options.client_name, &redirect_uris);
                register(http, metadata, &url, request).await?
            }
        };
        Self::with_client(discovered, client, scopes, options)
    }

    /// As [`new`](Self::new), for a grant that needs a client registered beforehand: it never
    /// registers one.
    ///
    /// # Errors
    /// [`OAuthError`], [`Missing::Client`] without a configured client, [`Missing::Grant`] when the
    /// issuer lists its grants without this one.
    pub async fn for_grant(
        http: &Http<'_>,
        options: &SignInOptions<'_>,
        grant: &Grant,
    ) -> Result<Self, OAuthError> {
        let configured = options.configured.ok_or(Missing::Client)?;
        let discovered = Self::discover(http, options).await?;
        let metadata = &discovered.metadata;
        if !metadata.offers(grant.grant_type()) {
            let (issuer, grant) = (metadata.issuer.to_string(), grant.grant_type().to_owned());
            return Err(Missing::Grant { issuer, grant }.into());
        }
        let sources = ScopeSources {
            explicit: options.scopes,
            challenged: options.asked.and_then(|asked| asked.scopes.as_ref()),
            resource: discovered.resource_scopes.as_ref(),
            server: None,
        };
        let scopes = sources.choose();
        Self::with_client(discovered, configured.clone(), scopes, options)
    }

    async fn discover(
        http: &Http<'_>,
        options: &SignInOptions<'_>,
    ) -> Result<Discovered, OAuthError> {
        let named = options.asked.and_then(|asked| asked.resource_metadata.as_deref());
        let discovery = DiscoveryOptions {
            server: options.server,
            resource_metadata: named,
            issuer: options.issuer,
            resource: options.resource,
            may_assume: named.is_none() && options.asked.is_some_and(|asked| asked.refused),
        };
        discover(http, discovery).await
    }

    fn with_client(
        discovered: Discovered,
        client: ClientRegistration,
        scopes: Option<Scopes>,
        options: &SignInOptions<'_>,
    ) -> Result<Self, OAuthError> {
        let wants_key = discovered.dpop_required || options.asked.is_some_and(|asked| asked.dpop);
        let key = match &options.dpop {
            Some(key) => Some(key.clone()),
            None if wants_key => Some(DpopKey::generate()?),
            None => None,
        };
        let metadata = Arc::new(discovered.metadata.clone());
        let endpoint = TokenEndpoint::new(metadata, client)?.with_dpop(key);
        Ok(Self { discovered, endpoint, scopes })
    }

    /// Makes the page to open.
    ///
    /// # Errors
    /// See [`Authorization::begin`].
    pub fn authorize(self, redirect_uri: &str) -> Result<SignIn, OAuthError> {
        let Authorization { url, pending } = Authorization::begin(
            &self.discovered.metadata,
            AuthorizationOptions {
                client: &self.endpoint.client,
                redirect_uri,
                resource: Some(&self.discovered.resource),
                scopes: self.scopes.as_ref(),
            },
        )?;
        Ok(SignIn { prepared: self, url, pending })
    }

    /// Begins a sign-in on another device.
    ///
    /// # Errors
    /// See [`DeviceAuthorization::begin`].
    pub async fn authorize_device(
        &self,
        http: &Http<'_>,
    ) -> Result<DeviceAuthorization, OAuthError> {
        let resource = Some(&self.discovered.resource);
        DeviceAuthorization::begin(http, &self.endpoint, resource, self.scopes.as_ref()).await
    }

    /// Asks for a token with a grant.
    ///
    /// # Errors
    /// See [`TokenEndpoint::request`].
    pub async fn grant(self, http: &Http<'_>, grant: Grant) -> Result<SignedIn, OAuthError> {
        let resource = Some(self.discovered.resource.clone());
        // What a code carries is settled already.
        let scopes = match grant {
            Grant::AuthorizationCode { .. } | Grant::DeviceCode(_) => None,
            _ => self.scopes.clone(),
        };
        let request = TokenRequest::new(grant, resource).with_scopes(scopes);
        let token = self.endpoint.request(http, &request).await?;
        Ok(self.signed_in(token))
    }

    /// With a token that was got otherwise.
    #[must_use]
    pub fn signed_in(self, token: TokenResponse) -> SignedIn {
        let scopes = token.scopes.clone().or(self.scopes);
        let Self { discovered, endpoint, .. } = self;
        SignedIn { endpoint, resource: discovered.resource, scopes, token, subject: None }
    }
}

impl SignIn {
    /// Discovers, finds or registers a client, and makes the page to open. What cannot end well is
    /// refused before anything is registered.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub async fn begin(http: &Http<'_>, options: &SignInOptions<'_>) -> Result<Self, OAuthError> {
        Prepared::checked(http, options).await?.authorize(options.redirect_uri)
    }

    /// Checks the answer, a URL or its query, and trades the code for tokens.
    ///
    /// # Errors
    /// [`OAuthError::Callback`], or a token request that failed.
    pub async fn finish(self, http: &Http<'_>, response: &str) -> Result<SignedIn, OAuthError> {
        let nonce = self.pending.nonce().cloned();
        let grant = self.pending.accept(response)?;
        let mut signed_in = self.prepared.grant(http, grant).await?;
        if let (Some(nonce), Some(token)) = (&nonce, &signed_in.token.id_token) {
            let issuer = &signed_in.endpoint.metadata.issuer;
            let client_id = &signed_in.endpoint.client.client_id;
            let subject = check_id_token(token, issuer, client_id, Some(nonce), http.now())?;
            signed_in.subject = Some(subject);
        }
        Ok(signed_in)
    }
}

/// Explicit scopes stand alone; others are joined with what is held.
fn chosen_scopes(discovered: &Discovered, options: &SignInOptions<'_>) -> Option<Scopes> {
    let sources = ScopeSources {
        explicit: options.scopes,
        challenged: options.asked.and_then(|asked| asked.scopes.as_ref()),
        resource: discovered.resource_scopes.as_ref(),
        server: discovered.metadata.scopes.as_ref(),
    };
    match (sources.choose(), options.held) {
        (Some(chosen), Some(held)) => Some(held.union(&chosen)),
        (chosen, held) => chosen.or_else(|| held.cloned()),
    }
}
