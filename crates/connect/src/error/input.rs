//! What can go wrong when a server asks something in return.

use thiserror::Error;

use super::ErrorKind;

/// Why a call that needed input has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputFault {
    /// The server asks for something that was not offered to it.
    #[error("the server asks a question that nobody answers: {what}")]
    NotOffered {
        /// For example "`roots/list` was not offered".
        what: String,
    },
    /// The server's question is not of the protocol's shape.
    #[error("the server's question `{key}` cannot be answered: {reason}")]
    BadRequest {
        /// The server's key of the question.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server wants to be asked again and says neither what for nor where it was.
    #[error("the server asks for input and names none")]
    Nothing,
    /// Too many questions in one answer.
    #[error("the server asks {count} questions at once, more than {limit} (`max_questions`)")]
    TooMany {
        /// How many.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The server never has enough.
    #[error("the server asked again after {limit} rounds of answers (`max_input_rounds`)")]
    TooManyRounds {
        /// `max_input_rounds`.
        limit: u32,
    },
    /// The handler's answer does not fit the question; it was not sent.
    #[error("the answer to the server's question `{key}` does not fit: {reason}")]
    BadAnswer {
        /// The server's key of the question.
        key: String,
        /// What does not fit.
        reason: String,
    },
    /// The handler has no answer.
    #[error("the server's question `{key}` was not answered: {reason}")]
    Unanswered {
        /// The server's key of the question.
        key: String,
        /// The handler's reason.
        reason: String,
    },
    /// The call needs a person to open a URL first, who did not agree.
    #[error("the call needs a URL to be opened first, and nobody agreed to that")]
    UrlDeclined,
}

impl InputFault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::BadAnswer { .. } => ErrorKind::Usage,
            Self::Unanswered { .. } | Self::UrlDeclined => ErrorKind::Refused,
            _ => ErrorKind::Protocol,
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::NotOffered { .. } => Some(ask_hint()),
            Self::BadRequest { .. } | Self::Nothing => {
                Some("the server breaks the protocol: update it, or tell its author".to_owned())
            }
            Self::TooMany { .. } => Some("raise `max_questions`".to_owned()),
            Self::TooManyRounds { .. } => Some("raise `max_input_rounds`".to_owned()),
            _ => None,
        }
    }
}

/// For a server that has to ask a person, where none can be asked.
pub(super) fn ask_hint() -> String {
    "the server has to ask a person: call it from a terminal, or give the answers with `--input`"
        .to_owned()
}
