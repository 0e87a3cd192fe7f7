//! How a process ended, in words.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// How a server's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(ExitStatus);

impl Exit {
    /// The exit code; `None` when a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.0.code()
    }

    /// The signal that ended it.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.0.signal()
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        Self(status)
    }
}

impl fmt::Display for Exit {
    /// `exited with code 42`, `was ended by signal 11 (SIGSEGV)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(signal) = self.signal() {
            write!(f, "was ended by signal {signal}")?;
            return match signal_name(signal) {
                Some(name) => write!(f, " ({name})"),
                None => Ok(()),
            };
        }
        write!(f, "exited with code {}", self.code().unwrap_or_default())
    }
}

/// Numbers below 16 that are the same on every Linux, and on macOS but for 7 and 10 to 12.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        31 if cfg!(target_os = "linux") => "SIGSYS",
        7 if cfg!(target_os = "linux") => "SIGBUS",
        _ => return None,
    })
}
