//! What can go wrong, in words that fit after "failed to …".

use std::fmt;

mod consumer;
mod launcher;

pub use consumer::{CallAuthorityError, Refusal};
pub use launcher::LauncherFault;

/// The family of an error, for one mapping to exit codes and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something configured or passed in by the program's own side is wrong.
    Config,
    /// Refused: running or sending it would not be under the authority of the call.
    Denied,
    /// The other side broke the contract.
    PeerMisbehaved,
    /// This system cannot say what has to be known.
    Unsupported,
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// The type of the value that valid JSON `text` holds, by its first character.
    pub(crate) fn of(text: &str) -> Self {
        match text.trim_start().bytes().next() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

impl fmt::Display for JsonKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// Why a text is no sandbox state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Longer than [`SandboxState::MAXIMUM_BYTES`](crate::SandboxState::MAXIMUM_BYTES).
    #[error("sandbox state is {bytes} bytes long, at most {maximum} are taken")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        maximum: usize,
    },
    /// Not one JSON value.
    #[error("sandbox state is not valid JSON")]
    NotJson {
        /// Where and why.
        source: serde_json::Error,
    },
    /// A JSON value of another type.
    #[error("sandbox state must be an object, found {found}")]
    NotAnObject {
        /// What it is.
        found: JsonKind,
    },
}

impl StateError {
    /// Always the author of the state.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::PeerMisbehaved
    }
}

/// A malformed sandbox capability: not counted as an opt-in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("capability `{name}` must be an object, found {found}")]
#[non_exhaustive]
pub struct CapabilityFault {
    /// The capability's name, or the object around it.
    pub name: String,
    /// What its value is.
    pub found: JsonKind,
}

/// One of the things an authority consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthorityPart {
    /// The text of the sandbox state.
    State,
    /// The execution environment.
    Environment,
    /// The launcher: its path and, on a host, its file.
    Launcher,
    /// The server's opt-in.
    OptIn,
    /// The credential pin.
    Credential,
}

impl fmt::Display for AuthorityPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::State => "sandbox state",
            Self::Environment => "environment",
            Self::Launcher => "launcher",
            Self::OptIn => "sandbox opt-in",
            Self::Credential => "credential",
        })
    }
}

/// Two authorities that had to be the same are not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorityChanged {
    /// What differs; never empty.
    pub parts: Vec<AuthorityPart>,
}

impl AuthorityChanged {
    /// An error naming every part that is marked as not the same.
    pub(crate) fn unless_same<const N: usize>(
        compared: [(AuthorityPart, bool); N],
    ) -> Result<(), Self> {
        let differing = compared.into_iter().filter(|(_, same)| !same).map(|(part, _)| part);
        let parts: Vec<_> = differing.collect();
        if parts.is_empty() { Ok(()) } else { Err(Self { parts }) }
    }

    /// Always a refusal.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Denied
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some("make a new call, which captures the authority now in force")
    }
}

impl fmt::Display for AuthorityChanged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("authority changed: ")?;
        for (index, part) in self.parts.iter().enumerate() {
            write!(formatter, "{}{part}", if index == 0 { "" } else { ", " })?;
        }
        formatter.write_str(if self.parts.len() == 1 { " differs" } else { " differ" })
    }
}

impl std::error::Error for AuthorityChanged {}

/// Why `_meta` of a call was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The caller's `_meta` is not valid JSON.
    #[error("the caller's `_meta` is not valid JSON")]
    CallerNotJson {
        /// Where and why.
        source: serde_json::Error,
    },
    /// The caller's `_meta` is of another type.
    #[error("the caller's `_meta` must be an object, found {found}")]
    CallerNotAnObject {
        /// What it is.
        found: JsonKind,
    },
    /// The caller set what only the host or the protocol may set.
    #[error("the caller's `_meta` may not set `{}`", shown(key))]
    CallerReservedKey {
        /// The key, unescaped.
        key: String,
    },
    /// The host's own entries name a sandbox key.
    #[error("`{key}` is written from the captured authority only")]
    ExtraSandboxKey {
        /// The key.
        key: String,
    },
    /// The host's own entries name a key twice.
    #[error("the host's `_meta` entry `{key}` is given twice")]
    ExtraTwice {
        /// The key.
        key: String,
    },
    /// A host entry's value is not one JSON value.
    #[error("the host's `_meta` entry `{key}` is not valid JSON")]
    ExtraNotJson {
        /// The key.
        key: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The launcher is no longer the one captured.
    #[error("authority changed: launcher differs")]
    Launcher {
        /// What became of it.
        source: LauncherFault,
    },
}

impl AttachError {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::CallerReservedKey { .. } | Self::Launcher { .. } => ErrorKind::Denied,
            _ => ErrorKind::Config,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::CallerReservedKey { .. } => {
                Some("use a key of your own, with a prefix such as `com.example/`")
            }
            Self::Launcher { source } => source.hint(),
            _ => None,
        }
    }
}

/// A key that somebody else wrote, for a message: control characters escaped, long ones cut.
fn shown(key: &str) -> String {
    const LONGEST: usize = 64;
    let cut = if key.chars().nth(LONGEST).is_some() { "…" } else { "" };
    let kept: String = key.chars().take(LONGEST).collect();
    format!("{}{cut}", kept.escape_debug())
}
