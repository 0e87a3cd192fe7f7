//! The reasons of a failure over HTTP.

use std::path::PathBuf;

use plenipo_authorizer::{AuthorizeError, ErrorKind};
use plenipo_http::ClientFault;
pub use plenipo_http::HttpCause;
use thiserror::Error;

/// Why something failed over HTTP. No text holds a configured header's value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpFault {
    /// The URL cannot be used.
    #[error("its url {reason}")]
    Url {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A header cannot be sent.
    #[error("its header `{name}` {reason}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The program that makes headers failed.
    #[error("its headers helper {reason}")]
    HeadersHelper {
        /// What it did, without its output.
        reason: String,
    },
    /// A file of certificates cannot be read.
    #[error("the certificates in `{}` cannot be read", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: HttpCause,
    },
    /// No connection could be made.
    #[error("{origin} cannot be reached")]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// Name look-up, refusal, TLS.
        #[source]
        source: HttpCause,
    },
    /// The connection ended before the answer came.
    #[error("the HTTP connection broke before the answer was complete")]
    Broken(#[source] HttpCause),
    /// 401 or 403: credentials are missing, expired or not enough.
    #[error("{}", sign_in(*status))]
    SignInNeeded {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header, as sent but for our own credentials (RFC 9110 §11.6.1).
        challenge: Option<String>,
    },
    /// There are no credentials to send.
    #[error(transparent)]
    NotAuthorized(#[from] AuthorizeError),
    /// The session was lost again right after it was made anew.
    #[error("the server does not keep its session")]
    SessionLost,
    /// The session ended, and the server does not begin another.
    #[error("the server ended its session and begins no other: {why}")]
    SessionRefused {
        /// What it says to `initialize`, fit to show.
        why: String,
    },
    /// The URL is one of the transport before Streamable HTTP.
    #[error(
        "the server speaks the HTTP+SSE transport of revision 2024-11-05, which is not supported"
    )]
    OldTransport,
    /// The stream that should carry the answer ended without it.
    #[error("the event stream ended without the answer")]
    StreamEnded,
    /// 202 or 204 to a request, which wants an answer.
    #[error("the server accepted the request ({status}) and sent no answer")]
    NoContent {
        /// The status.
        status: u16,
    },
    /// Another status that is no success, without a JSON-RPC error.
    #[error("the server answered {status}{}", with(preview))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, fit to show; may be empty.
        preview: String,
    },
    /// The answer is of another media type.
    #[error("the answer is neither JSON nor an event stream but `{found}`{}", with(preview))]
    ContentType {
        /// The media type.
        found: String,
        /// The beginning of the body, fit to show; may be empty.
        preview: String,
    },
    /// The body is not JSON-RPC.
    #[error("the answer is no message{}", with(preview))]
    NotMessage {
        /// The beginning of the body, fit to show; may be empty.
        preview: String,
    },
    /// A body with a content coding that was not asked for.
    #[error("the answer is encoded as `{found}`, which was not asked for")]
    Encoding {
        /// The coding.
        found: String,
    },
    /// A redirection that is not followed.
    #[error("the server redirects to {to}, {reason}")]
    Redirect {
        /// Where to, without credentials.
        to: String,
        /// Why that is not followed.
        reason: &'static str,
    },
    /// The body or event is over the bound.
    #[error("the answer is longer than {limit} bytes (`max_message_bytes`)")]
    TooLong {
        /// The bound.
        limit: usize,
    },
}

/// Why a request that is sent on and on is given up.
pub(crate) const REDIRECTED_TOO_OFTEN: &str = "after 5 other redirections";

fn is_http(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

impl HttpFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Url { .. } | Self::Header { .. } | Self::HeadersHelper { .. } => ErrorKind::Start,
            Self::SignInNeeded { .. } => ErrorKind::SignIn,
            Self::NotAuthorized(error) => error.kind(),
            Self::NoContent { .. }
            | Self::OldTransport
            | Self::ContentType { .. }
            | Self::NotMessage { .. }
            | Self::Encoding { .. }
            | Self::TooLong { .. } => ErrorKind::Protocol,
            _ => ErrorKind::Transport,
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Url { .. } => "give an absolute http or https URL as `url`".to_owned(),
            Self::Unreachable { .. } => {
                "check the `url`, that the server runs, and the proxy variables".to_owned()
            }
            Self::Roots { .. } => "give a PEM file, or unset the variable".to_owned(),
            Self::SignInNeeded { status: 401, .. } => {
                "set `bearer_token_env_var` or a header for this server".to_owned()
            }
            Self::SignInNeeded { .. } => "the credentials do not allow this".to_owned(),
            Self::NotAuthorized(error) => return error.hint(),
            // What is no URL for us, and what leads round in a circle, helps nobody as `url`.
            Self::Redirect { to, reason } if *reason != REDIRECTED_TOO_OFTEN && is_http(to) => {
                format!("if you trust it, set `url` to {to}")
            }
            Self::ContentType { .. } => {
                "check that the `url` is the MCP endpoint, not a web page".to_owned()
            }
            Self::Status { status: 404 | 405, .. } => {
                "check the path in `url`: the MCP endpoint often ends in /mcp".to_owned()
            }
            Self::OldTransport => {
                "update the server; many offer Streamable HTTP at another path, often /mcp"
                    .to_owned()
            }
            Self::Status { preview, .. } if preview.ends_with("`max_error_bytes`)") => {
                "raise `max_error_bytes`".to_owned()
            }
            Self::TooLong { .. } => "raise `max_message_bytes` or `--max-message-size`".to_owned(),
            _ => return None,
        })
    }

    /// Whether a server that answers `server/discover` so may still be a legacy one.
    pub(crate) fn may_be_legacy(&self) -> bool {
        match self {
            Self::Status { status, .. } => !is_transient(*status) && *status != 407,
            Self::SignInNeeded { status, challenge } => *status == 403 && challenge.is_none(),
            Self::Broken(_)
            | Self::StreamEnded
            | Self::NoContent { .. }
            | Self::ContentType { .. }
            | Self::NotMessage { .. } => true,
            _ => false,
        }
    }

    /// Whether a second attempt may go better.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Status { status, .. } if is_transient(*status))
    }
}

impl From<ClientFault> for HttpFault {
    fn from(fault: ClientFault) -> Self {
        match fault {
            ClientFault::Url { reason } => Self::Url { reason },
            ClientFault::Roots { path, source } => Self::Roots { path, source },
            ClientFault::Unreachable { origin, source } => Self::Unreachable { origin, source },
            ClientFault::Broken(source) => Self::Broken(source),
            ClientFault::TooLong { limit } => Self::TooLong { limit },
            other => Self::Broken(Box::new(other)),
        }
    }
}

fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 502 | 503 | 504)
}

fn sign_in(status: u16) -> &'static str {
    match status {
        401 => "sign-in is needed (401 Unauthorized)",
        _ => "access is refused (403 Forbidden)",
    }
}

fn with(preview: &str) -> String {
    if preview.is_empty() { String::new() } else { format!(": {preview}") }
}
