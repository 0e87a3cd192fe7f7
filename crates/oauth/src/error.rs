//! What can go wrong, in words that fit after "failed to sign in to …: ".
//!
//! No message holds a token, code, verifier, assertion or secret. Peers' texts are cut, cleaned and
//! scrubbed of the secrets that were sent with the request.

mod document;
mod reason;

use std::error::Error;
use std::net::IpAddr;

pub use document::{Document, DocumentFault, Expected};
pub use reason::{AssertionFault, CallbackFault, KeyFault, Missing, ScopeFault, UrlFault};

use crate::scope::Scopes;

/// The family of an error, for decisions and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something configured or passed in is wrong, or has to be configured.
    Config,
    /// The person or a policy said no. Asking again brings nothing new.
    Denied,
    /// A peer broke the protocol, or a check for security failed.
    PeerMisbehaved,
    /// The grant is used up, expired or revoked: a new sign-in mends it.
    SignIn,
    /// Unreachable, too slow, or not able now: a later try may work.
    Transient,
    /// The peer cannot do what is needed.
    Unsupported,
}

/// A failure of an OAuth flow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A URL that OAuth may not use.
    #[error("{what} `{url}` {fault}")]
    Url {
        /// Which: a member of a document, or a setting.
        what: String,
        /// Fit to show.
        url: String,
        /// What is wrong with it.
        fault: UrlFault,
    },
    /// The server's challenge names an address that OAuth may not use (RFC 9728 §5.1).
    #[error("the server's challenge names `{url}` as `resource_metadata`, which {fault}")]
    Challenge {
        /// Fit to show.
        url: String,
        /// What is wrong with it.
        fault: UrlFault,
    },
    /// A document that cannot be used.
    #[error("the {document} at {url} {fault}")]
    Document {
        /// Which.
        document: Document,
        /// Where it was read, fit to show.
        url: String,
        /// What is wrong with it.
        fault: DocumentFault,
    },
    /// A document that could not be read.
    #[error("the {document} at {url} {}", unread(source))]
    Unreachable {
        /// Which.
        document: Document,
        /// Where, fit to show.
        url: String,
        /// Why.
        source: TransportFault,
    },
    /// A redirection that may not be followed.
    #[error("the {document} at {url} redirects to {to}, {reason}")]
    Redirect {
        /// Which.
        document: Document,
        /// From, fit to show.
        url: String,
        /// To, fit to show.
        to: String,
        /// Reads after "redirects to …, ".
        reason: &'static str,
    },
    /// An OAuth error response (RFC 6749 §5.2, RFC 7591 §3.2.2).
    #[error("{}", refused(*.document, .url, .code, .description.as_deref()))]
    Refused {
        /// Which request.
        document: Document,
        /// The endpoint, fit to show.
        url: String,
        /// `error`, fit to show.
        code: String,
        /// `error_description`, fit to show.
        description: Option<String>,
    },
    /// The resource's document is about another resource (RFC 9728 §3.3).
    #[error("the protected resource metadata is about `{found}`, not about {server}")]
    ResourceMismatch {
        /// The server's URL, fit to show.
        server: String,
        /// Its `resource`, fit to show.
        found: String,
    },
    /// The document names another issuer than the one it was read for (RFC 8414 §3.3).
    #[error("the authorization server metadata at {url} is of issuer `{found}`, not `{expected}`")]
    IssuerMismatch {
        /// Where it was read, fit to show.
        url: String,
        /// The issuer asked for.
        expected: String,
        /// Its `issuer`, fit to show.
        found: String,
    },
    /// The resource does not name the configured issuer.
    #[error(
        "the server does not accept tokens of the configured issuer `{configured}`, but of {found}"
    )]
    IssuerNotListed {
        /// The setting.
        configured: String,
        /// What the resource lists, fit to show.
        found: String,
    },
    /// What is needed has not been published anywhere.
    #[error("{missing}")]
    Missing {
        /// What.
        missing: Missing,
    },
    /// The authorization server does not say that it supports PKCE with S256 (RFC 7636).
    #[error(
        "issuer `{issuer}` does not say that it supports PKCE with `S256`, without which a code can be stolen"
    )]
    NoPkce {
        /// The issuer.
        issuer: String,
    },
    /// The authorization response cannot be accepted.
    #[error("the authorization response {fault}")]
    Callback {
        /// Why.
        fault: CallbackFault,
    },
    /// A list of scopes that is none.
    #[error("the scopes of {what} {fault}")]
    Scopes {
        /// Whose.
        what: String,
        /// Why.
        fault: ScopeFault,
    },
    /// More scopes are wanted, and asking for them once more would change nothing.
    #[error("it needs the scope `{missing}`, which was asked for and not granted")]
    StepUpExhausted {
        /// What the server wants.
        missing: Scopes,
    },
    /// A key that cannot be used.
    #[error("the signing key {fault}")]
    Key {
        /// Why.
        fault: KeyFault,
    },
    /// A JWT that cannot be accepted.
    #[error("the {what} {fault}")]
    Assertion {
        /// "ID token", "identity assertion".
        what: &'static str,
        /// Why.
        fault: AssertionFault,
    },
    /// No way to authenticate at the token endpoint suits both sides.
    #[error(
        "issuer `{issuer}` wants client authentication by {offered}, for which the client has nothing"
    )]
    ClientAuthentication {
        /// The issuer.
        issuer: String,
        /// What it supports, fit to show.
        offered: String,
    },
    /// The device code ran out before the person was done (RFC 8628 §3.5).
    #[error("the code was not entered in time")]
    DeviceCodeExpired,
}

/// Why a request brought no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportFault {
    /// The address may not be connected to.
    #[error("{host} is at {address}, {reason}")]
    Address {
        /// The host asked for.
        host: String,
        /// Where it is.
        address: IpAddr,
        /// Reads after "is at ADDRESS, ".
        reason: &'static str,
    },
    /// The body is over the limit.
    #[error("the response is over {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// No response in time.
    #[error("no response within the time limit")]
    TimedOut,
    /// Anything else.
    #[error("the connection failed")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl OAuthError {
    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Url { .. } | Self::Key { .. } | Self::IssuerNotListed { .. } => ErrorKind::Config,
            Self::Missing { missing } => missing.kind(),
            Self::Document { fault, .. } => fault.kind(),
            Self::Unreachable { source: TransportFault::Address { .. }, .. }
            | Self::Unreachable { source: TransportFault::TooLarge { .. }, .. }
            | Self::Redirect { .. }
            | Self::Challenge { .. }
            | Self::ResourceMismatch { .. }
            | Self::IssuerMismatch { .. }
            | Self::Scopes { .. }
            | Self::Assertion { .. } => ErrorKind::PeerMisbehaved,
            Self::Unreachable { .. } => ErrorKind::Transient,
            Self::Refused { document, code, .. } => kind_of(*document, code),
            Self::NoPkce { .. } | Self::ClientAuthentication { .. } => ErrorKind::Unsupported,
            Self::Callback { fault } => fault.kind(),
            Self::StepUpExhausted { .. } => ErrorKind::Denied,
            Self::DeviceCodeExpired => ErrorKind::SignIn,
        }
    }

    /// The OAuth error code, when the peer answered with one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Callback { fault: CallbackFault::Refused { code, .. } } => Some(code),
            _ => None,
        }
    }

    /// What to do about it, as a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing { missing: Missing::Client } => {
                "register a client with the authorization server and set `oauth.client_id`".to_owned()
            }
            Self::IssuerMismatch { expected, found, .. }
                if expected.trim_end_matches('/') == found.trim_end_matches('/') =>
            {
                "the two differ by a slash at the end: the server's operator has to align them".to_owned()
            }
            Self::IssuerNotListed { .. } => {
                "set `oauth.authorization_server_issuer` to one of them, exactly as it is spelled".to_owned()
            }
            Self::Refused { document: Document::Registration, code, .. }
                if code == "invalid_redirect_uri" =>
            {
                "set `oauth.callback_port` or `oauth.callback_url` to what the authorization server accepts, or register a client and set `oauth.client_id`".to_owned()
            }
            Self::Refused { document: Document::Registration, .. } => {
                "register a client with the authorization server and set `oauth.client_id`".to_owned()
            }
            Self::Refused { code, .. } if code == "invalid_client" => {
                "check `oauth.client_id` and its secret".to_owned()
            }
            Self::NoPkce { .. } => {
                "the authorization server has to publish `code_challenge_methods_supported`".to_owned()
            }
            Self::Callback { fault: CallbackFault::State } => {
                "start again, and use the newest page only".to_owned()
            }
            Self::DeviceCodeExpired => "start again".to_owned(),
            _ => return None,
        };
        Some(hint)
    }

    pub(crate) fn document(document: Document, url: impl ToString, fault: DocumentFault) -> Self {
        Self::Document { document, url: url.to_string(), fault }
    }
}

impl From<Missing> for OAuthError {
    fn from(missing: Missing) -> Self {
        Self::Missing { missing }
    }
}

impl From<CallbackFault> for OAuthError {
    fn from(fault: CallbackFault) -> Self {
        Self::Callback { fault }
    }
}

impl From<KeyFault> for OAuthError {
    fn from(fault: KeyFault) -> Self {
        Self::Key { fault }
    }
}

/// What an error code means for the one who asked (RFC 6749 §5.2, RFC 8693 §2.2.2, RFC 9470 §3).
fn kind_of(document: Document, code: &str) -> ErrorKind {
    match code {
        "invalid_grant" | "expired_token" | "insufficient_user_authentication" => ErrorKind::SignIn,
        "access_denied" | "invalid_scope" | "invalid_target" | "unauthorized_client" => {
            ErrorKind::Denied
        }
        "temporarily_unavailable" | "server_error" => ErrorKind::Transient,
        "unsupported_grant_type" | "unsupported_token_type" => ErrorKind::Unsupported,
        "invalid_client" => ErrorKind::Config,
        _ if document == Document::Registration => ErrorKind::Config,
        _ => ErrorKind::PeerMisbehaved,
    }
}

/// A document that is there and too long was reached.
fn unread(source: &TransportFault) -> &'static str {
    match source {
        TransportFault::TooLarge { .. } => "is too long",
        _ => "cannot be reached",
    }
}

fn refused(document: Document, url: &str, code: &str, description: Option<&str>) -> String {
    let what = document.request();
    match description {
        Some(description) => format!("{url} refused the {what} with `{code}`: \"{description}\""),
        None => format!("{url} refused the {what} with `{code}`"),
    }
}
