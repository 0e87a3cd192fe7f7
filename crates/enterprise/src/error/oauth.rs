//! From what an OAuth flow says to what may be said on: classes and known codes, never a peer's text.

use std::fmt;

use plenipo_oauth::error::{Document, DocumentFault};
use plenipo_oauth::{Issuer, OAuthError, TransportFault};

use super::{EnterpriseError, Party};
use crate::identity::Source;

/// An OAuth error code that is known (RFC 6749 §5.2, RFC 8693 §2.2.2, RFC 9470 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KnownCode {
    /// `invalid_request`
    InvalidRequest,
    /// `invalid_client`
    InvalidClient,
    /// `invalid_grant`
    InvalidGrant,
    /// `invalid_scope`
    InvalidScope,
    /// `invalid_target`
    InvalidTarget,
    /// `unauthorized_client`
    UnauthorizedClient,
    /// `unsupported_grant_type`
    UnsupportedGrantType,
    /// `access_denied`
    AccessDenied,
    /// `temporarily_unavailable`
    TemporarilyUnavailable,
    /// `server_error`
    ServerError,
    /// `insufficient_user_authentication`
    InsufficientUserAuthentication,
    /// Any other, which is not repeated.
    Other,
}

impl KnownCode {
    const KNOWN: [Self; 11] = [
        Self::InvalidRequest,
        Self::InvalidClient,
        Self::InvalidGrant,
        Self::InvalidScope,
        Self::InvalidTarget,
        Self::UnauthorizedClient,
        Self::UnsupportedGrantType,
        Self::AccessDenied,
        Self::TemporarilyUnavailable,
        Self::ServerError,
        Self::InsufficientUserAuthentication,
    ];

    /// As on the wire; empty for [`KnownCode::Other`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::AccessDenied => "access_denied",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
            Self::InsufficientUserAuthentication => "insufficient_user_authentication",
            Self::Other => "",
        }
    }

    /// Of a peer's text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|code| code.as_str() == text);
        known.unwrap_or(Self::Other)
    }
}

impl fmt::Display for KnownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("an unknown error code"),
            known => write!(f, "`{}`", known.as_str()),
        }
    }
}

impl EnterpriseError {
    /// What a flow at `party` failed with, asked with an identity of `source`.
    #[must_use]
    pub fn of_oauth(error: &OAuthError, party: Party, source: Source) -> Self {
        match error {
            OAuthError::Refused { code, .. } => {
                Self::Refused { party, whose: source, code: KnownCode::of(code) }
            }
            OAuthError::Callback { .. } => match error.code() {
                Some(code) => Self::Refused { party, whose: source, code: KnownCode::of(code) },
                None => Self::answer(party, "the browser came back with something else"),
            },
            OAuthError::Unreachable { source: TransportFault::TimedOut, .. } => {
                Self::TimedOut { party }
            }
            OAuthError::Unreachable { source: TransportFault::TooLarge { .. }, .. } => {
                Self::answer(party, "it is too long")
            }
            OAuthError::Unreachable { .. } => Self::Unreachable { party },
            OAuthError::Document { .. } if error.kind() == plenipo_oauth::ErrorKind::Transient => {
                Self::Unreachable { party }
            }
            OAuthError::IssuerMismatch { expected, found, .. } => mismatch(party, expected, found),
            OAuthError::IssuerNotListed { configured, .. } => mismatch(party, configured, ""),
            OAuthError::Assertion { what, fault } => Self::Assertion { what, fault: fault.clone() },
            OAuthError::Key { .. } => Self::Config("a signing key cannot be used"),
            OAuthError::ClientAuthentication { .. } => Self::Config(match party {
                Party::IdentityProvider => {
                    "the identity provider wants another client authentication than is configured"
                }
                _ => {
                    "the server's authorization server wants another client authentication than is configured"
                }
            }),
            OAuthError::Document { document, url, fault } => {
                let is_configured =
                    party == Party::IdentityProvider && *document == Document::AuthorizationServer;
                let url = is_configured.then_some(url.as_str());
                Self::metadata(party, unusable(*document, url, fault))
            }
            other => Self::metadata(party, fault(other)),
        }
    }
}

fn mismatch(party: Party, configured: &str, found: &str) -> EnterpriseError {
    match Issuer::parse(configured) {
        Ok(configured) => {
            let slash = configured.differs_by_slash(found);
            EnterpriseError::Issuer { party, configured: configured.to_string(), slash }
        }
        Err(_) => EnterpriseError::metadata(party, "it is of another issuer"),
    }
}

/// What is wrong with a document; with its `url` where that is the configuration's and no peer's text.
fn unusable(document: Document, url: Option<&str>, fault: &DocumentFault) -> String {
    let place = url.map(|url| format!(" at {url}")).unwrap_or_default();
    let what = match fault {
        DocumentFault::Html => "is a web page, expected JSON".to_owned(),
        DocumentFault::NotJson | DocumentFault::NotObject | DocumentFault::Status { .. } => {
            fault.to_string()
        }
        DocumentFault::Missing { name } => format!("lacks the member `{name}`"),
        DocumentFault::Type { name, .. }
        | DocumentFault::Entry { name, .. }
        | DocumentFault::Address { name, .. }
        | DocumentFault::Value { name, .. } => format!("has a member `{name}` that cannot be used"),
        _ => "is malformed".to_owned(),
    };
    format!("the {document}{place} {what}")
}

fn fault(error: &OAuthError) -> &'static str {
    match error {
        OAuthError::Redirect { .. } => "it redirects, which is not followed",
        OAuthError::ResourceMismatch { .. } => "it is about another resource",
        OAuthError::Missing { .. } => "something that is needed is not published",
        OAuthError::NoPkce { .. } => "it does not say that it supports PKCE with `S256`",
        OAuthError::Url { .. } | OAuthError::Challenge { .. } => {
            "it names a URL that may not be used"
        }
        OAuthError::Scopes { .. } => "it has scopes that are none",
        _ => "it does not follow the protocol",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_named_and_only_the_configured_issuers_address_shown() {
        let said = |document, party| {
            let fault = DocumentFault::Html;
            let url = "https://idp.example/.well-known/openid-configuration".to_owned();
            let error = OAuthError::Document { document, url, fault };
            EnterpriseError::of_oauth(&error, party, Source::Enterprise).to_string()
        };
        assert_eq!(
            said(Document::AuthorizationServer, Party::IdentityProvider),
            "the metadata of the identity provider cannot be used: the authorization server metadata at \
             https://idp.example/.well-known/openid-configuration is a web page, expected JSON"
        );
        for (document, party) in [
            (Document::Token, Party::IdentityProvider),
            (Document::AuthorizationServer, Party::ResourceAuthorization),
        ] {
            let text = said(document, party);
            assert!(text.contains("is a web page") && !text.contains("https://"), "{text}");
        }
    }
}
