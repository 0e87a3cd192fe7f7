//! The built-in profiles, and the directories that `:workspace` may write to.

use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::native;
use crate::profile::{
    Access, Entry, EntryPath, FileSystem, Network, PermissionProfile, RestrictedFileSystem, Special,
};

/// Names directly below a writable root that stay read-only: they configure what runs next.
pub(crate) const PROTECTED_NAMES: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// The directories that a workspace profile may write to: absolute, clean, UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRoots {
    paths: Vec<String>,
    home: Option<PathBuf>,
    explicit: bool,
}

impl WorkspaceRoots {
    /// The main root, usually the working directory.
    ///
    /// `home` is the user's home directory. `explicit` says that a person named the root (as with
    /// `-C`) rather than happening to stand in it: only then may it be the home directory or
    /// contain it. The file system's root may never be a workspace. Both are checked when a
    /// profile that can *write* to its roots is built, so `:read-only` works anywhere.
    ///
    /// # Errors
    ///
    /// The path is not absolute, not UTF-8, or contains `..`.
    pub fn new(path: &Path, home: Option<&Path>, explicit: bool) -> Result<Self, ConfigError> {
        let paths = vec![root(path)?];
        Ok(Self { paths, home: home.map(Path::to_path_buf), explicit })
    }

    /// Adds a root that a person named explicitly; one that is there already is not repeated.
    ///
    /// # Errors
    ///
    /// As for [`WorkspaceRoots::new`].
    pub fn with_extra(mut self, path: &Path) -> Result<Self, ConfigError> {
        let path = root(path)?;
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
        Ok(self)
    }

    /// The roots, the main one first.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The user's home directory, for `~` in configured paths.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Whether these roots may be written to as a workspace.
    pub(crate) fn check_writable(&self) -> Result<(), ConfigError> {
        for (index, path) in self.paths.iter().enumerate() {
            if path == "/" {
                return Err(ConfigError::workspace_is_root());
            }
            let covers_home = self.home.as_ref().is_some_and(|home| home.starts_with(path));
            if index == 0 && covers_home && !self.explicit {
                return Err(ConfigError::workspace_is_home(path));
            }
        }
        Ok(())
    }
}

impl PermissionProfile {
    /// `:read-only`: everything readable, nothing writable, no network.
    pub fn read_only() -> Self {
        let root = Entry::new(EntryPath::Special(Special::Root), Access::Read);
        let restricted = RestrictedFileSystem::new(vec![root]);
        let file_system = FileSystem::Restricted(restricted);
        Self::Managed { file_system, network: Network::Restricted }
    }

    /// `:workspace`: everything readable; the roots, `/tmp` and `$TMPDIR` writable; `.git`,
    /// `.agents`, `.codex` and `.aws` of each root read-only.
    ///
    /// # Errors
    ///
    /// A root is `/`, or covers the home directory without having been named explicitly.
    pub fn workspace(roots: &WorkspaceRoots, network: Network) -> Result<Self, ConfigError> {
        roots.check_writable()?;
        let special = |special, access| Entry::new(EntryPath::Special(special), access);
        let path = |path: String, access| Entry::new(EntryPath::Path(path), access);
        let mut entries = vec![special(Special::Root, Access::Read)];
        entries.extend(roots.paths().map(|root| path(root.to_owned(), Access::Write)));
        entries.push(special(Special::SlashTmp, Access::Write));
        entries.push(special(Special::Tmpdir, Access::Write));
        for name in PROTECTED_NAMES {
            let names = roots.paths().map(|root| format!("{root}/{name}"));
            entries.extend(names.map(|name| path(name, Access::Read).skip_missing()));
        }
        let file_system = FileSystem::Restricted(RestrictedFileSystem::new(entries));
        Ok(Self::Managed { file_system, network })
    }

    /// `:danger-full-access`: no sandbox.
    pub fn danger_full_access() -> Self {
        Self::Disabled
    }
}

fn root(path: &Path) -> Result<String, ConfigError> {
    let clean = native::absolute(path).map_err(|reason| ConfigError::invalid_root(path, reason))?;
    let text = clean.to_str().ok_or_else(|| ConfigError::invalid_root(path, "must be UTF-8"))?;
    Ok(text.to_owned())
}
