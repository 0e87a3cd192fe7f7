//! Why a launch was refused. Nothing of the command has run when one of these is returned.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense: no command, a relative directory.
    Invalid,
    /// The policy asks for something that cannot be enforced here.
    Unenforceable,
    /// The kernel, the container or the architecture lacks what the sandbox needs.
    Unsupported,
    /// A step failed that should have worked.
    Setup,
    /// A rule was applied, and looking at it afterwards showed something else.
    SelfCheck,
}

/// A refused launch: the sandbox was not built, and the command was not started.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct LaunchError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    #[source]
    source: Option<io::Error>,
}

/// A refusal as it crosses from the sandbox's first process to the launcher, and as a report shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errno: Option<i32>,
}

impl LaunchError {
    /// What kind of refusal it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What a person can do about it, where something can be done.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A refusal of a caller's own, to be reported like one of a launch: a state that cannot be parsed, for example.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    pub(crate) fn unenforceable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unenforceable, message)
    }

    /// A step that failed: "mount /proc: permission denied".
    pub(crate) fn step(what: &str, source: impl Into<io::Error>) -> Self {
        Self::with_source(ErrorKind::Setup, what.to_owned(), source.into())
    }

    /// A step that failed on a path.
    pub(crate) fn at(what: &str, path: &Path, source: impl Into<io::Error>) -> Self {
        let message = format!("{what} {}", path.display());
        Self::with_source(ErrorKind::Setup, message, source.into())
    }

    pub(crate) fn with_source(kind: ErrorKind, message: String, source: io::Error) -> Self {
        Self { kind, message, hint: None, source: Some(source) }
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn to_refusal(&self) -> Refusal {
        Refusal {
            kind: self.kind,
            message: self.message.clone(),
            hint: self.hint.clone(),
            errno: self.source.as_ref().and_then(io::Error::raw_os_error),
        }
    }

    pub(crate) fn from_refusal(refusal: Refusal) -> Self {
        Self {
            kind: refusal.kind,
            message: refusal.message,
            hint: refusal.hint,
            source: refusal.errno.map(io::Error::from_raw_os_error),
        }
    }
}

/// A path that could not be looked at while the policy was being resolved.
pub(crate) fn unreadable(path: PathBuf, source: io::Error) -> LaunchError {
    LaunchError::at("look at", &path, source)
}
