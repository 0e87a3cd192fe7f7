//! Enterprise-managed authorization: [`plenipo_enterprise`]'s tokens as an [`Authorizer`].
//!
//! A token goes to the server's own URL and nowhere else, redirections included. A refused one is
//! dropped and its request fails: nothing is sent again. When the identity is signed out, in whatever
//! process, requests and streams under way are dropped.

use std::error::Error;
use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use plenipo_authority::CredentialPin;
use plenipo_enterprise::{Bearer, BearerClient, EnterpriseError, ErrorClass, Network};
use plenipo_http::HttpClient;
use plenipo_oauth::{Demand, EndpointUrl, Issuer, TokenType, dpop_nonce};
use plenipo_wire::protocol::methods;

use crate::oauth::OAuthNetwork;
use crate::{
    Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Authorizing, Challenge, ErrorKind,
    Operation, Verdict, Withdrawal,
};

/// What a client that can do this declares (SEP-990).
const EXTENSION: &str = "io.modelcontextprotocol/enterprise-managed-authorization";

/// Authorizes the requests of one connection with the identity that it is pinned to.
#[derive(Debug)]
pub struct EnterpriseAuthorizer {
    client: BearerClient,
}

/// An error with its class before it, as people look it up.
#[derive(Debug)]
struct Classified(EnterpriseError);

/// The ways to an identity provider and to a server, each to the addresses that the configured party
/// allows, with the proxies and certificate authorities of `http`.
#[must_use]
pub fn networks(http: &HttpClient, provider: &Issuer, server: &EndpointUrl) -> (Network, Network) {
    let to = |url: &EndpointUrl| {
        let network = OAuthNetwork::new(http.clone(), url.clone());
        let addresses = network.addresses();
        Network::new(std::sync::Arc::new(network), addresses)
    };
    (to(provider.url()), to(server))
}

/// An [`EnterpriseError`] as a connection tells of it: class, message, and what to do.
#[must_use]
pub fn failed(error: EnterpriseError) -> AuthorizeError {
    let hint = error.hint();
    AuthorizeError::new(kind(error.class()), Classified(error)).with_hint(hint)
}

/// What a class of errors is to a connection, and to an exit code.
#[must_use]
pub fn kind(class: ErrorClass) -> ErrorKind {
    match class {
        ErrorClass::EnterpriseSignIn
        | ErrorClass::AccountSignIn
        | ErrorClass::MoreAuthentication
        | ErrorClass::EnterpriseGrantRejected
        | ErrorClass::AccountGrantRejected => ErrorKind::SignIn,
        ErrorClass::WhichPerson | ErrorClass::Misconfigured | ErrorClass::StoreUnusable => {
            ErrorKind::Usage
        }
        ErrorClass::MetadataUnusable => ErrorKind::Protocol,
        ErrorClass::Unreachable => ErrorKind::Transport,
        ErrorClass::Timeout => ErrorKind::Timeout,
        _ => ErrorKind::Refused,
    }
}

impl EnterpriseAuthorizer {
    /// With the tokens of `client`.
    #[must_use]
    pub fn new(client: BearerClient) -> Self {
        Self { client }
    }

    async fn headers(
        &self,
        request: &AuthorizeRequest<'_>,
    ) -> Result<Authorization, EnterpriseError> {
        let bearer = self.client.token(&request.url.to_string()).await?;
        let mut headers = HeaderMap::with_capacity(2);
        let scheme = bearer.token_type.as_str();
        let value = HeaderValue::try_from(format!("{scheme} {}", bearer.value.expose()));
        let mut value = value.map_err(|_| EnterpriseError::BearerRefused)?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        if bearer.token_type == TokenType::Dpop {
            let (name, value) = self.proof(&bearer, request)?;
            headers.insert(name, value);
        }
        Ok(Authorization::new(headers, bearer.number))
    }

    fn proof(
        &self,
        bearer: &Bearer,
        request: &AuthorizeRequest<'_>,
    ) -> Result<(http::HeaderName, HeaderValue), EnterpriseError> {
        let key = bearer.dpop.as_ref();
        let key = key.ok_or(EnterpriseError::Config("a token is bound to a key that is gone"))?;
        let parts = (Some(&bearer.value), Some(request.body.as_ref()));
        let now = std::time::SystemTime::now();
        key.header_with_body(request.method, self.client.url(), parts, now)
            .map_err(|_| EnterpriseError::Config("a signing key cannot be used"))
    }

    /// Whether the server gave a nonce that the next proof has to have.
    fn remember_nonce(&self, headers: &HeaderMap) -> bool {
        let bearer = self.client.fresh();
        let key = bearer.as_ref().and_then(|bearer| bearer.dpop.as_ref());
        match (key, dpop_nonce(headers)) {
            (Some(key), Some(nonce)) => key.remember_nonce(self.client.url(), &nonce),
            _ => false,
        }
    }
}

impl Authorizer for EnterpriseAuthorizer {
    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizeRequest<'a>,
    ) -> Authorizing<'a, Authorization> {
        Box::pin(async move { self.headers(request).await.map_err(failed) })
    }

    fn challenged<'a>(&'a self, challenge: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
        Box::pin(async move {
            let demand = Demand::of(challenge.status, challenge.headers);
            let is_new = self.remember_nonce(challenge.headers);
            match (demand, challenge.status) {
                // The token is good, and its proof wants a nonce. A call fails all the same.
                (Some(Demand::DpopNonce(_)), _)
                    if is_new
                        && challenge.attempt == 1
                        && challenge.operation.method != methods::TOOLS_CALL =>
                {
                    Ok(Verdict::Retry)
                }
                (_, StatusCode::UNAUTHORIZED) => {
                    Err(failed(self.client.refused(challenge.generation)))
                }
                _ => Ok(Verdict::Fail),
            }
        })
    }

    fn answered(&self, _: &Uri, _: Operation<'_>, status: StatusCode, headers: &HeaderMap) {
        if status != StatusCode::UNAUTHORIZED {
            self.remember_nonce(headers);
        }
    }

    fn withdrawn(&self) -> Withdrawal<'_> {
        Box::pin(async move {
            self.client.withdrawn().await;
            failed(EnterpriseError::Withdrawn)
        })
    }

    fn extension(&self) -> Option<&'static str> {
        Some(EXTENSION)
    }

    fn pin(&self) -> Option<CredentialPin> {
        Some(CredentialPin::new(self.client.pin().to_string()))
    }

    fn principal(&self) -> Option<String> {
        Some(self.client.pin().identity.to_string())
    }
}

impl fmt::Display for Classified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.class().as_str(), self.0)
    }
}

impl Error for Classified {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
