//! Named profiles: the three built-in ones and the `[permissions.NAME]` tables of a configuration
//! file, in the spelling of the reference runtime:
//!
//! ```toml
//! [permissions.project-edit]
//! description = "edit the project, never its secrets"
//! extends = ":workspace"                  # or another name; its rules are overridden key by key
//!
//! [permissions.project-edit.filesystem]
//! "/etc/shadow" = "deny"                  # read, write, deny (or none)
//! "~/datasets" = "read"                   # below the user's home directory
//! "/srv/**/*.key" = "deny"                # a glob (`*`, `?`, `[…]`) only denies
//! "/srv/shared/**" = "read"               # but a trailing `/**` is the directory itself
//! ":tmpdir" = "write"                     # :root :minimal :workspace_roots :tmpdir :slash_tmp
//! glob_scan_max_depth = 8
//!
//! [permissions.project-edit.filesystem.":workspace_roots"]
//! "." = "write"                           # each root; other keys are relative to each root
//! "docs" = "read"
//! "**/*.env" = "deny"
//!
//! [permissions.project-edit.network]
//! mode = "limited"                        # or enabled = true; default: no network
//! domains = { "*.example.org" = "allow", "ads.example.org" = "deny" }    # or a list of allowed ones
//! ```
//!
//! A plain access is the same as a table with only `"."`, so a child that denies a glob below
//! `":workspace_roots"` keeps what its parent says about the roots themselves. What no profile of
//! the chain mentions is denied; the network is restricted unless enabled or limited.

mod build;
mod read;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use crate::error::{ConfigError, ConfigErrorKind};
use crate::network::{HostAccess, HostPattern};
use crate::profile::{Access, Network, PermissionProfile};
use crate::roots::WorkspaceRoots;

const READ_ONLY: &str = ":read-only";
const WORKSPACE: &str = ":workspace";
const DANGER_FULL_ACCESS: &str = ":danger-full-access";

/// Reads every `[permissions.NAME]` of a whole configuration file; `file` is named in errors.
///
/// Other tables of the file are not looked at.
///
/// # Errors
///
/// Text that is not TOML; an unknown key (with the nearest known one as a hint), a wrong type, an
/// unknown word, a path in the wrong form: each with file, line and key. Keys that are known but
/// not honoured yet are no error here but one of [`PermissionTables::profile`], so that one
/// profile does not disable the others.
pub fn parse_permissions(text: &str, file: &str) -> Result<PermissionTables, ConfigError> {
    read::tables(text, file)
}

/// The profiles that can be chosen by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionTables {
    tables: BTreeMap<String, ProfileTable>,
}

impl PermissionTables {
    /// These tables, and those of a weaker configuration layer whose names are not taken.
    #[must_use]
    pub fn or(mut self, weaker: Self) -> Self {
        for (name, table) in weaker.tables {
            self.tables.entry(name).or_insert(table);
        }
        self
    }

    /// Configured names with their descriptions, sorted; the built-in ones are not listed.
    pub fn names(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.tables.iter().map(|(name, table)| (name.as_str(), table.description.as_deref()))
    }

    /// Every name that can be chosen: the configured ones and the built-in ones.
    pub fn choices(&self) -> impl Iterator<Item = &str> {
        let built_in = [READ_ONLY, WORKSPACE, DANGER_FULL_ACCESS];
        self.tables.keys().map(String::as_str).chain(built_in)
    }

    /// The profile of that name: `:read-only`, `:workspace` (network restricted),
    /// `:danger-full-access`, or a configured one.
    ///
    /// # Errors
    ///
    /// The name is not defined (the nearest one is the hint); the profile, or one that it extends,
    /// uses a key that is not supported yet; profiles extend each other in a circle or extend
    /// `:danger-full-access`; it may write to workspace roots that cover too much.
    pub fn profile(
        &self,
        name: &str,
        roots: &WorkspaceRoots,
    ) -> Result<PermissionProfile, ConfigError> {
        match name {
            READ_ONLY => Ok(PermissionProfile::read_only()),
            WORKSPACE => PermissionProfile::workspace(roots, Network::Restricted),
            DANGER_FULL_ACCESS => Ok(PermissionProfile::danger_full_access()),
            _ => {
                let table = self.tables.get(name).ok_or_else(|| self.unknown(name))?;
                build::profile(&self.inherited(name, table)?, roots)
            }
        }
    }

    /// What is wrong with each profile whatever directory it is used in: whom it extends, what its network is.
    pub fn faults(&self) -> impl Iterator<Item = ConfigError> {
        self.tables.iter().filter_map(|(name, table)| {
            let merged = self.inherited(name, table);
            merged.and_then(|table| table.network.setting()).err()
        })
    }

    /// The table with everything that it inherits.
    fn inherited(&self, name: &str, table: &ProfileTable) -> Result<ProfileTable, ConfigError> {
        let mut chain = vec![name];
        let mut merged = table.clone();
        while let Some(extends) = merged.extends.take() {
            if chain.contains(&extends.value.as_str()) {
                let path = [chain.join(" → "), extends.value.clone()].join(" → ");
                return Err(extends.fault(ConfigErrorKind::Extends, format!("circle: {path}")));
            }
            let parent = match extends.value.as_str() {
                READ_ONLY => ProfileTable::read_only(),
                WORKSPACE => ProfileTable::workspace(),
                DANGER_FULL_ACCESS => {
                    let reason = "`:danger-full-access` cannot be extended: it has no rules";
                    return Err(extends.fault(ConfigErrorKind::Extends, reason));
                }
                parent => {
                    let Some((parent, table)) = self.tables.get_key_value(parent) else {
                        let unknown = self.unknown(parent);
                        let fault = extends.fault(unknown.kind(), unknown.reason());
                        return Err(match unknown.hint() {
                            Some(hint) => fault.with_hint(hint),
                            None => fault,
                        });
                    };
                    chain.push(parent);
                    table.clone()
                }
            };
            merged = merged.over(parent);
        }
        match merged.unsupported.take() {
            Some(error) => Err(error),
            None => Ok(merged),
        }
    }

    fn unknown(&self, name: &str) -> ConfigError {
        let reason = format!("no permission profile is called {name:?}");
        let error = ConfigError::new(ConfigErrorKind::UnknownProfile, "", reason);
        let known = [READ_ONLY, WORKSPACE, DANGER_FULL_ACCESS];
        match read::nearest(name, known.into_iter().chain(self.names().map(|(name, _)| name))) {
            Some(nearest) => error.with_hint(format!("did you mean `{nearest}`?")),
            None => {
                let names: Vec<&str> =
                    known.into_iter().chain(self.names().map(|(name, _)| name)).collect();
                error.with_hint(format!("known profiles: {}", names.join(", ")))
            }
        }
    }
}

/// One `[permissions.NAME]` as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProfileTable {
    description: Option<String>,
    extends: Option<Written<String>>,
    /// By place; below a place, by relative path (`.` is the place itself).
    filesystem: BTreeMap<String, BTreeMap<String, Written<Access>>>,
    glob_scan_max_depth: Option<NonZeroUsize>,
    network: NetworkTable,
    /// A key that is recognised and not honoured.
    unsupported: Option<ConfigError>,
}

impl ProfileTable {
    fn read_only() -> Self {
        Self::built_in(&[(":root", Access::Read)])
    }

    /// Without the protected names: a profile that extends `:workspace` does not list them, and a
    /// launcher protects them anyway.
    fn workspace() -> Self {
        Self::built_in(&[
            (":root", Access::Read),
            (":slash_tmp", Access::Write),
            (":tmpdir", Access::Write),
            (":workspace_roots", Access::Write),
        ])
    }

    fn built_in(settings: &[(&str, Access)]) -> Self {
        let settings = settings.iter().map(|(place, access)| {
            let access = Written { value: *access, place: Place::default() };
            ((*place).to_owned(), BTreeMap::from([(".".to_owned(), access)]))
        });
        Self { filesystem: settings.collect(), ..Self::default() }
    }

    /// This table where it says something, else the parent's.
    fn over(self, parent: Self) -> Self {
        let mut filesystem = parent.filesystem;
        for (place, settings) in self.filesystem {
            filesystem.entry(place).or_default().extend(settings);
        }
        Self {
            description: self.description,
            extends: parent.extends,
            filesystem,
            glob_scan_max_depth: self.glob_scan_max_depth.or(parent.glob_scan_max_depth),
            network: self.network.over(parent.network),
            unsupported: self.unsupported.or(parent.unsupported),
        }
    }
}

/// `[permissions.NAME.network]` as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NetworkTable {
    enabled: Option<bool>,
    mode: Option<NetworkMode>,
    domains: BTreeMap<HostPattern, HostAccess>,
    /// Where the domains were written first.
    domains_at: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkMode {
    Limited,
    Full,
}

impl NetworkTable {
    /// A mode says that there is a network, unless the same table says otherwise.
    fn over(self, parent: Self) -> Self {
        let inherited = if self.mode.is_some() { None } else { parent.enabled };
        let mut domains = parent.domains;
        domains.extend(self.domains);
        Self {
            enabled: self.enabled.or(inherited),
            mode: self.mode.or(parent.mode),
            domains,
            domains_at: self.domains_at.or(parent.domains_at),
        }
    }

    fn setting(&self) -> Result<Network, ConfigError> {
        let limited = self.mode == Some(NetworkMode::Limited);
        if let Some(place) = self.domains_at.as_ref().filter(|_| !limited) {
            let mode = if self.mode.is_some() { "`mode` is full" } else { "`mode` is not set" };
            let reason = format!("only a limited network can be held to domains, and {mode}");
            let hint = "set mode = \"limited\" in the same table, or take `domains` out";
            return Err(place.fault(ConfigErrorKind::Contradiction, reason).with_hint(hint));
        }
        match (self.enabled, self.mode) {
            (Some(false), _) | (None, None | Some(NetworkMode::Full)) => Ok(Network::Restricted),
            (_, Some(NetworkMode::Limited)) => {
                let hosts = self.domains.iter().map(|(host, access)| (host.clone(), *access));
                Ok(Network::Limited(hosts.collect()))
            }
            (Some(true), _) => Ok(Network::Enabled),
        }
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written<T> {
    value: T,
    place: Place,
}

impl<T> Written<T> {
    fn fault(&self, kind: ConfigErrorKind, reason: impl Into<String>) -> ConfigError {
        self.place.fault(kind, reason)
    }
}

/// A key in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    file: String,
    line: usize,
    key: String,
}

impl Place {
    fn fault(&self, kind: ConfigErrorKind, reason: impl Into<String>) -> ConfigError {
        ConfigError::new(kind, self.key.clone(), reason).at(&self.file, self.line)
    }
}
