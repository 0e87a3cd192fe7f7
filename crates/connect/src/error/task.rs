//! Why a task comes to nothing.

use thiserror::Error;

/// What can be wrong with a task.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TaskFault {
    /// It was cancelled, by whomever.
    #[error("it was cancelled{}", message.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    Cancelled {
        /// The server's words.
        message: Option<String>,
    },
    /// It is in a state that is not known.
    #[error("its status is `{found}`, which is not known")]
    Status {
        /// `status`.
        found: String,
    },
    /// It is completed and has no result.
    #[error("it is completed and has no result")]
    NoResult,
    /// The server answers with another task.
    #[error("the server answers with another task")]
    Another,
    /// The text is no record of a task.
    #[error("the text is no record of a task")]
    Record,
}
