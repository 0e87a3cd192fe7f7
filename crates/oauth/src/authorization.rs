//! The authorization request and its response: code, PKCE, `state`, `iss`, `resource` (RFC 6749
//! §4.1, RFC 7636, RFC 9207, RFC 8707).

mod callback;

use std::fmt;

use plenipo_redact::Secret;

use crate::error::OAuthError;
use crate::issuer::{Issuer, ResourceId};
use crate::jose::{base64url, random_text, sha256};
use crate::registration::ClientRegistration;
use crate::scope::{OFFLINE_ACCESS, Scopes};
use crate::server_metadata::ServerMetadata;
use crate::url::EndpointUrl;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AuthorizationOptions<'a> {
    /// Who asks.
    pub client: &'a ClientRegistration,
    /// Where the browser is sent back to.
    pub redirect_uri: &'a str,
    /// `resource`. `None` for a sign-in that is not for one resource.
    pub resource: Option<&'a ResourceId>,
    /// `scope`.
    pub scopes: Option<&'a Scopes>,
}

impl<'a> AuthorizationOptions<'a> {
    /// Without scopes.
    #[must_use]
    pub fn new(
        client: &'a ClientRegistration,
        redirect_uri: &'a str,
        resource: Option<&'a ResourceId>,
    ) -> Self {
        Self { client, redirect_uri, resource, scopes: None }
    }
}

/// A sign-in that began: where to send the browser, and what to hold its answer against.
#[derive(Debug)]
#[non_exhaustive]
pub struct Authorization {
    /// For the browser: `https`, or `http` on loopback.
    pub url: Secret<String>,
    /// What is waited for.
    pub pending: PendingAuthorization,
}

/// A sign-in that waits for its answer. Used up by it, so that no answer counts twice.
pub struct PendingAuthorization {
    issuer: Issuer,
    promises_iss: bool,
    state: Secret<String>,
    verifier: Secret<String>,
    nonce: Option<Secret<String>>,
    redirect_uri: String,
}

impl Authorization {
    /// Begins a sign-in at the issuer of `metadata`, with a new state, verifier and, with the scope
    /// `openid`, nonce.
    ///
    /// # Errors
    /// [`OAuthError::NoPkce`] unless the metadata lists `S256`;
    /// [`Missing::Endpoint`](crate::Missing::Endpoint) without `authorization_endpoint`.
    pub fn begin(
        metadata: &ServerMetadata,
        options: AuthorizationOptions<'_>,
    ) -> Result<Self, OAuthError> {
        let endpoint = Self::check(metadata)?;
        let (state, verifier) = (random_text()?, random_text()?);
        let asks = |scope| options.scopes.is_some_and(|scopes| scopes.contains(scope));
        let nonce = asks("openid").then(random_text).transpose()?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &options.client.client_id)
            .append_pair("redirect_uri", options.redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &base64url(sha256(verifier.as_bytes())))
            .append_pair("code_challenge_method", "S256");
        if let Some(resource) = options.resource {
            query.append_pair("resource", resource.as_str());
        }
        if let Some(scopes) = options.scopes {
            query.append_pair("scope", &scopes.to_string());
        }
        if let Some(nonce) = &nonce {
            query.append_pair("nonce", nonce);
        }
        if asks(OFFLINE_ACCESS) {
            // Without it some servers leave the refresh token out (OpenID Connect Core §11).
            query.append_pair("prompt", "consent");
        }
        let pending = PendingAuthorization {
            issuer: metadata.issuer.clone(),
            promises_iss: metadata.promises_iss,
            state: Secret::new(state),
            verifier: Secret::new(verifier),
            nonce: nonce.map(Secret::new),
            redirect_uri: options.redirect_uri.to_owned(),
        };
        Ok(Self { url: Secret::new(endpoint.with_query(&query.finish())), pending })
    }

    /// Whether the issuer has a page and PKCE.
    pub(crate) fn check(metadata: &ServerMetadata) -> Result<&EndpointUrl, OAuthError> {
        let endpoint = metadata.authorization_endpoint.as_ref();
        let endpoint = metadata.need(endpoint, "authorization_endpoint")?;
        match metadata.pkce {
            true => Ok(endpoint),
            false => Err(OAuthError::NoPkce { issuer: metadata.issuer.to_string() }),
        }
    }
}

impl PendingAuthorization {
    /// Who was asked.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Where the browser is sent back to.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// What an ID token has to repeat.
    #[must_use]
    pub fn nonce(&self) -> Option<&Secret<String>> {
        self.nonce.as_ref()
    }
}

impl fmt::Debug for PendingAuthorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingAuthorization")
            .field("issuer", &self.issuer)
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}
