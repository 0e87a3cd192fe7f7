//! Why the server ended other than by the end of its input.

use std::io;

use plenipo_authority::Refusal;

/// Why the server did not start or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An operator's variable cannot be given to commands.
    #[error("use the additional environment of server `workspace`")]
    Additions {
        /// Which, and why.
        source: Refusal,
    },
    /// A signal handler could not be installed.
    #[error("watch for termination signals")]
    Signals {
        /// What the system said.
        source: io::Error,
    },
    /// Requests cannot be read.
    #[error("read requests of the host")]
    Read {
        /// What the system said.
        source: io::Error,
    },
    /// Answers cannot be written: the host is gone.
    #[error("write answers to the host")]
    Write {
        /// What the system said.
        source: io::Error,
    },
}

/// The family of a [`ServeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeErrorKind {
    /// The operator's options are wrong.
    Config,
    /// The system did not do what was asked of it.
    System,
    /// The connection to the host broke.
    Transport,
}

impl ServeError {
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ServeErrorKind {
        match self {
            Self::Additions { .. } => ServeErrorKind::Config,
            Self::Signals { .. } => ServeErrorKind::System,
            Self::Read { .. } | Self::Write { .. } => ServeErrorKind::Transport,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Additions { source } => source.hint(),
            _ => None,
        }
    }
}
