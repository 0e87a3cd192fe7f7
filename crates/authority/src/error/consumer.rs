//! What can be wrong on the side of a server.

use super::{ErrorKind, JsonKind, LauncherFault, StateError, shown};

/// Why the authority that came with a call cannot be used. Nothing may run for this call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallAuthorityError {
    /// `_meta` is of another type.
    #[error("`_meta` must be an object, found {found}")]
    NotAnObject {
        /// What it is.
        found: JsonKind,
    },
    /// `_meta` is not valid JSON.
    #[error("`_meta` is not valid JSON")]
    NotJson {
        /// Where and why.
        source: serde_json::Error,
    },
    /// A sandbox key occurs more than once.
    #[error("`{key}` occurs more than once in `_meta`")]
    Duplicated {
        /// The key.
        key: &'static str,
    },
    /// The two names of the state carry different ones.
    #[error("`codex/sandbox-state` and `codex/sandbox-state-meta` differ")]
    Differ,
    /// A state is none.
    #[error("`{key}` is unusable")]
    State {
        /// The key.
        key: &'static str,
        /// Why.
        source: StateError,
    },
    /// A parsed number may not be the one that was sent.
    #[error("`{key}` holds the number {number}, which may have been rounded when it was parsed")]
    InexactNumber {
        /// The key.
        key: &'static str,
        /// The number as parsed.
        number: String,
    },
    /// A parsed value is nested too deeply to be written again.
    #[error("`{key}` is nested more than {maximum} levels deep")]
    TooDeep {
        /// The key.
        key: &'static str,
        /// The limit.
        maximum: usize,
    },
    /// The launcher value is of another type.
    #[error("`codex/sandbox-launcher` must be an object, found {found}")]
    LauncherNotAnObject {
        /// What it is.
        found: JsonKind,
    },
    /// The launcher value has no path.
    #[error("`codex/sandbox-launcher` has no `codexExecutable`")]
    LauncherMissing,
    /// The launcher value has its path twice.
    #[error("`codex/sandbox-launcher` has more than one `codexExecutable`")]
    LauncherDuplicated,
    /// The launcher value has a member that the contract does not know.
    #[error("`codex/sandbox-launcher` has the unknown member `{}`", shown(member))]
    LauncherMember {
        /// Its key, unescaped.
        member: String,
    },
    /// The path is not a string of Unicode text.
    #[error("`codexExecutable` must be a string of Unicode text, found {found}")]
    LauncherNotText {
        /// What it is.
        found: JsonKind,
    },
    /// The path cannot be one of a launcher.
    #[error("`codexExecutable` is unusable")]
    LauncherPath {
        /// Why.
        source: LauncherFault,
    },
}

impl CallAuthorityError {
    /// Whose fault it is: the host's, except for what the server's SDK lost.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InexactNumber { .. } | Self::TooDeep { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::PeerMisbehaved,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InexactNumber { .. } | Self::TooDeep { .. } => {
                Some("read `_meta` from its original text: `CallAuthority::from_meta`")
            }
            _ => None,
        }
    }
}

/// Why a command is not run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Neither state nor launcher.
    #[error("the call came without a sandbox state and without a launcher")]
    NoAuthority,
    /// A launcher, but no state.
    #[error("the call came with a launcher but without a sandbox state")]
    NoState,
    /// A state, but no launcher.
    #[error("the call came with a sandbox state but without a launcher")]
    NoLauncher,
    /// The state does not fit into one argument.
    #[error("sandbox state is {bytes} bytes long, one argument of a program takes {maximum}")]
    StateTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        maximum: usize,
    },
    /// No program.
    #[error("the command is empty")]
    EmptyCommand,
    /// An argument holds a NUL.
    #[error("argument {index} of the command holds a NUL")]
    ArgumentNul {
        /// Which; 0 is the program.
        index: usize,
    },
    /// An argument is too long.
    #[error("argument {index} of the command is {bytes} bytes long, a program takes {maximum}")]
    ArgumentTooLong {
        /// Which; 0 is the program.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The limit.
        maximum: usize,
    },
    /// A variable that decides what a policy means or where configuration is found.
    #[error("environment variable `{name}` may not be set for a sandboxed command")]
    EnvironmentName {
        /// The name.
        name: String,
    },
    /// A name or value that no environment can hold.
    #[error("environment variable {name:?} has a name or value that cannot be passed on")]
    EnvironmentEntry {
        /// The name.
        name: String,
    },
}

impl Refusal {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EnvironmentName { .. } | Self::EnvironmentEntry { .. } => ErrorKind::Config,
            Self::EmptyCommand | Self::ArgumentNul { .. } | Self::ArgumentTooLong { .. } => {
                ErrorKind::Config
            }
            _ => ErrorKind::Denied,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoAuthority | Self::NoLauncher => Some(
                "call through a host that sends `codex/sandbox-launcher`, or let the server's \
                 operator allow unsandboxed commands in its own configuration",
            ),
            Self::NoState => Some("the host must send `codex/sandbox-state` with the launcher"),
            Self::StateTooLong { .. } => Some("shorten the permission profile"),
            Self::ArgumentTooLong { .. } => Some("pass long input in a file or on stdin"),
            Self::EnvironmentName { .. } => {
                Some("HOME, TMPDIR, XDG_* and PLENIPO_* decide what a policy means; remove it")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_key_cannot_write_to_the_terminal_or_fill_it() {
        let member = format!("\u{1b}[2J\n{}", "x".repeat(1000));
        let message = CallAuthorityError::LauncherMember { member }.to_string();
        assert!(message.contains("\\u{1b}[2J\\n"), "{message}");
        assert!(message.len() < 200 && message.ends_with("…`"), "{message}");
    }
}
