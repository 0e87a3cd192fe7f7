//! The URL of an endpoint, and which others belong to it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::uri::Scheme;
use http::{HeaderValue, Uri};
use plenipo_redact::redacted_url;

use crate::error::ClientFault;

/// An absolute `http` or `https` URL with a host and without user information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Arc<Parts>);

/// Read once; requests take them as they are.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    uri: Uri,
    origin: Arc<str>,
    /// As `Host` has it (RFC 9110 §7.2): without the scheme's own port.
    host: HeaderValue,
    /// Path and query (RFC 9112 §3.2.1).
    path: Uri,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`ClientFault::Url`] unless it is absolute, of `http` or `https`, and without user information.
    pub fn parse(url: &str) -> Result<Self, ClientFault> {
        let fault = |reason| ClientFault::Url { reason };
        let uri: Uri = url.trim().parse().map_err(|_| fault("is not a URL"))?;
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(fault("is not an http or https URL"));
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(fault("holds credentials, which belong into a header"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(fault("has no host"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).parse();
        let path = path.map_err(|_| fault("is not a URL"))?;
        let host = HeaderValue::try_from(host_of(&uri)).map_err(|_| fault("is not a URL"))?;
        let origin = origin_of(&uri).into();
        Ok(Self(Arc::new(Parts { uri, origin, host, path })))
    }

    /// The whole URL, secrets in its query included.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// What `Host` says (RFC 9110 §7.2).
    #[must_use]
    pub fn host_header(&self) -> &HeaderValue {
        &self.0.host
    }

    pub(crate) fn path(&self) -> &Uri {
        &self.0.path
    }

    /// What connections are kept by.
    pub(crate) fn lane(&self) -> &Arc<str> {
        &self.0.origin
    }

    /// `https://host:443`.
    #[must_use]
    pub fn origin(&self) -> String {
        self.0.origin.as_ref().to_owned()
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.uri().scheme() == Some(&Scheme::HTTPS)
    }

    /// Whether the host is this machine, by its name or address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// Whether scheme, host and port are the same.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.is_tls() == other.is_tls()
            && self.host().eq_ignore_ascii_case(other.host())
            && self.port() == other.port()
    }

    /// Resolves a `Location` (RFC 9110 §10.2.2), whose dot segments are left to the server.
    ///
    /// # Errors
    /// [`ClientFault::Url`] when that is no URL for a request.
    pub fn join(&self, location: &str) -> Result<Self, ClientFault> {
        let path = self.uri().path();
        let authority =
            self.uri().authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let absolute = match location {
            _ if has_scheme(location) => location.to_owned(),
            _ if location.starts_with("//") => format!("{}:{location}", self.scheme()),
            _ if location.starts_with('/') => {
                format!("{}://{authority}{location}", self.scheme())
            }
            _ => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{}://{authority}{folder}/{location}", self.scheme())
            }
        };
        Self::parse(&absolute)
    }

    fn scheme(&self) -> &str {
        self.uri().scheme_str().unwrap_or_default()
    }

    fn host(&self) -> &str {
        self.uri().host().unwrap_or_default()
    }

    fn port(&self) -> u16 {
        port_of(self.uri())
    }
}

impl fmt::Display for Target {
    /// Without the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted_url(&self.uri().to_string()))
    }
}

/// Whether a reference is a whole URI (RFC 3986 §4.2): what is before a colon is a scheme unless a slash, a query or a
/// fragment comes first.
fn has_scheme(reference: &str) -> bool {
    let first = reference.find([':', '/', '?', '#']);
    first.is_some_and(|at| at > 0 && reference.as_bytes().get(at) == Some(&b':'))
}

fn own_port(uri: &Uri) -> u16 {
    if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 }
}

fn port_of(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or_else(|| own_port(uri))
}

fn origin_of(uri: &Uri) -> String {
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
    format!("{scheme}://{host}:{}", port_of(uri))
}

fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    match uri.port_u16().filter(|port| *port != own_port(uri)) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// `localhost`, names below it, and loopback addresses (RFC 6761 §6.3).
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_http_urls_without_credentials_are_targets() {
        for good in ["http://h", "https://h:8443/mcp?k=1", "HTTP://[::1]:9/x", " http://h/ "] {
            assert!(Target::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "h/mcp", "/mcp", "ftp://h/", "file:///x", "http://u:p@h/", "http://", "http:///x"]
        {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
        let shown = Target::parse("https://h/mcp?key=s3cr3t").unwrap();
        assert_eq!(shown.to_string(), "https://h/mcp?[redacted]");
        assert_eq!(shown.origin(), "https://h:443");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let at = |url: &str| Target::parse(url).unwrap();
        assert!(at("http://h/a").is_same_origin(&at("HTTP://H:80/b")));
        for other in ["https://h/", "http://h:81/", "http://h.example/", "http://i/"] {
            assert!(!at("http://h/").is_same_origin(&at(other)), "{other}");
        }
    }

    #[test]
    fn locations_are_resolved() {
        let base = Target::parse("http://h:8/a/mcp?x=1").unwrap();
        for (location, expected) in [
            ("http://i/b", "http://i/b"),
            ("//i/b", "http://i/b"),
            ("/b?c", "http://h:8/b?c"),
            ("mcp/", "http://h:8/a/mcp/"),
        ] {
            assert_eq!(base.join(location).unwrap().uri().to_string(), expected);
        }
        assert!(base.join("javascript://x").is_err());
        assert!(base.join("http://u:p@h:8/").is_err());
    }

    #[test]
    fn loopback_hosts() {
        for host in ["localhost", "a.LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "10.0.0.1", "0.0.0.0", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
