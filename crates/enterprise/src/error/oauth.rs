//! From what an OAuth flow says to what may be said on: classes and known codes, never a peer's text.

use std::fmt;

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

fn fault(error: &OAuthError) -> &'static str {
    match error {
        OAuthError::Redirect { .. } => "it redirects, which is not followed",
        OAuthError::Document { .. } => "a document is malformed",
        OAuthError::ResourceMismatch { .. } => "it is about another resource",
        OAuthError::Missing { .. } => "something that is needed is not published",
        OAuthError::NoPkce { .. } => "it does not say that it supports PKCE with `S256`",
        OAuthError::Url { .. } => "it names a URL that may not be used",
        OAuthError::Scopes { .. } => "it has scopes that are none",
        _ => "it does not follow the protocol",
    }
}
