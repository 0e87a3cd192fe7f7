//! Documents of peers, and what can be wrong with them.

use std::fmt;

use super::{ErrorKind, UrlFault};

/// What a request is for, and what its answer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Document {
    /// RFC 9728.
    ProtectedResource,
    /// RFC 8414 or OpenID Connect Discovery.
    AuthorizationServer,
    /// RFC 7591.
    Registration,
    /// RFC 6749 §5.
    Token,
    /// RFC 8628 §3.2.
    DeviceAuthorization,
    /// RFC 7009.
    Revocation,
    /// A JWK set (RFC 7517 §5).
    Keys,
}

impl Document {
    /// What was asked for: reads after "refused the ".
    #[must_use]
    pub(crate) fn request(self) -> &'static str {
        match self {
            Self::ProtectedResource => "request for protected resource metadata",
            Self::AuthorizationServer => "request for authorization server metadata",
            Self::Registration => "registration",
            Self::Token => "token request",
            Self::DeviceAuthorization => "device authorization request",
            Self::Revocation => "revocation",
            Self::Keys => "request for signing keys",
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProtectedResource => "protected resource metadata",
            Self::AuthorizationServer => "authorization server metadata",
            Self::Registration => "registration response",
            Self::Token => "token response",
            Self::DeviceAuthorization => "device authorization response",
            Self::Revocation => "revocation response",
            Self::Keys => "set of signing keys",
        })
    }
}

/// What a member should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// A string.
    Text,
    /// An array of strings.
    Texts,
    /// `true` or `false`.
    Boolean,
    /// Seconds, as a number or a string of digits.
    Seconds,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a string",
            Self::Texts => "an array of strings",
            Self::Boolean => "a boolean",
            Self::Seconds => "a number of seconds",
        })
    }
}

/// Why a document cannot be used. Reads after "the DOCUMENT at URL ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentFault {
    /// A web page: something else is at this address.
    #[error("is a web page, expected JSON")]
    Html,
    /// Not JSON.
    #[error("is not JSON")]
    NotJson,
    /// JSON, but no object.
    #[error("is JSON, but no object")]
    NotObject,
    /// Two members of one name: which of them counts is anybody's guess.
    #[error("has the member `{name}` twice")]
    Duplicate {
        /// The member, fit to show.
        name: String,
    },
    /// A member that has to be there.
    #[error("lacks the member `{name}`")]
    Missing {
        /// The member.
        name: &'static str,
    },
    /// A member of another type.
    #[error("has a member `{name}` that is {found}, expected {expected}")]
    Type {
        /// The member.
        name: &'static str,
        /// What it should be.
        expected: Expected,
        /// What it is.
        found: &'static str,
    },
    /// A member with an address that cannot be used.
    #[error("names `{url}` as `{name}`, which {fault}")]
    Address {
        /// The member.
        name: &'static str,
        /// Fit to show.
        url: String,
        /// What is wrong with it.
        fault: UrlFault,
    },
    /// An entry of another type in a list of strings.
    #[error("has {found} in its member `{name}`, expected strings only")]
    Entry {
        /// The member.
        name: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A member with a value that cannot be used.
    #[error("has a member `{name}` that {reason}")]
    Value {
        /// The member.
        name: &'static str,
        /// Reads after "that ".
        reason: String,
    },
    /// A status that is neither success nor an OAuth error.
    #[error("came with status {status}")]
    Status {
        /// The HTTP status.
        status: u16,
    },
}

impl DocumentFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Status { status: 408 | 425 | 429 | 500.. } => ErrorKind::Transient,
            _ => ErrorKind::PeerMisbehaved,
        }
    }
}
