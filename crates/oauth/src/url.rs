//! URLs that OAuth may use.
//!
//! Built on [`http::Uri`], the type the HTTP client connects with, so that what is checked and what
//! is connected to cannot be read in two ways. The original spelling is kept: issuers and resources
//! are compared as text.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use plenipo_redact::redacted_url;

use crate::error::UrlFault;

/// The longest URL that is taken from a peer, in bytes.
const LONGEST: usize = 4096;

/// An absolute URL for an endpoint: `https`, or `http` on a loopback host (RFC 9700 §2.6, RFC 8252
/// §7.3); no user information, no fragment, printable ASCII.
///
/// `Display` and `Debug` mask the query.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EndpointUrl {
    text: String,
    uri: Uri,
}

impl EndpointUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlFault`], which says what it is not.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        if text.len() > LONGEST {
            return Err(UrlFault::TooLong { limit: LONGEST });
        }
        // Browsers and other parsers disagree about what a backslash means.
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(UrlFault::Characters);
        }
        if text.contains('#') {
            return Err(UrlFault::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| UrlFault::NotAbsolute)?;
        let authority = uri.authority().ok_or(UrlFault::NotAbsolute)?;
        if authority.as_str().contains('@') {
            return Err(UrlFault::UserInformation);
        }
        if authority.host().is_empty() {
            return Err(UrlFault::Host);
        }
        let url = Self { text: text.to_owned(), uri };
        match url.uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => Ok(url),
            Some(scheme) if *scheme == Scheme::HTTP && url.is_loopback() => Ok(url),
            Some(scheme) if *scheme == Scheme::HTTP => Err(UrlFault::Plain),
            _ => Err(UrlFault::Scheme),
        }
    }

    /// As it was spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// For a request.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// As it was spelled, without brackets around an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        bare(self.uri.host().unwrap_or_default())
    }

    /// The port in the URL, or that of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        let default = if self.is_https() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(default)
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// Whether the host is `localhost` or a loopback address, whatever a resolver says.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// Scheme, host and port, in lower case and with the port left out where it is the scheme's.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.is_https() { "https" } else { "http" };
        let host = self.uri.host().unwrap_or_default().to_ascii_lowercase();
        match self.uri.port_u16() {
            Some(port) if port != if self.is_https() { 443 } else { 80 } => {
                format!("{scheme}://{host}:{port}")
            }
            _ => format!("{scheme}://{host}"),
        }
    }

    /// Whether both have one origin (RFC 6454 §5).
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.origin() == other.origin()
    }

    /// At least `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Scheme, host and port as spelled, then `path`.
    pub(crate) fn with_path(&self, path: &str) -> Result<Self, UrlFault> {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        Self::parse(&format!("{scheme}://{authority}{path}"))
    }

    /// With parameters added to its query.
    pub(crate) fn with_query(&self, parameters: &str) -> String {
        match self.query() {
            None => format!("{}?{parameters}", self.text),
            Some("") => format!("{}{parameters}", self.text),
            Some(_) => format!("{}&{parameters}", self.text),
        }
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted_url(&self.text))
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointUrl({self})")
    }
}

/// `localhost`, names below it (RFC 6761 §6.3), and loopback addresses.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = bare(host).trim_end_matches('.').to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// A host without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_only() {
        for url in [
            "https://as.example",
            "https://as.example:8443/t?x=1",
            "HTTPS://AS.example/",
            "http://localhost:1/token",
            "http://127.0.0.1/token",
            "http://[::1]:9/token",
            "http://[::ffff:127.0.0.1]/token",
        ] {
            assert!(EndpointUrl::parse(url).is_ok(), "{url}");
        }
        let table = [
            ("http://as.example/token", UrlFault::Plain),
            ("http://10.0.0.1/token", UrlFault::Plain),
            ("http://localhost.example/", UrlFault::Plain),
            ("ftp://as.example/", UrlFault::Scheme),
            ("javascript://as.example/%0aalert(1)", UrlFault::Scheme),
            ("file:///etc/passwd", UrlFault::NotAbsolute),
            ("javascript:alert(1)", UrlFault::Scheme),
            ("/token", UrlFault::NotAbsolute),
            ("", UrlFault::NotAbsolute),
            ("https://u:p@as.example/", UrlFault::UserInformation),
            ("https://as.example/#top", UrlFault::Fragment),
            ("https://as.example\\@evil.example/", UrlFault::Characters),
            ("https://as.example/\u{e4}", UrlFault::Characters),
            ("https://as.example/ x", UrlFault::Characters),
        ];
        for (url, fault) in table {
            assert_eq!(EndpointUrl::parse(url).unwrap_err(), fault, "{url}");
        }
        let long = format!("https://as.example/{}", "a".repeat(LONGEST));
        assert!(matches!(EndpointUrl::parse(&long), Err(UrlFault::TooLong { .. })));
    }

    #[test]
    fn an_origin_has_no_default_port_and_no_capitals() {
        let origin = |url: &str| EndpointUrl::parse(url).unwrap().origin();
        assert_eq!(origin("HTTPS://AS.Example:443/x"), "https://as.example");
        assert_eq!(origin("https://as.example:444"), "https://as.example:444");
        assert_eq!(origin("http://[::1]:80/"), "http://[::1]");
    }

    #[test]
    fn a_query_is_not_shown() {
        let url = EndpointUrl::parse("https://as.example/a?key=s3cr3t").unwrap();
        assert!(!format!("{url} {url:?}").contains("s3cr3t"));
        assert_eq!(url.with_query("b=1"), "https://as.example/a?key=s3cr3t&b=1");
    }
}
