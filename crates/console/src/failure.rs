//! What a person sees when something fails: one sentence, a hint, and the exit code. The one mapping there is.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use plenipo_connect::{ConnectError, ErrorKind};
use plenipo_oauth::Scopes;
use rustix::io::Errno;

use crate::terminal;

pub use plenipo_connect::text::with_sources;

/// Exit codes of `plenipo`; the text of `--help` lists them for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever has a word for each has to have one for a new one"
)]
pub enum Code {
    /// The tool reported an error.
    ToolError = 1,
    /// Usage or configuration.
    Usage = 2,
    /// A server could not be started or was lost, or the output could not be written.
    Transport = 3,
    /// A server broke the protocol, or answered with an error or too much.
    Protocol = 4,
    /// A server wants credentials.
    SignIn = 5,
    /// Refused by trust, policy or changed authority.
    Refused = 6,
    /// A limit of time was reached.
    Timeout = 124,
    /// SIGHUP.
    HungUp = 129,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
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
    #[must_use]
    pub fn of(kind: ErrorKind) -> Self {
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
pub struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
    /// Shown below the message: what a server last wrote.
    details: Vec<String>,
    /// What a sign-in that mends it has to ask for, where the server said so.
    scopes: Option<Scopes>,
}

impl Failure {
    /// With its exit code and one sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: Vec::new(), scopes: None }
    }

    /// About what was typed, or the configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// With what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With what to do about it, if there is something.
    #[must_use]
    pub fn with_optional_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }

    /// With what could not be done before the reason.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// What the program exits with.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What a sign-in that mends it has to ask for.
    #[must_use]
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Says it on stderr.
    pub fn report(self) -> ExitCode {
        let paint = terminal::stderr();
        let earlier = self.details.len().saturating_sub(DETAILS);
        if earlier > 0 {
            terminal::tell(&paint.dim(&format!("  | {earlier} earlier lines: see them with -v")));
        }
        for line in self.details.iter().skip(earlier) {
            terminal::tell(&format!("  {} {}", paint.dim("|"), terminal::line(line)));
        }
        terminal::tell(&format!("{} {}", paint.red("error:"), terminal::line(&self.message)));
        if let Some(hint) = self.hint {
            terminal::tell(&format!("{} {}", paint.bold("hint:"), terminal::line(&hint)));
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
        let hint = shortage(&error).map(str::to_owned).or_else(|| error.hint());
        Self { code, message, hint, details, scopes }
    }
}

/// What to do when it is the system that has no more of something: nothing else would help.
#[must_use]
pub fn shortage(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(hint) = code.and_then(more) {
            return Some(hint);
        }
        cause = error.source();
    }
    None
}

fn more(code: i32) -> Option<&'static str> {
    Some(match Errno::from_raw_os_error(code) {
        Errno::MFILE => {
            "this process may open no more files: raise `ulimit -n` (a local server takes about ten)"
        }
        Errno::NFILE => "the system may open no more files: raise the sysctl `fs.file-max`",
        Errno::NOMEM => "there is not enough memory: end something, or raise `ulimit -v`",
        _ => return None,
    })
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
