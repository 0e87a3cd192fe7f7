//! Authorization server metadata (RFC 8414, OpenID Connect Discovery): where it is, what it says.

use crate::error::{Document, Missing, OAuthError};
use crate::http_client::{Fetched, Http};
use crate::issuer::Issuer;
use crate::json::Json;
use crate::protected_resource::scopes_of;
use crate::scope::Scopes;
use crate::url::EndpointUrl;

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// What an authorization server says about itself. Its issuer is the one that was asked for, to
/// the letter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// `issuer`.
    pub issuer: Issuer,
    /// `authorization_endpoint`.
    pub authorization_endpoint: Option<EndpointUrl>,
    /// `token_endpoint`.
    pub token_endpoint: Option<EndpointUrl>,
    /// `registration_endpoint`.
    pub registration_endpoint: Option<EndpointUrl>,
    /// `revocation_endpoint`.
    pub revocation_endpoint: Option<EndpointUrl>,
    /// `device_authorization_endpoint`.
    pub device_authorization_endpoint: Option<EndpointUrl>,
    /// `jwks_uri`.
    pub jwks_uri: Option<EndpointUrl>,
    /// `scopes_supported`.
    pub scopes: Option<Scopes>,
    /// `code_challenge_methods_supported` holds `S256`.
    pub pkce: bool,
    /// `grant_types_supported`; `None` when not published.
    pub grant_types: Option<Vec<String>>,
    /// `token_endpoint_auth_methods_supported`; `None` when not published.
    pub token_auth_methods: Option<Vec<String>>,
    /// `token_endpoint_auth_signing_alg_values_supported`; `None` when not published.
    pub token_auth_algorithms: Option<Vec<String>>,
    /// `dpop_signing_alg_values_supported`; `None` when not published.
    pub dpop_algorithms: Option<Vec<String>>,
    /// `authorization_response_iss_parameter_supported` (RFC 9207 §3).
    pub promises_iss: bool,
    /// `client_id_metadata_document_supported`.
    pub client_id_metadata: bool,
    /// `authorization_grant_profiles_supported`; `None` when not published.
    pub grant_profiles: Option<Vec<String>>,
    /// `identity_chaining_requested_token_types_supported`; `None` when not published.
    pub chaining_token_types: Option<Vec<String>>,
    /// Not published at all: the addresses that the MCP revision 2025-03-26 assumes.
    pub assumed: bool,
}

/// Where the metadata of `issuer` may be, in the order of the MCP specification: path inserted for
/// OAuth, path inserted for OpenID, path appended for OpenID.
///
/// # Errors
/// [`OAuthError::Url`] when the issuer's path cannot be part of such an address.
pub fn locations(issuer: &Issuer) -> Result<Vec<EndpointUrl>, OAuthError> {
    let path = issuer.url().path().trim_end_matches('/');
    let mut paths = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID}"));
    }
    let located = paths.iter().map(|path| {
        issuer.url().with_path(path).map_err(|fault| OAuthError::Url {
            what: "the issuer".to_owned(),
            url: issuer.to_string(),
            fault,
        })
    });
    located.collect()
}

impl ServerMetadata {
    /// Finds the metadata of `issuer`.
    ///
    /// # Errors
    /// [`OAuthError`]: a document that cannot be used or is of another issuer ends the search;
    /// [`Missing::Metadata`] when there is none.
    pub async fn discover(http: &Http<'_>, issuer: &Issuer) -> Result<Self, OAuthError> {
        match Self::find(http, issuer).await? {
            Some(metadata) => Ok(metadata),
            None => Err(Missing::Metadata { issuer: issuer.to_string() }.into()),
        }
    }

    /// For a server from before RFC 9728: its own origin is the issuer, and what publishes nothing
    /// has the addresses that the MCP revision 2025-03-26 assumes.
    ///
    /// # Errors
    /// [`OAuthError`] as for [`discover`](Self::discover), but not for missing metadata.
    pub async fn discover_legacy(
        http: &Http<'_>,
        server: &EndpointUrl,
    ) -> Result<Self, OAuthError> {
        let wrong = |fault| OAuthError::Url {
            what: "the server's URL".to_owned(),
            url: server.to_string(),
            fault,
        };
        let issuer = Issuer::parse(&server.origin()).map_err(wrong)?;
        if let Some(metadata) = Self::find(http, &issuer).await? {
            return Ok(metadata);
        }
        let at = |path| issuer.url().with_path(path).map(Some).map_err(wrong);
        Ok(Self {
            authorization_endpoint: at("/authorize")?,
            token_endpoint: at("/token")?,
            registration_endpoint: at("/register")?,
            revocation_endpoint: None,
            device_authorization_endpoint: None,
            jwks_uri: None,
            scopes: None,
            // That revision requires it of every server and knows no metadata for it.
            pkce: true,
            grant_types: None,
            token_auth_methods: None,
            token_auth_algorithms: None,
            dpop_algorithms: None,
            promises_iss: false,
            client_id_metadata: false,
            grant_profiles: None,
            chaining_token_types: None,
            assumed: true,
            issuer,
        })
    }

    async fn find(http: &Http<'_>, issuer: &Issuer) -> Result<Option<Self>, OAuthError> {
        for url in locations(issuer)? {
            if let Fetched::Found(json) = http.get(Document::AuthorizationServer, &url).await? {
                return Self::read(&json, issuer).map(Some);
            }
        }
        Ok(None)
    }

    fn read(json: &Json, issuer: &Issuer) -> Result<Self, OAuthError> {
        let found = json.required_text("issuer")?;
        if found != issuer.as_str() {
            return Err(OAuthError::IssuerMismatch {
                url: json.url.clone(),
                expected: issuer.to_string(),
                found: crate::text::shown_url(found),
            });
        }
        let challenges = json.texts("code_challenge_methods_supported")?;
        Ok(Self {
            issuer: issuer.clone(),
            authorization_endpoint: json.url("authorization_endpoint")?,
            token_endpoint: json.url("token_endpoint")?,
            registration_endpoint: json.url("registration_endpoint")?,
            revocation_endpoint: json.url("revocation_endpoint")?,
            device_authorization_endpoint: json.url("device_authorization_endpoint")?,
            jwks_uri: json.url("jwks_uri")?,
            scopes: scopes_of(json)?,
            pkce: lists(challenges.as_deref(), "S256"),
            grant_types: json.texts("grant_types_supported")?,
            token_auth_methods: json.texts("token_endpoint_auth_methods_supported")?,
            token_auth_algorithms: json
                .texts("token_endpoint_auth_signing_alg_values_supported")?,
            dpop_algorithms: json.texts("dpop_signing_alg_values_supported")?,
            promises_iss: json.flag("authorization_response_iss_parameter_supported")?,
            client_id_metadata: json.flag("client_id_metadata_document_supported")?,
            grant_profiles: json.texts("authorization_grant_profiles_supported")?,
            chaining_token_types: json
                .texts("identity_chaining_requested_token_types_supported")?,
            assumed: false,
        })
    }

    /// An endpoint that a flow needs.
    ///
    /// # Errors
    /// [`Missing::Endpoint`].
    pub(crate) fn need<'a>(
        &self,
        endpoint: Option<&'a EndpointUrl>,
        member: &'static str,
    ) -> Result<&'a EndpointUrl, OAuthError> {
        let issuer = || self.issuer.to_string();
        endpoint.ok_or_else(|| Missing::Endpoint { issuer: issuer(), member }.into())
    }

    /// Whether a grant is offered: listed, or no list is published.
    #[must_use]
    pub fn offers(&self, grant_type: &str) -> bool {
        match &self.grant_types {
            None => true,
            listed => lists(listed.as_deref(), grant_type),
        }
    }
}

pub(crate) fn lists(list: Option<&[String]>, entry: &str) -> bool {
    list.is_some_and(|list| list.iter().any(|own| own == entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_metadata_order() {
        let order = |issuer: &str| -> Vec<String> {
            let locations = locations(&Issuer::parse(issuer).unwrap()).unwrap();
            locations.iter().map(|url| url.as_str().to_owned()).collect()
        };
        assert_eq!(
            order("https://as.example/t/1"),
            [
                "https://as.example/.well-known/oauth-authorization-server/t/1",
                "https://as.example/.well-known/openid-configuration/t/1",
                "https://as.example/t/1/.well-known/openid-configuration",
            ]
        );
        for root in ["https://as.example", "https://as.example/"] {
            assert_eq!(
                order(root),
                [
                    "https://as.example/.well-known/oauth-authorization-server",
                    "https://as.example/.well-known/openid-configuration",
                ]
            );
        }
    }
}
