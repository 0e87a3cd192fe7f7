//! How an authorization server comes to know us: configured, by a metadata document, by dynamic
//! registration (RFC 7591), in this order.

use std::fmt;
use std::time::{Duration, SystemTime};

use plenipo_redact::Secret;
use serde::Serialize;

use crate::client_authentication::{AuthenticationMethod, ClientCredential};
use crate::error::{Document, Missing, OAuthError};
use crate::http_client::Http;
use crate::issuer::Issuer;
use crate::json::Json;
use crate::scope::Scopes;
use crate::server_metadata::{ServerMetadata, lists};
use crate::url::EndpointUrl;

/// Where a client id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistrationSource {
    /// Configured, registered beforehand.
    Configured,
    /// The URL of a client id metadata document: good at every issuer that supports those.
    MetadataDocument,
    /// Dynamic registration.
    Dynamic,
}

/// A client as one authorization server knows it. Never used at another one (RFC 9700 §4.4), unless
/// the id is a metadata document's.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientRegistration {
    /// `client_id`.
    pub client_id: String,
    /// What it proves its identity with.
    pub credential: ClientCredential,
    /// `token_endpoint_auth_method`; `None`: what the server's metadata suggests.
    pub method: Option<AuthenticationMethod>,
    /// Where it comes from.
    pub source: RegistrationSource,
    /// The issuer it is for; `None` for a metadata document's, and for a configured one that names
    /// no issuer.
    pub issuer: Option<Issuer>,
    /// The redirect URIs it was registered with; empty when configured.
    pub redirect_uris: Vec<String>,
    /// `client_secret_expires_at`; `None`: never.
    pub secret_expires_at: Option<SystemTime>,
}

/// What is known about ourselves.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct RegistrationOptions<'a> {
    /// A client that was registered beforehand.
    pub configured: Option<&'a ClientRegistration>,
    /// The URL of our client id metadata document.
    pub metadata_document: Option<&'a str>,
    /// A client that was registered dynamically at this issuer before.
    pub registered: Option<&'a ClientRegistration>,
}

/// What to do about a client, in the order of preference.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Strategy {
    /// Use this one; nothing is registered.
    Use(ClientRegistration),
    /// Register there.
    Register(EndpointUrl),
}

/// What is registered.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RegistrationRequest<'a> {
    /// Shown to the person who consents.
    pub client_name: &'a str,
    /// Where the browser is sent back to; loopback or `https`.
    pub redirect_uris: &'a [String],
    /// Scopes that may be asked for; `None` leaves it to the server.
    pub scopes: Option<&'a Scopes>,
}

impl<'a> RegistrationRequest<'a> {
    /// A request without scopes.
    #[must_use]
    pub fn new(client_name: &'a str, redirect_uris: &'a [String]) -> Self {
        Self { client_name, redirect_uris, scopes: None }
    }
}

impl ClientRegistration {
    /// A client that was registered beforehand, for whatever issuer the configuration is for.
    #[must_use]
    pub fn configured(client_id: impl Into<String>, credential: ClientCredential) -> Self {
        Self::new(client_id.into(), credential, RegistrationSource::Configured)
    }

    /// A client from its parts, such as a store keeps them. The optional ones are set afterwards.
    #[must_use]
    pub fn new(
        client_id: String,
        credential: ClientCredential,
        source: RegistrationSource,
    ) -> Self {
        Self {
            client_id,
            credential,
            method: None,
            source,
            issuer: None,
            redirect_uris: Vec::new(),
            secret_expires_at: None,
        }
    }

    /// Whether it may be used at `issuer`.
    #[must_use]
    pub fn is_for(&self, issuer: &Issuer) -> bool {
        match (self.source, &self.issuer) {
            (RegistrationSource::MetadataDocument, _) | (RegistrationSource::Configured, None) => {
                true
            }
            (_, own) => own.as_ref() == Some(issuer),
        }
    }

    /// Whether its secret has run out.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.secret_expires_at.is_some_and(|expires| expires <= now)
    }
}

impl fmt::Debug for ClientRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRegistration")
            .field("client_id", &self.client_id)
            .field("credential", &self.credential)
            .field("method", &self.method)
            .field("source", &self.source)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl Strategy {
    /// Decides. A configured client is never passed over for a registration: if it is for another
    /// issuer, that is an error.
    ///
    /// # Errors
    /// [`OAuthError::IssuerNotListed`] for a configured client of another issuer,
    /// [`Missing::Client`] when there is no way.
    pub fn choose(
        metadata: &ServerMetadata,
        options: RegistrationOptions<'_>,
    ) -> Result<Self, OAuthError> {
        if let Some(configured) = options.configured {
            return match configured.is_for(&metadata.issuer) {
                true => Ok(Self::Use(configured.clone())),
                false => Err(OAuthError::IssuerNotListed {
                    configured: configured
                        .issuer
                        .as_ref()
                        .map(Issuer::to_string)
                        .unwrap_or_default(),
                    found: format!("`{}`", metadata.issuer),
                }),
            };
        }
        if let (Some(url), true) = (options.metadata_document, metadata.client_id_metadata) {
            let source = RegistrationSource::MetadataDocument;
            let client = ClientRegistration::new(url.to_owned(), ClientCredential::None, source);
            return Ok(Self::Use(client));
        }
        if let Some(registered) = options.registered.filter(|own| own.is_for(&metadata.issuer)) {
            return Ok(Self::Use(registered.clone()));
        }
        match &metadata.registration_endpoint {
            Some(endpoint) => Ok(Self::Register(endpoint.clone())),
            None => Err(Missing::Client.into()),
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    client_name: &'a str,
    redirect_uris: &'a [String],
    grant_types: Vec<&'static str>,
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
    application_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

/// Registers a native client at `endpoint` (RFC 7591 §3, OpenID Registration for
/// `application_type`).
///
/// # Errors
/// [`OAuthError::Refused`] with the server's reason, or a response that cannot be used.
pub async fn register(
    http: &Http<'_>,
    metadata: &ServerMetadata,
    endpoint: &EndpointUrl,
    request: RegistrationRequest<'_>,
) -> Result<ClientRegistration, OAuthError> {
    let method = wanted_method(metadata);
    let body = Body {
        client_name: request.client_name,
        redirect_uris: request.redirect_uris,
        grant_types: grant_types(metadata),
        response_types: ["code"],
        token_endpoint_auth_method: method.as_str(),
        application_type: "native",
        scope: request.scopes.map(Scopes::to_string),
    };
    let body = serde_json::to_vec(&body).unwrap_or_default();
    let response = http.post_json(Document::Registration, endpoint, body).await?;
    let json = crate::response::read(Document::Registration, endpoint, &response, &[])?;
    let mut client = read(&json, metadata)?;
    client.redirect_uris = request.redirect_uris.to_vec();
    Ok(client)
}

fn read(json: &Json, metadata: &ServerMetadata) -> Result<ClientRegistration, OAuthError> {
    let client_id = json.required_text("client_id")?.to_owned();
    if client_id.chars().any(char::is_control) {
        return Err(json.value_fault("client_id", "has a control character"));
    }
    let secret = json.text("client_secret")?.filter(|secret| !secret.is_empty());
    let credential = match secret {
        Some(secret) => ClientCredential::Secret(Secret::new(secret.to_owned())),
        None => ClientCredential::None,
    };
    let name = "token_endpoint_auth_method";
    let method =
        match json.text(name)? {
            None => None,
            Some(text) => Some(AuthenticationMethod::parse(text).ok_or_else(|| {
                json.value_fault(name, format!("is `{}`", crate::text::shown(text)))
            })?),
        };
    let expires = json.seconds("client_secret_expires_at")?.filter(|seconds| *seconds > 0);
    let mut client = ClientRegistration::new(client_id, credential, RegistrationSource::Dynamic);
    client.method = method;
    client.issuer = Some(metadata.issuer.clone());
    client.secret_expires_at =
        expires.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    Ok(client)
}

/// What may be asked for later; the device grant only where there is one.
fn grant_types(metadata: &ServerMetadata) -> Vec<&'static str> {
    const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
    let mut grant_types = vec!["authorization_code", "refresh_token"];
    if metadata.device_authorization_endpoint.is_some() && metadata.offers(DEVICE_CODE) {
        grant_types.push(DEVICE_CODE);
    }
    grant_types
}

/// None where the server takes that, as a native program keeps no secret; else what it takes.
fn wanted_method(metadata: &ServerMetadata) -> AuthenticationMethod {
    let offered = metadata.token_auth_methods.as_deref();
    let methods = [
        AuthenticationMethod::None,
        AuthenticationMethod::SecretBasic,
        AuthenticationMethod::SecretPost,
    ];
    let wanted = methods.into_iter().find(|method| lists(offered, method.as_str()));
    wanted.unwrap_or(AuthenticationMethod::None)
}
