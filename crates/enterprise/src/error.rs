//! What can go wrong, and what is done about it. No message holds a secret or a text that a peer
//! wrote: of an OAuth error only a code that is known is shown.

mod class;
mod oauth;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plenipo_credentials::StoreError;
use plenipo_oauth::error::AssertionFault;

pub use class::ErrorClass;
pub use oauth::KnownCode;

use crate::identity::Source;
use crate::select::{Condition, Unselected};

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Party {
    /// The company's identity provider.
    IdentityProvider,
    /// The authorization server that the MCP server names.
    ResourceAuthorization,
    /// The MCP server.
    Server,
}

/// Why there is no token. Clones are shared by everybody who waited for the same one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EnterpriseError {
    /// Nobody's identity can be used; nothing was sent.
    #[error("{0}")]
    Unselected(Unselected),
    /// An OAuth error response.
    #[error("{party} refused the {} identity with {code}", whose.as_str())]
    Refused {
        /// Who said so.
        party: Party,
        /// Whose grant it is about.
        whose: Source,
        /// What was said, if it is known.
        code: KnownCode,
    },
    /// The assertion was refused, and the clock of who refused it is far off.
    #[error(
        "{party} refused the {} identity with {code}, and its clock is {} s {}",
        whose.as_str(),
        ahead.unsigned_abs(),
        if *ahead < 0 { "behind" } else { "ahead" }
    )]
    Clock {
        /// Who said so.
        party: Party,
        /// Whose grant it is about.
        whose: Source,
        /// What was said.
        code: KnownCode,
        /// Seconds that its clock is ahead of the one here.
        ahead: i64,
    },
    /// Somebody is called by another name than the configured one.
    #[error("{party} is not the configured issuer `{configured}`{}", by_slash(*.slash))]
    Issuer {
        /// Whose metadata it is about.
        party: Party,
        /// As configured.
        configured: String,
        /// Only a slash at the end differs.
        slash: bool,
    },
    /// What is published cannot be used.
    #[error("the metadata of {party} cannot be used: {fault}")]
    Metadata {
        /// Whose.
        party: Party,
        /// Reads after a colon; of a peer's text it has nothing.
        fault: Cow<'static, str>,
    },
    /// A token response cannot be used.
    #[error("the answer of {party} cannot be used: {fault}")]
    Answer {
        /// Whose.
        party: Party,
        /// Reads after a colon.
        fault: &'static str,
    },
    /// The assertion or the ID token says something else than it has to.
    #[error("the {what} of the identity provider {fault}")]
    Assertion {
        /// "identity assertion" or "ID token".
        what: &'static str,
        /// Which claim, and what is wrong with it.
        fault: AssertionFault,
    },
    /// Company or configuration do not allow it.
    #[error("{0}")]
    Policy(&'static str),
    /// Somebody signed in or out, or another client or person is configured now.
    #[error("the credentials changed since the connection was made")]
    Changed,
    /// The connection was closed by a sign-out or by its host.
    #[error("the authorization of the connection was withdrawn")]
    Withdrawn,
    /// The server does not take the token.
    #[error("the server refused the token that its authorization server issued")]
    BearerRefused,
    /// A request for another URL than the server's own.
    #[error("the token is for the server's own URL only, and the request is for another")]
    Outside,
    /// No answer.
    #[error("{party} cannot be reached")]
    Unreachable {
        /// Who.
        party: Party,
    },
    /// No answer in time.
    #[error("{party} did not answer in time")]
    TimedOut {
        /// Who.
        party: Party,
    },
    /// The store of credentials failed.
    #[error("failed to use the stored credentials")]
    Store(#[source] Arc<StoreError>),
    /// A setting is wrong or missing.
    #[error("{0}")]
    Config(&'static str),
}

impl EnterpriseError {
    pub(crate) fn metadata(party: Party, fault: impl Into<Cow<'static, str>>) -> Self {
        Self::Metadata { party, fault: fault.into() }
    }

    pub(crate) fn answer(party: Party, fault: &'static str) -> Self {
        Self::Answer { party, fault }
    }

    /// What to do about it, as a sentence.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unselected(
                Unselected::Nobody { source } | Unselected::Unusable { source, .. },
            ) => {
                format!("run `{}`", source.command())
            }
            Self::Refused { whose, code, .. } if self.class().is_sign_in() => match code {
                KnownCode::InsufficientUserAuthentication => {
                    format!("run `{}` and confirm who you are once more", whose.command())
                }
                _ => format!("run `{}`", whose.command()),
            },
            Self::Store(error) => error.hint().unwrap_or_else(|| self.class().remedy().to_owned()),
            _ => self.class().remedy().to_owned(),
        }
    }
}

impl From<Unselected> for EnterpriseError {
    fn from(unselected: Unselected) -> Self {
        Self::Unselected(unselected)
    }
}

impl From<StoreError> for EnterpriseError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdentityProvider => "the identity provider",
            Self::ResourceAuthorization => "the server's authorization server",
            Self::Server => "the server",
        })
    }
}

impl fmt::Display for Unselected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody { source: Source::Enterprise } => {
                f.write_str("nobody is signed in to the company's identity provider")
            }
            Self::Nobody { .. } => f.write_str("nobody is signed in to the account"),
            Self::Unusable { source, condition: Condition::Rejected } => {
                write!(f, "the identity provider rejected the {source} sign-in before")
            }
            Self::Unusable { source, .. } => write!(f, "the {source} sign-in has expired"),
            Self::Slash { configured, kept, source } => write!(
                f,
                "the configured issuer `{configured}` and that of the {source} sign-in, `{kept}`, \
                 differ by a slash at the end"
            ),
            Self::Several { people } => {
                write!(
                    f,
                    "several people are signed in ({}), and nothing says who",
                    people.join(", ")
                )
            }
            Self::NotThere { person } => write!(f, "nobody called `{person}` is signed in"),
        }
    }
}

fn by_slash(slash: bool) -> &'static str {
    if slash { ": a slash at the end differs" } else { "" }
}
