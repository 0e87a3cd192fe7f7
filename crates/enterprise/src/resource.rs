//! The resource's side: what the MCP server and its authorization server publish, held against what
//! is configured. Nobody's identity is needed for it, and none is touched before it is known.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use plenipo_oauth::{
    Asked, ClientRegistration, Demand, DpopKey, EndpointUrl, Issuer, OAuthError, OutgoingRequest,
    ProtectedResource, ResourceId, ScopeSources, Scopes, ServerMetadata, TokenEndpoint,
    TransportFault,
};
use plenipo_redact::Secret;

use crate::error::{EnterpriseError, Party};
use crate::identity::Source;
use crate::provider::Network;

const PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const JWT_DPOP: &str = "urn:ietf:params:oauth:grant-type:jwt-dpop";
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#;
/// For the probe.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server with `auth = "enterprise"`: its configuration, which no project file can change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagedServer {
    /// The server's URL; its token goes nowhere else.
    pub url: EndpointUrl,
    /// `oauth_resource`: what the server has to publish, to the letter.
    pub resource: Option<ResourceId>,
    /// `oauth.authorization_server_issuer`. Without it the server has to name one and only one.
    pub issuer: Option<Issuer>,
    /// Our client at the server's authorization server.
    pub client: ClientRegistration,
    /// `scopes`: what is asked for. Default: what the server suggests.
    pub scopes: Option<Scopes>,
    /// `enterprise.algorithms`: how an assertion may be signed. Default: any that is not symmetric.
    pub algorithms: Option<Vec<String>>,
    /// `enterprise.max_token_lifetime_sec`: a token is used no longer. Default, and at most: 300 s.
    pub max_lifetime: Duration,
    /// `enterprise.dpop`: tokens are bound to a key even if the server does not ask for it.
    pub dpop: bool,
    /// `enterprise.assertion = "encrypted"`: assertions cannot be looked at.
    pub encrypted: bool,
}

/// What was found out.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    /// Our client at the server's authorization server, with the key that tokens are bound to.
    pub(crate) endpoint: TokenEndpoint,
    pub(crate) scopes: Option<Scopes>,
}

impl ManagedServer {
    /// With defaults.
    #[must_use]
    pub fn new(url: EndpointUrl, client: ClientRegistration) -> Self {
        Self {
            url,
            resource: None,
            issuer: None,
            client,
            scopes: None,
            algorithms: None,
            max_lifetime: Duration::from_secs(300),
            dpop: false,
            encrypted: false,
        }
    }

    /// Finds out who grants access to the server, and for what.
    pub(crate) async fn discover(
        &self,
        network: &Network,
        identity_provider: &Issuer,
    ) -> Result<Resource, EnterpriseError> {
        let http = network.http();
        let asked = self.probe(network).await?;
        let challenged = asked.resource_metadata.as_deref();
        let published = ProtectedResource::discover(&http, &self.url, challenged).await;
        let published = published.map_err(|error| failed(&error, Party::Server))?;
        let published = published.ok_or(EnterpriseError::metadata(
            Party::Server,
            "it publishes no protected resource metadata",
        ))?;
        if self.resource.as_ref().is_some_and(|resource| *resource != published.resource) {
            let fault = "it is another resource than the configured `oauth_resource`";
            return Err(EnterpriseError::metadata(Party::Server, fault));
        }
        let issuer = self.issuer_of(&published)?;
        let party = Party::ResourceAuthorization;
        if issuer == identity_provider {
            let fault = "it is the identity provider itself";
            return Err(EnterpriseError::metadata(party, fault));
        }
        let metadata = ServerMetadata::discover(&http, issuer).await;
        let metadata = metadata.map_err(|error| failed(&error, party))?;
        let dpop = self.dpop || published.dpop_required || asked.dpop;
        self.check(&metadata, dpop)?;
        let mut sources = ScopeSources::default();
        sources.explicit = self.scopes.as_ref();
        sources.challenged = asked.scopes.as_ref();
        sources.resource = published.scopes.as_ref();
        let key = dpop.then(DpopKey::generate).transpose();
        let key = key.map_err(|error| failed(&error, party))?;
        let endpoint = TokenEndpoint::new(Arc::new(metadata), self.client.clone());
        let endpoint = endpoint.map_err(|error| failed(&error, party))?.with_dpop(key);
        Ok(Resource { id: published.resource, endpoint, scopes: sources.choose() })
    }

    /// What the server says to somebody who does not say who it is. Nothing, if it does not mind.
    async fn probe(&self, network: &Network) -> Result<Asked, EnterpriseError> {
        let message = Request::post(self.url.uri())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Secret::new(PROBE.as_bytes().to_vec()));
        let message = message.map_err(|_| EnterpriseError::Config("the server's URL is no URL"))?;
        let mut request = OutgoingRequest::new(message, network.addresses);
        request.timeout = PATIENCE;
        match network.client.send(request).await {
            Ok(response) => match Demand::of(response.status(), response.headers()) {
                Some(Demand::Token(asked) | Demand::MoreScopes(asked)) => Ok(asked),
                _ => Ok(Asked::default()),
            },
            // A stream without end is an answer as well.
            Err(TransportFault::TimedOut | TransportFault::TooLarge { .. }) => Ok(Asked::default()),
            Err(_) => Err(EnterpriseError::Unreachable { party: Party::Server }),
        }
    }

    /// The authorization server to use: the configured one, to the letter.
    fn issuer_of<'p>(
        &'p self,
        published: &'p ProtectedResource,
    ) -> Result<&'p Issuer, EnterpriseError> {
        match (&self.issuer, published.issuers.as_slice()) {
            (Some(configured), listed) if listed.contains(configured) => Ok(configured),
            (Some(configured), listed) => Err(EnterpriseError::Issuer {
                party: Party::ResourceAuthorization,
                configured: configured.to_string(),
                slash: listed.iter().any(|listed| configured.differs_by_slash(listed.as_str())),
            }),
            (None, [only]) => Ok(only),
            (None, _) => Err(EnterpriseError::Config(
                "the server names several authorization servers, and `oauth.authorization_server_issuer` does not say which",
            )),
        }
    }

    fn check(&self, metadata: &ServerMetadata, dpop: bool) -> Result<(), EnterpriseError> {
        let refused = |fault| Err(EnterpriseError::metadata(Party::ResourceAuthorization, fault));
        let listed = |list: Option<&[String]>, entry: &str| {
            list.map(|list| list.iter().any(|listed| listed == entry))
        };
        let at_home = |url: &EndpointUrl| url.is_same_origin(metadata.issuer.url());
        if self.issuer.is_some() && !metadata.token_endpoint.as_ref().is_some_and(at_home) {
            return refused("its token endpoint is at another origin");
        }
        let profile = listed(metadata.grant_profiles.as_deref(), PROFILE);
        let grant = listed(metadata.grant_types.as_deref(), JWT_BEARER);
        match (profile, grant) {
            (Some(false), _) => refused("it does not take identity assertions"),
            (_, Some(false)) | (Some(true), None) => {
                refused("it does not list the grant of identity assertions")
            }
            _ if dpop && listed(metadata.grant_types.as_deref(), JWT_DPOP) == Some(false) => {
                refused("it does not list the grant of assertions that are bound to a key")
            }
            _ => Ok(()),
        }
    }
}

fn failed(error: &OAuthError, party: Party) -> EnterpriseError {
    // Nobody's identity is involved here: the source tells nothing.
    EnterpriseError::of_oauth(error, party, Source::Enterprise)
}
