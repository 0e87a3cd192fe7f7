//! From a server that refused to the authorization server that can help.

use crate::error::{Missing, OAuthError};
use crate::http_client::Http;
use crate::issuer::{Issuer, ResourceId};
use crate::protected_resource::ProtectedResource;
use crate::scope::Scopes;
use crate::server_metadata::ServerMetadata;
use crate::url::EndpointUrl;

/// What is known before discovery.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DiscoveryOptions<'a> {
    /// The server's URL.
    pub server: &'a EndpointUrl,
    /// `resource_metadata` of the challenge, unchecked.
    pub resource_metadata: Option<&'a str>,
    /// The configured `authorization_server_issuer`.
    pub issuer: Option<&'a Issuer>,
    /// The configured `oauth_resource`, which takes the place of the published one.
    pub resource: Option<&'a ResourceId>,
    /// Whether a server that publishes nothing has the endpoints that the MCP revision 2025-03-26
    /// assumes. Only one that asked for a token and knows no newer way is such a server: nothing is
    /// sent to guessed addresses otherwise. Default: no.
    pub may_assume: bool,
}

impl<'a> DiscoveryOptions<'a> {
    /// Only a URL.
    #[must_use]
    pub fn new(server: &'a EndpointUrl) -> Self {
        Self { server, resource_metadata: None, issuer: None, resource: None, may_assume: false }
    }
}

/// Who grants access to a server, and to what.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Discovered {
    /// Goes into every request as `resource` (RFC 8707).
    pub resource: ResourceId,
    /// `scopes_supported` of the resource.
    pub resource_scopes: Option<Scopes>,
    /// Whether the resource wants tokens bound to a key.
    pub dpop_required: bool,
    /// The authorization server.
    pub metadata: ServerMetadata,
}

/// Finds the resource's metadata, then the authorization server's; a server that has neither is
/// treated as the MCP revision 2025-03-26 says, where that may be.
///
/// # Errors
/// [`OAuthError`]; nothing has been registered, opened or stored.
pub async fn discover(
    http: &Http<'_>,
    options: DiscoveryOptions<'_>,
) -> Result<Discovered, OAuthError> {
    let server = options.server;
    let found = ProtectedResource::discover(http, server, options.resource_metadata).await?;
    let Some(published) = found else {
        let metadata = match options.issuer {
            Some(issuer) => ServerMetadata::discover(http, issuer).await?,
            None => {
                let metadata = ServerMetadata::discover_legacy(http, server).await?;
                match metadata.assumed && !options.may_assume {
                    true => return Err(Missing::AuthorizationServer.into()),
                    false => metadata,
                }
            }
        };
        let resource = match options.resource {
            Some(resource) => resource.clone(),
            None => ResourceId::of_server(server).map_err(|fault| OAuthError::Url {
                what: "the server's URL".to_owned(),
                url: server.to_string(),
                fault,
            })?,
        };
        return Ok(Discovered { resource, resource_scopes: None, dpop_required: false, metadata });
    };
    let metadata = ServerMetadata::discover(http, published.issuer(options.issuer)?).await?;
    Ok(Discovered {
        resource: options.resource.unwrap_or(&published.resource).clone(),
        resource_scopes: published.scopes,
        dpop_required: published.dpop_required,
        metadata,
    })
}
