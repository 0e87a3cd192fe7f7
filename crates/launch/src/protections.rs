//! What a launch protects whatever the policy says: the sandbox cannot rewrite its own enforcer.

use std::path::{Path, PathBuf};

/// Names that are read-only in every writable root, whether the profile lists them or not: what they hold runs or
/// decides outside the sandbox (hooks, agent instructions, credentials).
pub const PROTECTED_NAMES: [&str; 4] = [".git", ".agents", ".codex", ".aws"];

/// Project configuration that starts or configures MCP servers; read-only in every writable root where it exists.
pub const PROJECT_CONFIGURATIONS: [&str; 4] =
    ["plenipo.toml", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// The directory of the configuration that no other layer overrides.
const MANAGED_CONFIGURATION: &str = "/etc/plenipo";

/// Paths that enforce, configure or credential the next launch. All are absolute.
///
/// Defaults: the executable of the running process and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protections {
    /// Read-only: the launcher's executable, configuration and trust directories. One that is missing in a writable
    /// place must not come into being.
    pub read_only: Vec<PathBuf>,
    /// Neither readable nor writable: credential stores, sockets of a daemon.
    pub deny: Vec<PathBuf>,
}

impl Protections {
    /// Protects `executable` (the launcher's own) read-only.
    pub fn of_executable(executable: &Path) -> Self {
        Self { read_only: vec![executable.to_path_buf()], deny: Vec::new() }
    }

    /// Also protects the configuration that the system's administrator manages.
    #[must_use]
    pub fn with_system(mut self) -> Self {
        self.read_only.push(PathBuf::from(MANAGED_CONFIGURATION));
        self
    }

    /// Also protects what Plenipo keeps in the home directory `home`: configuration and trust read-only, credentials
    /// denied.
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.read_only.push(home.join(".config/plenipo"));
        self.read_only.push(home.join(".local/share/plenipo"));
        self.read_only.push(home.join(".local/state/plenipo"));
        self.deny.push(home.join(".local/share/plenipo/credentials"));
        self
    }
}
