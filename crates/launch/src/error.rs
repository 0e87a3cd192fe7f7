//! Why a launch was refused. Nothing of the command has run when one of these is returned.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::rung::RungAttempt;

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
    lack: Option<Lack>,
    unavailable_rungs: Vec<RungAttempt>,
}

/// What a machine lacks, where a lower rung can do without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lack {
    /// The kernel refuses a fresh `/proc`, because parts of the present one are covered.
    FreshProc,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lack: Option<Lack>,
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
        Self {
            kind,
            message: message.into(),
            hint: None,
            source: None,
            lack: None,
            unavailable_rungs: Vec::new(),
        }
    }

    /// The rungs that were tried, if the launch was refused because none of them can be had.
    pub fn unavailable_rungs(&self) -> &[RungAttempt] {
        &self.unavailable_rungs
    }

    pub(crate) fn of_rungs(message: String, unavailable_rungs: Vec<RungAttempt>) -> Self {
        Self { unavailable_rungs, ..Self::new(ErrorKind::Unsupported, message) }
    }

    /// A step that the machine does not permit: a lower rung may do without it.
    pub(crate) fn unsupported(what: &str, source: impl Into<io::Error>) -> Self {
        Self::with_source(ErrorKind::Unsupported, what.to_owned(), source.into())
    }

    /// A step that failed because the machine does not permit it is one that it lacks.
    pub(crate) fn unsupported_if_forbidden(mut self) -> Self {
        const FORBIDDEN: [i32; 2] = [libc::EPERM, libc::ENOSYS];
        let code = self.source.as_ref().and_then(io::Error::raw_os_error);
        if self.kind == ErrorKind::Setup && code.is_some_and(|code| FORBIDDEN.contains(&code)) {
            self.kind = ErrorKind::Unsupported;
        }
        self
    }

    /// The message with its cause.
    pub(crate) fn in_one_line(&self) -> String {
        match &self.source {
            Some(source) => format!("{}: {source}", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn lack(&self) -> Option<Lack> {
        self.lack
    }

    #[must_use]
    pub(crate) fn with_lack(mut self, lack: Lack) -> Self {
        self.lack = Some(lack);
        self
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
        Self { source: Some(source), ..Self::new(kind, message) }
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn to_refusal(&self) -> Refusal {
        Refusal {
            kind: self.kind,
            message: self.message.clone(),
            hint: self.hint.clone(),
            errno: self.source.as_ref().and_then(io::Error::raw_os_error),
            lack: self.lack,
        }
    }

    pub(crate) fn from_refusal(refusal: Refusal) -> Self {
        Self {
            kind: refusal.kind,
            message: refusal.message,
            hint: refusal.hint,
            source: refusal.errno.map(io::Error::from_raw_os_error),
            lack: refusal.lack,
            unavailable_rungs: Vec::new(),
        }
    }
}

/// A path that could not be looked at while the policy was being resolved.
pub(crate) fn unreadable(path: PathBuf, source: io::Error) -> LaunchError {
    LaunchError::at("look at", &path, source)
}
