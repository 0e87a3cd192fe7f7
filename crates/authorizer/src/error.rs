//! Why there are no credentials for a request.

use std::error::Error;
use std::fmt;

use plenipo_oauth::Scopes;

/// Why there are no credentials. Reads after "failed to call …: "; names no secret.
#[derive(Debug)]
pub struct AuthorizeError {
    kind: ErrorKind,
    source: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
    scopes: Option<Scopes>,
}

/// Coarse class of an error, for exit codes and decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request or the configuration is wrong: no such tool, arguments that are no object.
    Usage,
    /// The server could not be started.
    Start,
    /// The connection broke: crash, closed pipe, a message over the limit.
    Transport,
    /// Credentials are missing, expired or not enough.
    SignIn,
    /// The peer broke the protocol or answered with an error.
    Protocol,
    /// A policy or changed authority forbids it; nothing was sent.
    Refused,
    /// A limit in time was reached.
    Timeout,
    /// The caller cancelled.
    Cancelled,
}

impl AuthorizeError {
    /// `kind` decides the exit code: usually [`ErrorKind::SignIn`], [`ErrorKind::Transport`] where
    /// an authorization server cannot be reached, [`ErrorKind::Refused`] where a policy forbids it.
    /// The text of `source` is the message.
    pub fn new(kind: ErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into(), hint: None, scopes: None }
    }

    /// What a person can do about it, as a sentence.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What a sign-in has to ask for, so that the request would be answered.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// What [`with_scopes`](Self::with_scopes) said.
    #[must_use]
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to try, as a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl fmt::Display for AuthorizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for AuthorizeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
