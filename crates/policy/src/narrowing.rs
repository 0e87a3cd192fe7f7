//! Whether a policy grants nothing that another one withholds: what a project's profile has to be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::network::{HostAccess, HostPattern};
use crate::policy::{FileSystemPolicy, Mode, Rule, SandboxPolicy};
use crate::profile::{Access, Missing, Network};
use crate::roots::PROTECTED_NAMES;

/// What a policy grants beyond its limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Widening {
    /// It enforces less.
    #[error("it runs commands without the sandbox of the limit")]
    Mode,
    /// It has the network.
    #[error("it enables the network, which the limit restricts")]
    Network,
    /// It reaches more through the proxy.
    #[error("it {} {pattern}, which the limit {}", reaches(*.limit), limits(*.limit))]
    Host {
        /// The pattern that is allowed here, or denied by the limit.
        pattern: HostPattern,
        /// What the limit says or, to allow, does not say of it.
        limit: HostAccess,
    },
    /// It has the whole file system.
    #[error("it grants the whole file system, of which the limit grants a part")]
    WholeFileSystem,
    /// It grants more at a path.
    #[error("it grants {found} at {}, where the limit grants {}", .path.display(), granted(*.limit))]
    Path {
        /// Where.
        path: PathBuf,
        /// What it grants.
        found: Access,
        /// What the limit says; absent when no rule of it covers the path.
        limit: Option<Access>,
    },
    /// It leaves out a glob that the limit denies, or scans less deep for it.
    #[error("it does not deny the glob {pattern:?} below {}, which the limit denies", .base.display())]
    Glob {
        /// Where the glob starts.
        base: PathBuf,
        /// The glob.
        pattern: String,
    },
}

fn granted(access: Option<Access>) -> &'static str {
    match access {
        Some(Access::Read) => "read",
        Some(Access::Write) => "write",
        Some(Access::Deny) | None => "nothing",
    }
}

fn reaches(limit: HostAccess) -> &'static str {
    match limit {
        HostAccess::Allow => "allows the host",
        HostAccess::Deny => "does not deny the host",
    }
}

fn limits(limit: HostAccess) -> &'static str {
    match limit {
        HostAccess::Allow => "does not allow",
        HostAccess::Deny => "denies",
    }
}

fn network_within(own: &Network, limit: &Network) -> Result<(), Widening> {
    match (own, limit) {
        (Network::Restricted, _) | (_, Network::Enabled) => Ok(()),
        (Network::Limited(own), Network::Limited(limit)) => match own.beyond(limit) {
            Some((pattern, limit)) => Err(Widening::Host { pattern, limit }),
            None => Ok(()),
        },
        (Network::Enabled | Network::Limited(_), Network::Restricted | Network::Limited(_)) => {
            Err(Widening::Network)
        }
    }
}

impl SandboxPolicy {
    /// Whether this policy grants nothing that `limit` withholds.
    ///
    /// Both have to be resolved in the same context. Looked at are the mode, the network, the
    /// access at every path of either policy's rules (between which nothing changes), whichever of
    /// the paths that may be missing are, and the globs that `limit` denies. The names that a
    /// launcher protects in every writable root count as written in both. A host's name and its address
    /// are not the same.
    ///
    /// # Errors
    ///
    /// The first [`Widening`] found.
    pub fn within(&self, limit: &Self) -> Result<(), Widening> {
        if limit.mode == Mode::Disabled {
            return Ok(());
        }
        if self.mode != limit.mode {
            return Err(Widening::Mode);
        }
        network_within(&self.network, &limit.network)?;
        let FileSystemPolicy::Restricted(limit_rules) = &limit.file_system else { return Ok(()) };
        let FileSystemPolicy::Restricted(own_rules) = &self.file_system else {
            return Err(Widening::WholeFileSystem);
        };
        paths_within(&Grants::new(own_rules), &Grants::new(limit_rules))?;
        for glob in &limit.deny_globs {
            let as_deep = |depth: Option<_>| match (depth, glob.max_depth) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(limit)) => own >= limit,
            };
            let kept = self.deny_globs.iter().any(|own| {
                own.base == glob.base && own.pattern == glob.pattern && as_deep(own.max_depth)
            });
            if !kept {
                let (base, pattern) = (glob.base.clone(), glob.pattern.clone());
                return Err(Widening::Glob { base, pattern });
            }
        }
        Ok(())
    }
}

fn paths_within(own: &Grants, limit: &Grants) -> Result<(), Widening> {
    for path in own.by_path.keys().chain(limit.by_path.keys()) {
        // How many components of the path exist: a rule that is skipped where its path is missing
        // counts only if it does.
        let length = path.components().count();
        for existing in 1..=length {
            let found = own.access(path, existing);
            let allowed = limit.access(path, existing);
            if let Some(found) = found
                && rank(Some(found)) > rank(allowed)
            {
                return Err(Widening::Path { path: path.clone(), found, limit: allowed });
            }
        }
    }
    Ok(())
}

fn rank(access: Option<Access>) -> u8 {
    match access {
        None | Some(Access::Deny) => 0,
        Some(Access::Read) => 1,
        Some(Access::Write) => 2,
    }
}

/// Rules by path, with the names that a launcher adds.
struct Grants {
    by_path: BTreeMap<PathBuf, (Access, Missing)>,
}

impl Grants {
    fn new(rules: &[Rule]) -> Self {
        let mut by_path: BTreeMap<PathBuf, (Access, Missing)> =
            rules.iter().map(|rule| (rule.path.clone(), (rule.access, rule.missing))).collect();
        for root in rules.iter().filter(|rule| rule.access == Access::Write) {
            for name in PROTECTED_NAMES {
                let protected = root.path.join(name);
                by_path.entry(protected).or_insert((Access::Read, Missing::Skip));
            }
        }
        Self { by_path }
    }

    /// What holds at `path` when its first `existing` components exist and no more.
    fn access(&self, path: &Path, existing: usize) -> Option<Access> {
        path.ancestors().find_map(|ancestor| {
            let (access, missing) = self.by_path.get(ancestor)?;
            let counts = *missing == Missing::Enforce
                || *access == Access::Write
                || ancestor.components().count() <= existing;
            counts.then_some(*access)
        })
    }
}
