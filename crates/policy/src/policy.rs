//! The resolved policy: absolute rules that an enforcer can apply without knowing any special
//! place, default or precedence beyond "the most specific path wins".

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::profile::{Access, Missing, Network};

/// What a launcher enforces on one command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxPolicy {
    /// What may be read and written.
    pub file_system: FileSystemPolicy,
    /// Whether the command may use the network.
    pub network: Network,
    /// Which kind of profile this came from.
    pub mode: Mode,
    /// Globs whose matches are denied, whatever the rules grant at or above the match.
    pub deny_globs: Vec<DenyGlob>,
    /// What the profile mentions and nothing enforces, in words, for the enforcement report:
    /// unknown special places, readable roots that a deny covers.
    pub ignored: Vec<String>,
    /// The command's working directory: absolute and lexically clean.
    pub cwd: PathBuf,
}

impl SandboxPolicy {
    /// A managed policy without globs.
    pub fn new(file_system: FileSystemPolicy, network: Network, cwd: PathBuf) -> Self {
        let (mode, deny_globs, ignored) = (Mode::Managed, Vec::new(), Vec::new());
        Self { file_system, network, mode, deny_globs, ignored, cwd }
    }

    /// What the rules say about `path`, which is absolute and lexically clean: a slow and plain
    /// model of "the most specific path wins", to compare an enforcer with.
    ///
    /// `None`: no rule covers the path, so it is neither readable nor writable. Globs, missing
    /// paths, symbolic links and the protections that a launcher adds are not looked at.
    pub fn access(&self, path: &Path) -> Option<Access> {
        let rules = match &self.file_system {
            FileSystemPolicy::Unrestricted => return Some(Access::Write),
            FileSystemPolicy::Restricted(rules) => rules,
        };
        rules
            .iter()
            .filter(|rule| path.starts_with(&rule.path))
            .max_by_key(|rule| (rule.path.components().count(), rule.access))
            .map(|rule| rule.access)
    }
}

/// The file system part of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new shape must break every enforcer's match")]
pub enum FileSystemPolicy {
    /// Everything the user may do.
    Unrestricted,
    /// Only what these rules grant: shallow to deep, one rule a path.
    Restricted(Vec<Rule>),
}

/// Which kind of profile a policy came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new mode must break every enforcer's match")]
pub enum Mode {
    /// Run as is, and say so in the report.
    Disabled,
    /// An outer sandbox was promised; read-only is enforced here.
    External,
    /// The rules of the profile.
    Managed,
}

/// One absolute rule; it covers its path and everything below, up to a deeper rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Absolute and lexically clean (no `.`, `..`, doubled or trailing `/`); symbolic links are
    /// not resolved.
    pub path: PathBuf,
    /// What may be done there.
    pub access: Access,
    /// What to do when the path does not exist.
    pub missing: Missing,
    /// Where the rule came from, for reports: `entries[2]`, `readable root`.
    pub origin: String,
    /// Which kind of entry named the place.
    pub place: Place,
}

/// Which kind of entry a rule's place comes from: what it is for decides what an enforcer adds there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "a new kind must break every enforcer's match")]
pub enum Place {
    /// Some entry means this place as such, whatever else names it.
    #[default]
    Named,
    /// Nothing but `slash_tmp` (and `$TMPDIR`, where that is `/tmp`).
    SlashTmp,
    /// Nothing but `tmpdir`.
    Tmpdir,
}

impl Rule {
    /// A rule that is enforced even where the path does not exist, without an origin.
    pub fn new(path: impl Into<PathBuf>, access: Access) -> Self {
        let (path, missing) = (path.into(), Missing::Enforce);
        Self { path, access, missing, origin: String::new(), place: Place::Named }
    }

    /// The same rule for another kind of place.
    #[must_use]
    pub fn with_place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The same rule with another behaviour for a missing path.
    #[must_use]
    pub fn with_missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The same rule with an origin for reports.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }
}

/// A glob whose matches are denied.
///
/// The pattern's syntax is that of the `globset` crate with a literal separator (`*` stops at
/// `/`, `**` does not). It is not compiled here: an enforcer refuses one that it cannot compile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DenyGlob {
    /// Where a scan starts: absolute and lexically clean, and to be taken literally.
    pub base: PathBuf,
    /// Relative to `base`; never empty.
    pub pattern: String,
    /// How many directories below `base` a scan goes; absent means without a limit.
    pub max_depth: Option<NonZeroUsize>,
    /// Where the glob came from, for reports.
    pub origin: String,
}

impl DenyGlob {
    /// A glob without a depth limit and without an origin.
    pub fn new(base: impl Into<PathBuf>, pattern: impl Into<String>) -> Self {
        let (base, pattern) = (base.into(), pattern.into());
        Self { base, pattern, max_depth: None, origin: String::new() }
    }
}
