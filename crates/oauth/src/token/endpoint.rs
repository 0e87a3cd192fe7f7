//! One client at one token endpoint.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method};

use super::{Grant, TokenResponse, TokenType};
use crate::challenge::dpop_nonce;
use crate::client_authentication::authenticate;
use crate::dpop::DpopKey;
use crate::error::{Document, OAuthError};
use crate::form::Form;
use crate::http_client::{Http, IncomingResponse};
use crate::issuer::ResourceId;
use crate::registration::ClientRegistration;
use crate::scope::Scopes;
use crate::server_metadata::ServerMetadata;
use crate::url::EndpointUrl;

/// A client at the token endpoint of one issuer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenEndpoint {
    /// The issuer's metadata.
    pub metadata: Arc<ServerMetadata>,
    /// The client.
    pub client: ClientRegistration,
    /// The key that tokens are bound to, if they are.
    pub dpop: Option<DpopKey>,
}

/// A grant, and what is wanted for it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenRequest {
    /// The grant.
    pub grant: Grant,
    /// `resource` (RFC 8707). `None` only where a grant already carries it, or a configuration says
    /// that the server does not take it.
    pub resource: Option<ResourceId>,
    /// `scope`; `None`: what the grant carries.
    pub scopes: Option<Scopes>,
}

impl TokenRequest {
    /// A request for a token for `resource`.
    #[must_use]
    pub fn new(grant: Grant, resource: Option<ResourceId>) -> Self {
        Self { grant, resource, scopes: None }
    }

    /// With scopes.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Option<Scopes>) -> Self {
        self.scopes = scopes;
        self
    }
}

impl TokenEndpoint {
    /// A client at the issuer of `metadata`.
    ///
    /// # Errors
    /// [`Missing::Endpoint`](crate::Missing::Endpoint) without `token_endpoint`;
    /// [`OAuthError::IssuerNotListed`] for a client that is registered elsewhere.
    pub fn new(
        metadata: Arc<ServerMetadata>,
        client: ClientRegistration,
    ) -> Result<Self, OAuthError> {
        metadata.need(metadata.token_endpoint.as_ref(), "token_endpoint")?;
        if !client.is_for(&metadata.issuer) {
            return Err(OAuthError::IssuerNotListed {
                configured: client.issuer.as_ref().map(ToString::to_string).unwrap_or_default(),
                found: format!("`{}`", metadata.issuer),
            });
        }
        Ok(Self { metadata, client, dpop: None })
    }

    /// With tokens bound to a key.
    #[must_use]
    pub fn with_dpop(mut self, key: Option<DpopKey>) -> Self {
        self.dpop = key;
        self
    }

    /// The URL.
    ///
    /// # Errors
    /// [`Missing::Endpoint`](crate::Missing::Endpoint).
    pub fn url(&self) -> Result<&EndpointUrl, OAuthError> {
        self.metadata.need(self.metadata.token_endpoint.as_ref(), "token_endpoint")
    }

    /// Asks for a token. With a key, once more when the server wants another nonce.
    ///
    /// # Errors
    /// [`OAuthError::Refused`] with the server's error code; a response that cannot be used; a
    /// token that is not bound although it had to be.
    pub async fn request(
        &self,
        http: &Http<'_>,
        request: &TokenRequest,
    ) -> Result<TokenResponse, OAuthError> {
        let url = self.url()?;
        let mut form = Form::default();
        request.grant.write(&mut form);
        form.add_some("resource", request.resource.as_ref().map(ResourceId::as_str));
        form.add_some("scope", request.scopes.as_ref().map(Scopes::to_string));
        let headers = authenticate(&self.metadata, &self.client, http.now(), &mut form)?;
        let response = self.post(http, url, (headers, &form)).await?;
        let json = crate::response::read(Document::Token, url, &response, form.secrets())?;
        let token = TokenResponse::read(&json)?;
        let is_exchange = matches!(request.grant, Grant::TokenExchange(_));
        match token.token_type {
            TokenType::NotApplicable if !is_exchange => {
                Err(json.value_fault("token_type", "is `N_A`, expected `Bearer` or `DPoP`"))
            }
            TokenType::Bearer if self.dpop.is_some() => {
                Err(json.value_fault("token_type", "is not `DPoP`, as was asked for"))
            }
            _ => Ok(token),
        }
    }

    async fn post(
        &self,
        http: &Http<'_>,
        url: &EndpointUrl,
        (headers, form): (Vec<(HeaderName, HeaderValue)>, &Form),
    ) -> Result<IncomingResponse, OAuthError> {
        let Some(key) = &self.dpop else {
            return http.post_form(Document::Token, url, headers, form.encode()).await;
        };
        key.check_accepted(self.metadata.dpop_algorithms.as_deref())?;
        let mut retried = false;
        loop {
            let mut headers = headers.clone();
            headers.push(key.header(&Method::POST, url, None, http.now())?);
            let response = http.post_form(Document::Token, url, headers, form.encode()).await?;
            let nonce = dpop_nonce(response.headers());
            let is_new = nonce.as_ref().is_some_and(|nonce| key.remember_nonce(url, nonce));
            if response.status().is_success() || !is_new || retried {
                return Ok(response);
            }
            match crate::response::read(Document::Token, url, &response, form.secrets()) {
                Err(OAuthError::Refused { code, .. }) if code == "use_dpop_nonce" => {}
                _ => return Ok(response),
            }
            retried = true;
        }
    }
}
