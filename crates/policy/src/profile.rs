//! The written profile: what a host, a person or a configuration file asked for.
//!
//! Paths are kept as written (UTF-8 text); nothing here is resolved. See [`crate::SandboxPolicy`]
//! for the resolved form.

use std::fmt;
use std::num::NonZeroUsize;

use crate::network::Hosts;

/// A written permission profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionProfile {
    /// No sandbox: the command runs as is.
    Disabled,
    /// An outer sandbox is promised by the host. It cannot be checked, so it resolves to a
    /// read-only file system with this network setting.
    External {
        /// Whether the command may use the network.
        network: Network,
    },
    /// The launcher enforces these rules.
    Managed {
        /// What may be read and written.
        file_system: FileSystem,
        /// Whether the command may use the network.
        network: Network,
    },
}

/// Whether a command may use the network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new setting must break every enforcer's match")]
pub enum Network {
    /// No network: no internet, no loopback, no sockets of the host.
    Restricted,
    /// The same, but for a proxy of the launcher's that reaches these hosts.
    Limited(Hosts),
    /// The host's network.
    Enabled,
}

impl Network {
    /// The setting in one word: `restricted`, `limited` or `enabled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Restricted => "restricted",
            Self::Limited(_) => "limited",
            Self::Enabled => "enabled",
        }
    }
}

/// The file system part of a managed profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileSystem {
    /// Everything the user may do.
    Unrestricted,
    /// Only what the entries grant.
    Restricted(RestrictedFileSystem),
}

/// Entries in the order written. What no entry mentions is neither readable nor writable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestrictedFileSystem {
    /// At most 8192 when it came from a state.
    pub entries: Vec<Entry>,
    /// How many directories deep a glob is expanded; absent means without a limit.
    pub glob_scan_max_depth: Option<NonZeroUsize>,
}

impl RestrictedFileSystem {
    /// Entries without a limit on glob depth.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, glob_scan_max_depth: None }
    }
}

/// One line of a profile: a place and what may be done there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The place.
    pub path: EntryPath,
    /// What may be done there.
    pub access: Access,
    /// What to do when the place does not exist. Default: [`Missing::Enforce`].
    pub missing: Missing,
}

impl Entry {
    /// An entry that is enforced even where the path does not exist yet.
    pub fn new(path: EntryPath, access: Access) -> Self {
        Self { path, access, missing: Missing::Enforce }
    }

    /// The same entry, ignored when its path does not exist.
    #[must_use]
    pub fn skip_missing(mut self) -> Self {
        self.missing = Missing::Skip;
        self
    }
}

/// A place as written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryPath {
    /// An absolute native path without `..`.
    Path(String),
    /// A glob, absolute or relative to the state's working directory; only with [`Access::Deny`].
    Glob(String),
    /// A place that is known only where the command runs.
    Special(Special),
}

/// Places named by their role.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// `/`
    Root,
    /// What a dynamically linked program needs to start:
    /// `/bin /sbin /usr /etc /lib /lib64 /nix/store /run/current-system/sw`.
    Minimal,
    /// The state's working directory, or a path below it.
    ProjectRoots {
        /// Relative, without `..`.
        subpath: Option<String>,
    },
    /// The launcher's `$TMPDIR`, if it is set and exists.
    Tmpdir,
    /// `/tmp`
    SlashTmp,
    /// A name that this version does not know. Read and write grant nothing; deny is refused.
    Unknown {
        /// The name as the host wrote it.
        path: String,
        /// Carried as written.
        subpath: Option<String>,
    },
}

/// What may be done at a path. Ordered by precedence at equal specificity: deny wins over write,
/// write over read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a new access must break every enforcer's match")]
pub enum Access {
    /// Read and execute.
    Read,
    /// Read, execute, create, change and remove.
    Write,
    /// Nothing, not even read.
    Deny,
}

impl Access {
    /// The word of the state grammar: `read`, `write` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a read or deny rule means where its path does not exist. A *writable* path that does not
/// exist is never created, whatever this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a new behaviour must break every enforcer's match")]
pub enum Missing {
    /// Nothing: the rule is ignored.
    Skip,
    /// The path must not come into being while the command runs.
    Enforce,
}
