//! What a person sees when something fails: one sentence, a hint, and the exit code. The one mapping there is.

use std::process::ExitCode;

use plenipo_connect::{ConnectError, ErrorKind};
use plenipo_oauth::Scopes;

use crate::terminal;

pub(crate) use plenipo_connect::text::with_sources;

/// Exit codes of `plenipo`; the text of `--help` lists them for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    ToolError = 1,
    Usage = 2,
    Transport = 3,
    Protocol = 4,
    SignIn = 5,
    Refused = 6,
    Timeout = 124,
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        // The discriminants above are the exit codes.
        Self::from(code as u8)
    }
}

impl Code {
    /// Of a kind of failure.
    pub(crate) fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Protocol => Self::Protocol,
            ErrorKind::SignIn => Self::SignIn,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Cancelled => Self::Interrupted,
            _ => Self::Transport,
        }
    }
}

/// Lines of a server's last words that are shown; `-v` shows all of them as they come.
const DETAILS: usize = 20;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
    /// Shown below the message: what a server last wrote.
    details: Vec<String>,
    /// What a sign-in that mends it has to ask for, where the server said so.
    scopes: Option<Scopes>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: Vec::new(), scopes: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn with_optional_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }

    /// With what could not be done before the reason.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says it on stderr.
    pub(crate) fn report(self) -> ExitCode {
        let paint = terminal::stderr();
        let earlier = self.details.len().saturating_sub(DETAILS);
        if earlier > 0 {
            terminal::tell(&paint.dim(&format!("  | {earlier} earlier lines: see them with -v")));
        }
        for line in self.details.iter().skip(earlier) {
            terminal::tell(&format!("  {} {line}", paint.dim("|")));
        }
        terminal::tell(&format!("{} {}", paint.red("error:"), self.message));
        if let Some(hint) = self.hint {
            terminal::tell(&format!("{} {hint}", paint.bold("hint:")));
        }
        self.code.into()
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = Code::of(error.kind());
        let details = error.stderr_tail().to_vec();
        let scopes = error.wanted_scopes().cloned();
        let message = format!("failed to {}", with_sources(&error));
        Self { code, message, hint: error.hint(), details, scopes }
    }
}

impl From<plenipo_config::ConfigError> for Failure {
    fn from(error: plenipo_config::ConfigError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::usage(format!("failed to {error}")).with_optional_hint(hint)
    }
}

impl From<plenipo_policy::ConfigError> for Failure {
    fn from(error: plenipo_policy::ConfigError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::usage(error.to_string()).with_optional_hint(hint)
    }
}
