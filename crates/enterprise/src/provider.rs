//! The company's identity provider: its settings, and signing in there.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plenipo_oauth::jose::PublicKeys;
use plenipo_oauth::{
    AddressPolicy, Authorization, AuthorizationOptions, ClientRegistration, Grant, Http,
    HttpClient, Issuer, OAuthError, OFFLINE_ACCESS, PendingAuthorization, Revoked, Scopes,
    ServerMetadata, Subject, TokenEndpoint, TokenExchange, TokenRequest, TokenResponse, revoke,
    token_type, verify_id_token,
};
use plenipo_redact::Secret;

use crate::error::{EnterpriseError, Party};
use crate::grant::IdentityGrant;
use crate::identity::Source;

/// `[mcp_enterprise_managed_auth.idp]`, or `[account]`: whole from one trusted layer of the
/// configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// To the letter.
    pub issuer: Issuer,
    /// Our client there, and what it proves its identity with.
    pub client: ClientRegistration,
    /// Which company, at a provider of several.
    pub tenant: Option<String>,
}

/// Carries requests, to the addresses that the configured party allows.
#[derive(Clone)]
pub struct Network {
    /// Makes the exchanges.
    pub(crate) client: Arc<dyn HttpClient>,
    pub(crate) addresses: AddressPolicy,
}

/// A sign-in with a page to open.
#[derive(Debug)]
#[non_exhaustive]
pub struct IdentitySignIn {
    /// For the browser.
    pub url: Secret<String>,
    /// What is waited for.
    pub pending: PendingAuthorization,
    endpoint: TokenEndpoint,
    source: Source,
}

impl Network {
    /// `addresses`: those that the configured party allows
    /// ([`AddressPolicy::for_server`]).
    #[must_use]
    pub fn new(client: Arc<dyn HttpClient>, addresses: AddressPolicy) -> Self {
        Self { client, addresses }
    }

    pub(crate) fn http(&self) -> Http<'_> {
        self.http_of(self.client.as_ref())
    }

    /// By way of somebody who looks at what passes.
    pub(crate) fn http_of<'h>(&self, client: &'h dyn HttpClient) -> Http<'h> {
        Http::new(client, self.addresses)
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl IdentityProvider {
    /// Without tenant.
    #[must_use]
    pub fn new(issuer: Issuer, client: ClientRegistration) -> Self {
        Self { issuer, client, tenant: None }
    }

    /// Begins a sign-in with a page.
    ///
    /// # Errors
    /// [`EnterpriseError`]: its metadata cannot be used.
    pub async fn begin(
        &self,
        network: &Network,
        redirect_uri: &str,
        source: Source,
    ) -> Result<IdentitySignIn, EnterpriseError> {
        let failed = failing(source);
        let endpoint = self.endpoint(network).await.map_err(&failed)?;
        let scopes = scopes()?;
        let mut options = AuthorizationOptions::new(&endpoint.client, redirect_uri, None);
        options.scopes = Some(&scopes);
        let Authorization { url, pending, .. } =
            Authorization::begin(&endpoint.metadata, options).map_err(&failed)?;
        Ok(IdentitySignIn { url, pending, endpoint, source })
    }

    /// Trades a SAML assertion for a refresh token, and that for an ID token, which says who it is
    /// (ID-JAG draft -04 §4.5: the assertion itself is never sent on). It may be XML, or base64url as
    /// it is sent (RFC 8693 §3).
    ///
    /// # Errors
    /// [`EnterpriseError`].
    pub async fn sign_in_with_saml(
        &self,
        network: &Network,
        assertion: Secret<String>,
        source: Source,
    ) -> Result<(Subject, IdentityGrant), EnterpriseError> {
        let failed = failing(source);
        let assertion = assertion.map(|text| match text.trim_start().starts_with('<') {
            true => URL_SAFE_NO_PAD.encode(text.trim()),
            false => text,
        });
        let endpoint = self.endpoint(network).await.map_err(&failed)?;
        let mut exchange = TokenExchange::new(assertion, token_type::SAML2);
        exchange.requested_token_type = Some(token_type::REFRESH_TOKEN.to_owned());
        let request = TokenRequest::new(Grant::TokenExchange(exchange), None);
        let request = request.with_scopes(Some(scopes()?));
        let answer = endpoint.request(&network.http(), &request).await.map_err(&failed)?;
        if answer.issued_token_type.as_deref() != Some(token_type::REFRESH_TOKEN) {
            let fault = "it is no refresh token, as was asked for";
            return Err(EnterpriseError::answer(Party::IdentityProvider, fault));
        }
        let first = answer.access_token;
        let request = TokenRequest::new(Grant::RefreshToken(first.clone()), None);
        let mut answer = endpoint.request(&network.http(), &request).await.map_err(&failed)?;
        answer.refresh_token = answer.refresh_token.or(Some(first));
        signed_in(network, &endpoint, (answer, None), source).await
    }

    /// Gives a grant back (RFC 7009); whether the provider can do that.
    ///
    /// # Errors
    /// [`EnterpriseError`]; the grant is to be forgotten all the same.
    pub async fn revoke(
        &self,
        network: &Network,
        grant: &IdentityGrant,
        source: Source,
    ) -> Result<bool, EnterpriseError> {
        let Some(token) = &grant.refresh_token else { return Ok(false) };
        let failed = failing(source);
        let endpoint = self.endpoint(network).await.map_err(&failed)?;
        let revoked = revoke(&network.http(), &endpoint, token, Revoked::RefreshToken).await;
        revoked.map_err(&failed)
    }

    pub(crate) async fn endpoint(&self, network: &Network) -> Result<TokenEndpoint, OAuthError> {
        let metadata = ServerMetadata::discover(&network.http(), &self.issuer).await?;
        TokenEndpoint::new(Arc::new(metadata), self.client.clone())
    }
}

impl IdentitySignIn {
    /// Checks what the browser came back with, trades the code, and verifies the ID token: signature,
    /// issuer, audience, nonce, expiry.
    ///
    /// # Errors
    /// [`EnterpriseError`]; without a refresh token too, since the sign-in would end within minutes.
    pub async fn finish(
        self,
        network: &Network,
        answer: &str,
    ) -> Result<(Subject, IdentityGrant), EnterpriseError> {
        let Self { pending, endpoint, source, .. } = self;
        let failed = failing(source);
        let nonce = pending.nonce().cloned();
        let grant = pending.accept(answer).map_err(|fault| failed(fault.into()))?;
        let request = TokenRequest::new(grant, None);
        let answer = endpoint.request(&network.http(), &request).await.map_err(&failed)?;
        signed_in(network, &endpoint, (answer, nonce.as_ref()), source).await
    }
}

async fn signed_in(
    network: &Network,
    endpoint: &TokenEndpoint,
    (answer, nonce): (TokenResponse, Option<&Secret<String>>),
    source: Source,
) -> Result<(Subject, IdentityGrant), EnterpriseError> {
    let lacks = |fault| EnterpriseError::answer(Party::IdentityProvider, fault);
    let id_token = answer.id_token.ok_or_else(|| lacks("it has no ID token"))?;
    let refresh_token = answer.refresh_token;
    let refresh_token = refresh_token.ok_or_else(|| lacks("it has no refresh token"))?;
    let subject = verified(network, endpoint, (&id_token, nonce), source).await?;
    let mut grant = IdentityGrant::new(network.client.now());
    grant.refresh_token = Some(refresh_token);
    grant.id_token = Some(id_token);
    grant.id_token_expires_at = Some(subject.expires_at);
    grant.name.clone_from(&subject.name);
    Ok((subject, grant))
}

/// Whom an ID token is about, once its issuer's signature and its claims were checked.
pub(crate) async fn verified(
    network: &Network,
    endpoint: &TokenEndpoint,
    (id_token, nonce): (&Secret<String>, Option<&Secret<String>>),
    source: Source,
) -> Result<Subject, EnterpriseError> {
    let failed = failing(source);
    let keys = PublicKeys::fetch(&network.http(), &endpoint.metadata).await.map_err(&failed)?;
    let whose = (&endpoint.metadata.issuer, endpoint.client.client_id.as_str());
    let now = network.client.now();
    verify_id_token(id_token, &keys, whose, nonce, now).map_err(&failed)
}

fn scopes() -> Result<Scopes, EnterpriseError> {
    let scopes = Scopes::from_tokens(["openid", OFFLINE_ACCESS]);
    scopes.map_err(|_| EnterpriseError::Config("the scopes of a sign-in are no scopes"))
}

fn failing(source: Source) -> impl Fn(OAuthError) -> EnterpriseError {
    move |error| EnterpriseError::of_oauth(&error, Party::IdentityProvider, source)
}
