//! Configuration files: text to values that cannot be wrong.
//!
//! Parsing is pure: the caller reads the file and says how far it is trusted; placeholders are
//! checked, and filled in only when a server is started ([`ServerConfig::endpoint`]). A key is
//! honoured, or recognised and then **disables its server with a reason**, or an error that names
//! file, line, key and the nearest known key; no key is accepted and ignored. An error inside one
//! server is kept with that server and does not take the others away.
//!
//! Of our own `plenipo.toml`:
//!
//! | top-level key | type | from |
//! |---|---|---|
//! | `launcher` | absolute path | managed, user |
//! | `default_permissions` | string | any |
//! | `permissions.NAME` | handed to `plenipo-policy` as text | any |
//! | `server.workspace.allow_unsandboxed` | bool, default false | managed, user |
//! | `audit.file` | absolute path | managed, user |
//! | `credentials_store`, `credentials` | [`CredentialsConfig`] | managed, user |
//! | `sandbox.default_for_servers` | name of a profile, or `off` | managed, user |
//! | `sandbox.deny_glob` | `strict` or `at-start`, the default | managed, user |
//! | `sandbox.minimum_rung` | `full`, `full-privileged`, `bwrap`, `no-proc` or `landlock` | managed, user |
//! | `shell_environment_policy` | [`EnvironmentPolicy`] | managed, user |
//! | `mcp_enterprise_managed_auth.idp`, `account` | [`IdentityProviderConfig`] | managed, user |
//! | `environments.NAME` | [`EnvironmentSettings`] | managed, user |
//! | `mcp_servers.NAME` | [`ServerConfig`] | any; with `auth = "enterprise"` managed, user |
//!
//! Profiles and environments that are named may be defined in another file: [`Config::check_names`] finds those that
//! are defined nowhere.
//!
//! Of other programs' files, which [`Format`] tells apart, only the servers are read.
#![forbid(unsafe_code)]

mod approval;
mod client;
mod credentials;
mod draft;
mod enterprise;
mod environment;
mod error;
mod format;
mod helper;
mod http;
mod json_document;
mod keys;
mod limits;
mod literal;
mod names;
mod node;
mod oauth;
mod places;
mod reader;
mod scalar;
mod server;
mod template;
mod toml_document;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use approval::ApprovalSettings;
pub use client::ClientProof;
pub use credentials::{CredentialsConfig, CredentialsStore, Sealing, TextSource};
pub use enterprise::{EnterpriseConfig, IdentityProviderConfig};
pub use environment::{EnvironmentPolicy, Inherit};
pub use error::ConfigError;
pub use format::Format;
pub use limits::Limits;
pub use names::Defined;
pub use oauth::{GrantKind, OAuthConfig};
pub use places::EnvironmentSettings;
use plenipo_redact::Secret;
pub use server::{
    HeaderValueSource, HttpSettings, ServerConfig, ServerState, StdioSettings, TransportSettings,
};
pub use template::{StartContext, Template};

use plenipo_connect::ServerName;

/// How far a configuration file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Written by the machine's administrator; cannot be overridden.
    Managed,
    /// Written by the user, or named by the user for this run.
    User,
    /// Found in the project: somebody else may have written it.
    Project,
}

/// One file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// How far it is trusted.
    pub origin: Origin,
    /// Whose file it is.
    pub format: Format,
    /// Launcher for sandboxed commands; absolute.
    pub launcher: Option<PathBuf>,
    /// Profile of a call that names none.
    pub default_permissions: Option<String>,
    /// The operator lets the built-in server run commands without a sandbox when there is no
    /// launcher.
    pub allow_unsandboxed: bool,
    /// Which variables a command gets.
    pub environment: Option<EnvironmentPolicy>,
    /// Where each call is recorded; absolute.
    pub audit_file: Option<PathBuf>,
    /// Where credentials are kept; whole from the strongest file that says anything of it.
    pub credentials: Option<CredentialsConfig>,
    /// `mcp_enterprise_managed_auth.idp`; whole from the strongest file that has it.
    pub identity_provider: Option<IdentityProviderConfig>,
    /// `account`; whole from the strongest file that has it.
    pub account: Option<IdentityProviderConfig>,
    /// Name of the weakest rung that the operator lets a sandbox be built on.
    pub minimum_rung: Option<String>,
    /// Whether deny patterns have to hold for files that appear later, too.
    pub strict_globs: bool,
    /// Profile of servers that name none.
    pub sandbox_of_servers: Option<String>,
    /// Environments by name, each with its own fault if it has one.
    pub environments: BTreeMap<String, Result<EnvironmentSettings, ConfigError>>,
    /// Servers can run on this machine: false when `environments.local` is switched off.
    pub local_environment: bool,
    /// Servers by name, each with its own fault if it has one.
    pub servers: BTreeMap<ServerName, Result<ServerConfig, ConfigError>>,
    /// Entries that have no name to be kept under: a name that is none, or is taken.
    pub refused: Vec<ConfigError>,
    /// Recognised keys outside servers that are not honoured yet.
    pub warnings: Vec<ConfigError>,
    text: Secret<String>,
    has_permissions: bool,
    /// Profiles that are named outside of servers and environments.
    names: Vec<names::Use>,
}

impl Config {
    /// The whole text when it has a `permissions` table, for `plenipo_policy::parse_permissions`.
    #[must_use]
    pub fn permissions_source(&self) -> Option<&str> {
        self.has_permissions.then_some(self.text.expose().as_str())
    }

    /// What it says itself that looks like a credential, if anything: see [`ServerConfig::written_credential`].
    #[must_use]
    pub fn written_credential(&self) -> Option<&Template> {
        let of_servers = self.servers.values().flatten();
        let environments = self.environments.values().flatten();
        of_servers
            .filter_map(ServerConfig::written_credential)
            .chain(environments.filter_map(|it| http::credential_of(&it.env)))
            .next()
    }

    /// Names of servers, sorted.
    pub fn server_names(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }
}

/// Reads `text`, which came from `file` (a name for messages; nothing is opened). A byte order
/// mark at the start is skipped.
///
/// # Errors
/// The first fault outside a server: text that is neither TOML nor JSON, an unknown or mistyped
/// top-level key, a key that this origin may not set. Faults inside a server are in
/// [`Config::servers`], those of a server's name in [`Config::refused`].
pub fn parse(text: &str, file: &str, origin: Origin) -> Result<Config, ConfigError> {
    let read = reader::read(without_mark(text), file, origin);
    match read.outside.into_iter().next() {
        None => Ok(read.config),
        Some(fault) => Err(fault),
    }
}

/// As [`parse`], for a person who mends the file: what can be read of it, and all that is wrong with it, in the order of
/// its lines. Names that nobody defines are not among that: see [`Config::check_names`].
#[must_use]
pub fn check(text: &str, file: &str, origin: Origin) -> (Config, Vec<ConfigError>) {
    let read = reader::read(without_mark(text), file, origin);
    let mut faults = read.outside;
    faults.extend(read.inside);
    faults.sort_by_key(|fault| fault.line);
    (read.config, faults)
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
