//! URLs that a server wants a person to open.
//!
//! Nothing here opens or fetches anything. What a browser would read differently from what a person
//! sees is refused: only printable ASCII without `\`, no user information, `http` and `https` only
//! (RFC 3986). So the text shown is the text opened, and its host is the one named.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use thiserror::Error;

const LONGEST: usize = 8 * 1024;

/// A URL that may be shown to a person, and opened once they agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationUrl {
    text: String,
    host: std::ops::Range<usize>,
    is_tls: bool,
}

/// Why a URL is not fit to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// Over 8 KiB.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// Something that a browser and a person may read differently.
    #[error("it has characters that no URL may have")]
    Character,
    /// Neither `http` nor `https`.
    #[error("it is neither http nor https")]
    Scheme,
    /// `https://user@host/`.
    #[error("it has a user name or password")]
    UserInformation,
    /// No host, or otherwise no URL.
    #[error("it is not an absolute URL")]
    NotAbsolute,
}

/// What a person should know before they agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlWarning {
    /// A label of the host starts with `xn--`: it stands for other letters, which may look like a
    /// well-known name.
    Punycode,
    /// Anybody on the way can read and change what is sent.
    Unencrypted,
    /// The host is a number, not a name.
    Address,
}

impl ElicitationUrl {
    /// Checks a URL.
    ///
    /// # Errors
    /// [`UrlFault`] when it is not fit to be opened.
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        if text.len() > LONGEST {
            return Err(UrlFault::TooLong);
        }
        let is_fit = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
        if !text.bytes().all(is_fit) {
            return Err(UrlFault::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| scheme_or_shape(text))?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlFault::Scheme),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(UrlFault::UserInformation);
        }
        let whole = text.split('#').next().unwrap_or_default();
        let uri: Uri = whole.parse().map_err(|_| UrlFault::NotAbsolute)?;
        let host = uri.host().filter(|host| !host.is_empty() && authority.starts_with(*host));
        let length = host.map(str::len).ok_or(UrlFault::NotAbsolute)?;
        let start = scheme.len().saturating_add("://".len());
        Ok(Self { text: text.to_owned(), host: start..start.saturating_add(length), is_tls })
    }

    /// The whole URL: what to show, and what to open.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, as it stands in the URL.
    #[must_use]
    pub fn host(&self) -> &str {
        self.text.get(self.host.clone()).unwrap_or_default()
    }

    /// What stands before the host, the host, and what stands after: for highlighting.
    #[must_use]
    pub fn parts(&self) -> (&str, &str, &str) {
        let before = self.text.get(..self.host.start).unwrap_or_default();
        let after = self.text.get(self.host.end..).unwrap_or_default();
        (before, self.host(), after)
    }

    /// What a person should know before they agree.
    #[must_use]
    pub fn warnings(&self) -> Vec<UrlWarning> {
        let host = self.host().to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>().ok();
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with(|c: char| c.is_ascii_digit());
        let is_loopback =
            host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let mut warnings = Vec::new();
        if host.split('.').any(|label| label.starts_with("xn--")) {
            warnings.push(UrlWarning::Punycode);
        }
        if !self.is_tls && !is_loopback {
            warnings.push(UrlWarning::Unencrypted);
        }
        if (address.is_some() || is_number) && !is_loopback {
            warnings.push(UrlWarning::Address);
        }
        warnings
    }
}

/// `javascript:…` has a scheme, `example.com` has none.
fn scheme_or_shape(text: &str) -> UrlFault {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    match !scheme.is_empty() && scheme.bytes().all(is_scheme) {
        true if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") => {
            UrlFault::Scheme
        }
        _ => UrlFault::NotAbsolute,
    }
}

impl fmt::Display for ElicitationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for UrlWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Punycode => {
                "the host is written in Punycode (xn--): it stands for other letters, and may only \
                 look like a name you know"
            }
            Self::Unencrypted => "the connection is not encrypted",
            Self::Address => "the host is an address, not a name",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_scheme_allowlist() {
        for (text, fault) in [
            ("javascript:alert(1)", UrlFault::Scheme),
            ("file:///etc/passwd", UrlFault::Scheme),
            ("data:text/html,x", UrlFault::Scheme),
            ("ftp://example.com/", UrlFault::Scheme),
            ("vscode://x/y", UrlFault::Scheme),
            ("-https://example.com/", UrlFault::Scheme),
            ("example.com", UrlFault::NotAbsolute),
            ("https:example.com", UrlFault::NotAbsolute),
            ("https:///x", UrlFault::NotAbsolute),
            ("https://", UrlFault::NotAbsolute),
            ("//example.com/", UrlFault::NotAbsolute),
            ("", UrlFault::NotAbsolute),
            ("https://good.example@evil.example/", UrlFault::UserInformation),
            ("https://good.example\\@evil.example/", UrlFault::Character),
            ("https://example.com/a b", UrlFault::Character),
            ("https://example.com/\n", UrlFault::Character),
            ("https://ex\u{430}mple.com/", UrlFault::Character),
            ("https://example.com/\u{202e}", UrlFault::Character),
            ("https://example.com/`id`", UrlFault::Character),
        ] {
            assert_eq!(ElicitationUrl::parse(text), Err(fault), "{text:?}");
        }
        let long = format!("https://example.com/{}", "a".repeat(LONGEST));
        assert_eq!(ElicitationUrl::parse(&long), Err(UrlFault::TooLong));
        for text in
            ["https://example.com", "HTTP://localhost:8080/x?a=$(id)&b='c'#d", "https://[::1]/"]
        {
            assert_eq!(ElicitationUrl::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_host_is_told_apart_and_warned_about() {
        let url =
            ElicitationUrl::parse("https://accounts.xn--pple-43d.com:8443/login?x#y").unwrap();
        assert_eq!(url.parts(), ("https://", "accounts.xn--pple-43d.com", ":8443/login?x#y"));
        assert_eq!(url.warnings(), [UrlWarning::Punycode]);
        let of = |text: &str| ElicitationUrl::parse(text).unwrap().warnings();
        assert_eq!(of("https://example.com/"), []);
        assert_eq!(of("http://example.com/"), [UrlWarning::Unencrypted]);
        assert_eq!(of("http://127.0.0.1:3000/"), []);
        assert_eq!(of("https://0x7f.1/"), [UrlWarning::Address]);
        assert_eq!(of("https://[2001:db8::1]/"), [UrlWarning::Address]);
    }
}
