//! Who issues tokens, and for what.

use std::fmt;

use crate::error::{OAuthError, UrlFault};
use crate::url::EndpointUrl;

/// An authorization server's identifier (RFC 8414 §2): an [`EndpointUrl`] without query. Two are
/// equal when they are the same text, byte for byte (RFC 9207 §2.4): no slash is forgiven.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Issuer(EndpointUrl);

impl Issuer {
    /// Reads an issuer identifier.
    ///
    /// # Errors
    /// [`UrlFault`], which says what it is not.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        let url = EndpointUrl::parse(text)?;
        match url.query() {
            Some(_) => Err(UrlFault::Query),
            None => Ok(Self(url)),
        }
    }

    /// As it was spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// As a URL.
    #[must_use]
    pub fn url(&self) -> &EndpointUrl {
        &self.0
    }

    /// Whether `other` is this issuer but for one slash at the end: the mistake people make most.
    #[must_use]
    pub fn differs_by_slash(&self, other: &str) -> bool {
        self.as_str() != other && self.as_str().trim_end_matches('/') == other.trim_end_matches('/')
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({})", self.as_str())
    }
}

/// What a token is for (RFC 8707 §2): the identifier of a protected resource, as that spells it.
///
/// The text goes into every request as it is; nothing is normalised.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceId(EndpointUrl);

impl ResourceId {
    /// Reads a resource identifier as it was configured or published.
    ///
    /// # Errors
    /// [`UrlFault`], which says what it is not.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        EndpointUrl::parse(text).map(Self)
    }

    /// The identifier of a server that publishes none: its URL in the canonical form of the MCP
    /// specification, with scheme and host in lower case and nothing behind an empty path.
    ///
    /// # Errors
    /// [`UrlFault`] when the URL is none that OAuth may use.
    pub fn of_server(url: &EndpointUrl) -> Result<Self, UrlFault> {
        let path = match (url.path(), url.query()) {
            ("/", None) => String::new(),
            (path, None) => path.to_owned(),
            (path, Some(query)) => format!("{path}?{query}"),
        };
        Self::parse(&format!("{}{path}", url.origin()))
    }

    /// Accepts the `resource` member of a document about `server` (RFC 9728 §3.3): same origin, and
    /// a path that is the server's or above it by whole segments; a query must be the server's own.
    ///
    /// # Errors
    /// [`OAuthError::ResourceMismatch`]: the document is about another resource.
    pub fn for_server(published: &str, server: &EndpointUrl) -> Result<Self, OAuthError> {
        let mismatch = || OAuthError::ResourceMismatch {
            server: server.to_string(),
            found: crate::text::shown_url(published),
        };
        let resource = Self::parse(published).map_err(|_| mismatch())?;
        let queries_agree = match resource.0.query() {
            None => true,
            query => query == server.query() && resource.0.path() == server.path(),
        };
        let covers = resource.0.is_same_origin(server)
            && is_ancestor(resource.0.path(), server.path())
            && queries_agree;
        covers.then_some(resource).ok_or_else(mismatch)
    }

    /// As it was spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// As a URL.
    #[must_use]
    pub fn url(&self) -> &EndpointUrl {
        &self.0
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceId({})", self.0)
    }
}

/// Whether `above` is `path`, or a folder of it.
fn is_ancestor(above: &str, path: &str) -> bool {
    let above = above.trim_end_matches('/');
    let path = path.trim_end_matches('/');
    match path.strip_prefix(above) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_compared_as_text() {
        let issuer = Issuer::parse("https://as.example").unwrap();
        assert_eq!(issuer, Issuer::parse("https://as.example").unwrap());
        for other in ["https://as.example/", "https://AS.example", "https://as.example:443"] {
            assert_ne!(issuer, Issuer::parse(other).unwrap(), "{other}");
        }
        assert!(issuer.differs_by_slash("https://as.example/"));
        assert!(!issuer.differs_by_slash("https://as.example"));
        assert!(!issuer.differs_by_slash("https://as.example/x"));
        assert_eq!(Issuer::parse("https://as.example/?x").unwrap_err(), UrlFault::Query);
    }

    #[test]
    fn a_server_without_metadata_has_a_canonical_identifier() {
        for (url, expected) in [
            ("HTTPS://Mcp.Example/", "https://mcp.example"),
            ("https://mcp.example:443/mcp", "https://mcp.example/mcp"),
            ("https://mcp.example/a/?t=1", "https://mcp.example/a/?t=1"),
            ("http://localhost:3000/mcp", "http://localhost:3000/mcp"),
        ] {
            let url = EndpointUrl::parse(url).unwrap();
            assert_eq!(ResourceId::of_server(&url).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn prm_resource_mismatch_aborts() {
        let server = EndpointUrl::parse("https://mcp.example/a/mcp").unwrap();
        for same in [
            "https://mcp.example/a/mcp",
            "https://MCP.example:443/a/mcp/",
            "https://mcp.example/a",
            "https://mcp.example/",
            "https://mcp.example",
        ] {
            let resource = ResourceId::for_server(same, &server).unwrap();
            assert_eq!(resource.as_str(), same, "the spelling is kept");
        }
        for other in [
            "https://mcp.example/b",
            "https://mcp.example/a/mc",
            "https://mcp.example/a/mcp/x",
            "https://evil.example/a/mcp",
            "http://mcp.example/a/mcp",
            "https://mcp.example:8443/a/mcp",
            "https://mcp.example/a/mcp?x=1",
            "urn:mcp",
            "",
        ] {
            let error = ResourceId::for_server(other, &server).unwrap_err();
            assert!(matches!(error, OAuthError::ResourceMismatch { .. }), "{other}");
        }
    }
}
