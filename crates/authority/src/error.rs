//! What can go wrong, in words that fit after "failed to …".

use std::{fmt, io, path::PathBuf};

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

/// Why a path is no launcher that could be sent, or not the one that was verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherFault {
    /// The path is relative (or empty).
    #[error("launcher path {path:?} is not absolute")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The path cannot be written as JSON text.
    #[error("launcher path {path:?} is not UTF-8")]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// The path holds a NUL.
    #[error("launcher path {path:?} holds a NUL")]
    Nul {
        /// The path.
        path: PathBuf,
    },
    /// The path of a running executable that was removed or replaced.
    #[error("launcher {path:?} was removed while it runs")]
    Deleted {
        /// The path, as the kernel shows it.
        path: PathBuf,
    },
    /// A part of the path does not exist or cannot be looked at.
    #[error("launcher cannot be checked at {path:?}")]
    Unreadable {
        /// The part.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, device or the like.
    #[error("launcher {path:?} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No execute bit.
    #[error("launcher {path:?} is not executable")]
    NotExecutable {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else owns the file, or a directory or link on the way to it.
    #[error("launcher {path:?} could be replaced by user {owner}, who owns {at:?}")]
    ForeignOwner {
        /// The launcher.
        path: PathBuf,
        /// What is owned.
        at: PathBuf,
        /// The user id.
        owner: u32,
    },
    /// Group or others may write the file or a directory on the way to it.
    #[error("launcher {path:?} could be replaced by others: {at:?} has mode {mode:04o}")]
    WritableByOthers {
        /// The launcher.
        path: PathBuf,
        /// What is writable.
        at: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Too many symbolic links.
    #[error("launcher {path:?} leads through too many symbolic links")]
    TooManyLinks {
        /// The path.
        path: PathBuf,
    },
    /// The current user is unknown, so no owner can be judged.
    #[error("launcher {path:?} cannot be checked: the effective user is unknown")]
    UserUnknown {
        /// The launcher.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This system has no owners and modes to check.
    #[error("launcher {path:?} cannot be checked on this system")]
    Unsupported {
        /// The launcher.
        path: PathBuf,
    },
    /// Another file is at the path now.
    #[error("launcher {path:?} is no longer the file that was verified")]
    Changed {
        /// The path.
        path: PathBuf,
    },
}

impl LauncherFault {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UserUnknown { .. } | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::ForeignOwner { .. } | Self::WritableByOthers { .. } | Self::Changed { .. } => {
                ErrorKind::Denied
            }
            _ => ErrorKind::Config,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAbsolute { .. } => Some("write the whole path, starting with `/`"),
            Self::Deleted { .. } | Self::Changed { .. } => {
                Some("restart this program, so that the installed launcher is found again")
            }
            Self::ForeignOwner { .. } => {
                Some("install the launcher where only root or you own every directory")
            }
            Self::WritableByOthers { .. } => {
                Some("take the write permission from group and others: `chmod go-w`")
            }
            Self::NotExecutable { .. } => Some("set its execute bit: `chmod +x`"),
            _ => None,
        }
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

/// A key that somebody else wrote, for a message: control characters escaped, long ones cut.
fn shown(key: &str) -> String {
    const LONGEST: usize = 64;
    let cut = if key.chars().nth(LONGEST).is_some() { "…" } else { "" };
    let kept: String = key.chars().take(LONGEST).collect();
    format!("{}{cut}", kept.escape_debug())
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
