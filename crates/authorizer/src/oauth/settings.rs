//! What is known about signing in to a server, and which stored credentials are for it.

use plenipo_credentials::{CredentialKey, Record};
use plenipo_oauth::{ClientRegistration, EndpointUrl, Issuer, ResourceId, Scopes};

/// What is known about signing in to a server: its configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthSettings {
    /// The server's URL.
    pub server: EndpointUrl,
    /// `oauth.authorization_server_issuer`.
    pub issuer: Option<Issuer>,
    /// `oauth_resource`.
    pub resource: Option<ResourceId>,
    /// `scopes`.
    pub scopes: Option<Scopes>,
    /// `oauth.client_id` and what belongs to it.
    pub client: Option<ClientRegistration>,
    /// The URL of our client id metadata document.
    pub metadata_document: Option<String>,
    /// Bind tokens to a key, whether the server wants it or not.
    pub dpop: bool,
    /// Whose credential to use where several people's are stored: a subject, or the name that is
    /// shown for one.
    pub account: Option<String>,
    /// The command that signs in, for hints.
    pub sign_in_command: String,
}

impl OAuthSettings {
    /// Only a URL.
    #[must_use]
    pub fn new(server: EndpointUrl, sign_in_command: impl Into<String>) -> Self {
        Self {
            server,
            issuer: None,
            resource: None,
            scopes: None,
            client: None,
            metadata_document: None,
            dpop: false,
            account: None,
            sign_in_command: sign_in_command.into(),
        }
    }

    /// Whether a stored credential is one for this server and client.
    #[must_use]
    pub fn covers(&self, record: &Record) -> bool {
        self.covers_key(&record.key)
            && self.account.as_ref().is_none_or(|account| is_of(record, account))
    }

    /// Whether a stored credential of this key is one for this server and client, whoever's it is.
    #[must_use]
    pub fn covers_key(&self, key: &CredentialKey) -> bool {
        let resource_fits = match &self.resource {
            Some(resource) => key.resource == *resource,
            None => ResourceId::for_server(key.resource.as_str(), &self.server).is_ok(),
        };
        resource_fits
            && self.issuer.as_ref().is_none_or(|issuer| *issuer == key.issuer)
            && self.client.as_ref().is_none_or(|client| client.client_id == key.client_id)
    }
}

/// Whether a credential is of somebody, by subject or by the name that is shown.
fn is_of(record: &Record, account: &str) -> bool {
    let shown = record.grant.as_ref().and_then(|grant| grant.account.as_deref());
    [record.key.subject.as_deref(), shown].into_iter().flatten().any(|name| name == account)
}
