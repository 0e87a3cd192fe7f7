//! Why a program did not start.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a program did not start. What a person can do about it depends on where it was configured: the caller tells.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartFault {
    /// No such program.
    #[error("program `{program}` was not found{}", searched_in(searched.as_deref()))]
    ProgramNotFound {
        /// As configured.
        program: String,
        /// The `PATH` that was searched; absent when the name has a slash.
        searched: Option<String>,
    },
    /// The program is there, the interpreter in its first line or its loader is not.
    #[error("program `{program}` is there, but the interpreter it names is not")]
    InterpreterMissing {
        /// Where it was found.
        program: String,
    },
    /// The working directory is missing.
    #[error("its working directory `{}` is not a directory", path.display())]
    WorkingDirectory {
        /// As configured.
        path: PathBuf,
    },
    /// The program exists and could not be started.
    #[error("program `{program}` could not be started")]
    Spawn {
        /// As configured.
        program: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

fn searched_in(path: Option<&str>) -> String {
    path.map(|path| format!(" in PATH `{path}`")).unwrap_or_default()
}
