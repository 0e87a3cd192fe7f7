//! Everything that can be wrong with a state, a profile or a permissions table.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a sandbox state was refused.
///
/// The message is `PATH: REASON`, or only the reason when it concerns the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateError {
    kind: StateErrorKind,
    path: String,
    reason: String,
}

impl StateError {
    pub(crate) fn new(
        kind: StateErrorKind,
        path: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self { kind, path: path.into(), reason: reason.into() }
    }

    /// Which rule was broken.
    pub fn kind(&self) -> StateErrorKind {
        self.kind
    }

    /// The member at fault, as a JSON path such as
    /// `permissionProfile.file_system.entries[2].access`; empty for the whole text.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was expected and what was found.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            formatter.write_str(&self.reason)
        } else {
            write!(formatter, "{}: {}", self.path, self.reason)
        }
    }
}

impl std::error::Error for StateError {}

/// Which rule of the state grammar was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// Not one JSON value, or something follows it.
    Malformed,
    /// An object has the same key twice.
    DuplicateKey,
    /// A required member is absent.
    MissingMember,
    /// A member has the wrong JSON type.
    WrongType,
    /// A member inside the permission profile that this version does not know.
    UnknownMember,
    /// A word that is not one of those allowed.
    UnknownValue,
    /// A path, glob or URI that is not in the required form.
    InvalidPath,
    /// A host pattern that is not in the required form.
    InvalidHost,
    /// More than the parser is willing to read.
    TooLarge,
    /// Well-formed, but it asks for something that cannot be enforced.
    Unenforceable,
}

/// Why a profile could not be turned into rules.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// A path of the profile or of the context is not in the required form.
    #[error("{origin}: path {path:?} {reason}")]
    InvalidPath {
        /// Which path: `entries[2]`, `working directory`, `TMPDIR`.
        origin: String,
        /// As given.
        path: PathBuf,
        /// What it must be.
        reason: &'static str,
    },
    /// A glob that grants something.
    #[error("{origin}: glob {pattern:?} has access {access}, expected deny")]
    GrantingGlob {
        /// Which entry.
        origin: String,
        /// As written.
        pattern: String,
        /// As written.
        access: &'static str,
    },
    /// A deny for a special place that this version does not know: it cannot be enforced.
    #[error("{origin}: cannot deny the unknown special path {name:?}")]
    DenyUnknownSpecial {
        /// Which entry.
        origin: String,
        /// As written.
        name: String,
    },
    /// `$TMPDIR` would open (or close) more than a directory for temporary files.
    #[error("{origin}: TMPDIR {tmpdir:?} equals or contains {covers} ({covered:?})")]
    TmpdirTooBroad {
        /// Which entry.
        origin: String,
        /// `$TMPDIR`.
        tmpdir: PathBuf,
        /// What it covers: `HOME`, `the working directory`, `entries[3]`.
        covers: String,
        /// The path that it covers.
        covered: PathBuf,
    },
    /// `$TMPDIR` would open a place that the profile denies or keeps read-only.
    #[error("{origin}: TMPDIR {tmpdir:?} is inside {protected:?}, which {protected_by} protects")]
    TmpdirProtected {
        /// Which entry.
        origin: String,
        /// `$TMPDIR`.
        tmpdir: PathBuf,
        /// The entry that protects the place.
        protected_by: String,
        /// Its path.
        protected: PathBuf,
    },
    /// The network cannot be cut off where nothing is enforced.
    #[error("cannot disable the network of a disabled permission profile")]
    DisableNetworkOfDisabled,
}

impl ResolveError {
    /// Which rule was broken.
    pub fn kind(&self) -> ResolveErrorKind {
        match self {
            Self::InvalidPath { .. } => ResolveErrorKind::InvalidPath,
            Self::GrantingGlob { .. } | Self::DenyUnknownSpecial { .. } => {
                ResolveErrorKind::Unenforceable
            }
            Self::TmpdirTooBroad { .. } | Self::TmpdirProtected { .. } => ResolveErrorKind::Tmpdir,
            Self::DisableNetworkOfDisabled => ResolveErrorKind::Conflict,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TmpdirTooBroad { .. } | Self::TmpdirProtected { .. } => {
                Some("set TMPDIR to a directory of its own, or unset it")
            }
            Self::DisableNetworkOfDisabled => {
                Some("use `:workspace` or `:read-only` to run without network")
            }
            Self::InvalidPath { .. }
            | Self::GrantingGlob { .. }
            | Self::DenyUnknownSpecial { .. } => None,
        }
    }
}

/// The kinds of [`ResolveError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// A path is not in the required form.
    InvalidPath,
    /// Well-formed, but it cannot be enforced.
    Unenforceable,
    /// `$TMPDIR` is not a directory for temporary files only.
    Tmpdir,
    /// Two settings contradict each other.
    Conflict,
}

/// Why a named profile or a permissions table could not be used.
///
/// The message is `FILE:LINE: KEY: REASON`, without the parts that are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    kind: ConfigErrorKind,
    file: String,
    line: Option<usize>,
    key: String,
    reason: String,
    hint: Option<String>,
}

/// Which rule of the permissions configuration was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// Two keys of one table, or of a table and what it extends, cannot both hold.
    Contradiction,
    /// Not TOML.
    Malformed,
    /// A value has the wrong type.
    WrongType,
    /// A key that does not exist.
    UnknownKey,
    /// A word that is not one of those allowed.
    UnknownValue,
    /// A path or glob that is not in the required form.
    InvalidPath,
    /// A host pattern that is not in the required form.
    InvalidHost,
    /// A profile name that is not defined.
    UnknownProfile,
    /// Profiles that extend each other, or one that cannot be extended.
    Extends,
    /// A known key that this version does not honour.
    NotSupported,
    /// A workspace that would cover too much.
    WorkspaceTooBroad,
}

impl ConfigError {
    pub(crate) fn new(
        kind: ConfigErrorKind,
        key: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (key, reason) = (key.into(), reason.into());
        Self { kind, file: String::new(), line: None, key, reason, hint: None }
    }

    pub(crate) fn at(mut self, file: &str, line: usize) -> Self {
        self.file = file.to_owned();
        self.line = Some(line);
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn invalid_root(path: &Path, reason: &str) -> Self {
        let reason = format!("{reason}, found {path:?}");
        Self::new(ConfigErrorKind::InvalidPath, "workspace root", reason)
    }

    pub(crate) fn workspace_is_root() -> Self {
        let reason = "the whole file system cannot be a workspace";
        Self::new(ConfigErrorKind::WorkspaceTooBroad, "workspace root", reason)
            .with_hint("choose a project directory, or `:read-only`")
    }

    pub(crate) fn workspace_is_home(path: &str) -> Self {
        let reason = format!("{path:?} covers the home directory");
        Self::new(ConfigErrorKind::WorkspaceTooBroad, "workspace root", reason)
            .with_hint("choose a project directory, or name this one explicitly with `-C`")
    }

    /// Which rule was broken.
    pub fn kind(&self) -> ConfigErrorKind {
        self.kind
    }

    /// The file, as named by the caller; empty when no file is at fault.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line in the file, from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The key at fault: `permissions.NAME.filesystem."~/x"`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What was expected and what was found.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What a person can do about it, such as the nearest known key.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(formatter, "{}:", self.file)?;
            if let Some(line) = self.line {
                write!(formatter, "{line}:")?;
            }
            formatter.write_str(" ")?;
        }
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for ConfigError {}
