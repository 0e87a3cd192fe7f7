//! Protected resource metadata (RFC 9728): where it is, and what it says.

use crate::error::{Document, Missing, OAuthError};
use crate::http_client::{Fetched, Http};
use crate::issuer::{Issuer, ResourceId};
use crate::json::Json;
use crate::scope::Scopes;
use crate::url::EndpointUrl;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The most authorization servers of a resource.
const MOST: usize = 16;

/// What a resource says about itself; checked to be about the server it was asked of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// `resource`, as it is spelled there.
    pub resource: ResourceId,
    /// `authorization_servers`, at least one.
    pub issuers: Vec<Issuer>,
    /// `scopes_supported`.
    pub scopes: Option<Scopes>,
    /// `dpop_bound_access_tokens_required`.
    pub dpop_required: bool,
}

/// Where the metadata of `server` may be, in order: what the challenge says, the well-known path
/// before the server's own path, and the one of the whole host.
///
/// # Errors
/// [`OAuthError::Challenge`] when the challenge names a URL that OAuth may not use.
pub fn locations(
    server: &EndpointUrl,
    challenged: Option<&str>,
) -> Result<Vec<EndpointUrl>, OAuthError> {
    let mut locations = Vec::new();
    if let Some(url) = challenged {
        locations.push(
            EndpointUrl::parse(url).map_err(|fault| OAuthError::Challenge {
                url: crate::text::shown_url(url),
                fault,
            })?,
        );
    }
    let path = server.path().trim_end_matches('/');
    for path in [format!("{WELL_KNOWN}{path}"), WELL_KNOWN.to_owned()] {
        let url = server.with_path(&path).map_err(|fault| OAuthError::Url {
            what: "the server's URL".to_owned(),
            url: server.to_string(),
            fault,
        })?;
        if !locations.contains(&url) {
            locations.push(url);
        }
    }
    Ok(locations)
}

impl ProtectedResource {
    /// Finds the metadata of `server`. `None` when there is none at any location: a server from
    /// before RFC 9728.
    ///
    /// # Errors
    /// [`OAuthError`]: a document that cannot be used or is about another resource ends the search.
    pub async fn discover(
        http: &Http<'_>,
        server: &EndpointUrl,
        challenged: Option<&str>,
    ) -> Result<Option<Self>, OAuthError> {
        for url in locations(server, challenged)? {
            if let Fetched::Found(json) = http.get(Document::ProtectedResource, &url).await? {
                return Self::read(&json, server).map(Some);
            }
        }
        Ok(None)
    }

    fn read(json: &Json, server: &EndpointUrl) -> Result<Self, OAuthError> {
        let resource = ResourceId::for_server(json.required_text("resource")?, server)?;
        let name = "authorization_servers";
        let listed = json.texts(name)?.unwrap_or_default();
        if listed.len() > MOST {
            return Err(json.value_fault(name, format!("has over {MOST} entries")));
        }
        let issuers = listed
            .iter()
            .map(|text| Issuer::parse(text).map_err(|fault| json.address_fault(name, text, fault)));
        let issuers: Vec<_> = issuers.collect::<Result<_, _>>()?;
        if issuers.is_empty() {
            return Err(Missing::AuthorizationServer.into());
        }
        let methods = json.texts("bearer_methods_supported")?;
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "header")) {
            let reason = "does not list `header`, the only place where MCP puts a token";
            return Err(json.value_fault("bearer_methods_supported", reason));
        }
        Ok(Self {
            resource,
            issuers,
            scopes: scopes_of(json)?,
            dpop_required: json.flag("dpop_bound_access_tokens_required")?,
        })
    }

    /// The issuer to use: the configured one if there is one, else the first.
    ///
    /// # Errors
    /// [`OAuthError::IssuerNotListed`] when the configured one is not among them, to the letter.
    pub fn issuer(&self, configured: Option<&Issuer>) -> Result<&Issuer, OAuthError> {
        match configured {
            None => self.issuers.first().ok_or_else(|| Missing::AuthorizationServer.into()),
            Some(configured) => {
                let listed = self.issuers.iter().find(|issuer| *issuer == configured);
                listed.ok_or_else(|| {
                    let found: Vec<_> =
                        self.issuers.iter().map(|issuer| format!("`{issuer}`")).collect();
                    OAuthError::IssuerNotListed {
                        configured: configured.to_string(),
                        found: crate::text::shown(&found.join(", ")),
                    }
                })
            }
        }
    }
}

/// `scopes_supported`. A scope that cannot be sent cannot be asked for.
pub(crate) fn scopes_of(json: &Json) -> Result<Option<Scopes>, OAuthError> {
    let scopes = json.scopes("scopes_supported")?;
    Ok(scopes.filter(|scopes| !scopes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(server: &str, challenged: Option<&str>) -> Vec<String> {
        let server = EndpointUrl::parse(server).unwrap();
        let locations = locations(&server, challenged).unwrap();
        locations.iter().map(|url| url.as_str().to_owned()).collect()
    }

    #[test]
    fn prm_order() {
        assert_eq!(
            order("https://m.example/a/mcp?x=1", Some("https://m.example/prm")),
            [
                "https://m.example/prm",
                "https://m.example/.well-known/oauth-protected-resource/a/mcp",
                "https://m.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            order("https://m.example/", None),
            ["https://m.example/.well-known/oauth-protected-resource"]
        );
        let server = EndpointUrl::parse("https://m.example/").unwrap();
        for bad in ["http://m.example/prm", "file:///etc/passwd", "/prm"] {
            assert!(locations(&server, Some(bad)).is_err(), "{bad}");
        }
    }
}
