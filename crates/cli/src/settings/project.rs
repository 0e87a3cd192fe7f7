//! The project's file: what it says, whether its user consented to that, and what of it is refused anyway.

use std::path::{Path, PathBuf};

use plenipo_config::ConfigError;
use plenipo_config::{Config, Origin, parse};
use plenipo_connect::ServerName;
use plenipo_policy::{PermissionTables, parse_permissions};

use super::reading::read_plain;
use crate::failure::{Code, Failure};
use crate::trust::{Digest, TrustStore, quoted, visible};

pub(crate) const FILE_NAME: &str = "plenipo.toml";
/// Longest project file; it is read before anybody consented to it.
const MAX_PROJECT_BYTES: u64 = 1024 * 1024;

/// A `plenipo.toml` in the directory that is worked in.
#[derive(Debug)]
pub(crate) struct ProjectFile {
    /// Without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) content: Vec<u8>,
}

/// Whether its user consented to a project's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// To this very content at this very place.
    Given,
    /// To another content.
    Changed,
    /// Never.
    Missing,
}

/// A project's file, judged.
#[derive(Debug)]
pub(crate) struct Project {
    path: PathBuf,
    pub(crate) digest: Digest,
    pub(crate) consent: Consent,
    /// What may take part: without the entries that are refused.
    config: Result<Config, ConfigError>,
    pub(crate) permissions: PermissionTables,
    /// Entries that no consent lets in.
    pub(crate) refused: Vec<(String, ConfigError)>,
}

impl ProjectFile {
    /// Looks in `directory`. `Err` says why a file that is there is not looked at.
    pub(crate) fn find(
        directory: &Path,
        is_stronger_layer: impl Fn(&Path) -> bool,
    ) -> Result<Option<Self>, String> {
        let Ok(directory) = std::fs::canonicalize(directory) else { return Ok(None) };
        let path = directory.join(FILE_NAME);
        if std::fs::symlink_metadata(&path).is_err() || is_stronger_layer(&path) {
            return Ok(None);
        }
        // A link would make what was consented to in one place run in another.
        match read_plain(&path, MAX_PROJECT_BYTES) {
            Ok(content) => Ok(Some(Self { path, content })),
            Err(error) => Err(format!("{} is not read: {}", path.display(), not_read(&error))),
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.path, &self.content)
    }
}

fn not_read(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            "a project's file may not be a symbolic link".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Project {
    /// Reads what the file says, and whether its user consented to it. `taken` are the names of servers that stronger
    /// layers have, `profiles` their profiles.
    pub(crate) fn judge(
        file: ProjectFile,
        taken: &[(ServerName, Origin)],
        profiles: &PermissionTables,
    ) -> Result<Self, Failure> {
        let digest = file.digest();
        let consent = TrustStore::usual()
            .map_or(Consent::Missing, |store| store.consent(&file.path, &digest));
        let name = file.path.display().to_string();
        let fault = |reason: &str| ConfigError::new(&name, 1, "", reason);
        let text = String::from_utf8(file.content).map_err(|_| fault("is not UTF-8"));
        let config = text.and_then(|text| parse(&text, &name, Origin::Project));
        let mut project = Self {
            path: file.path,
            digest,
            consent,
            config,
            permissions: PermissionTables::default(),
            refused: Vec::new(),
        };
        project.refuse_servers(taken);
        let permissions = project.read_permissions(&name, profiles);
        if project.is_trusted() {
            if let Err(fault) = &project.config {
                return Err(fault.clone().into());
            }
            permissions?;
        }
        Ok(project)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.consent == Consent::Given
    }

    /// What it says, once there is consent.
    pub(crate) fn in_force(&self) -> Option<&Config> {
        self.config.as_ref().ok().filter(|_| self.is_trusted())
    }

    /// What it says, for a person who has to judge it.
    pub(crate) fn as_written(&self) -> Result<&Config, ConfigError> {
        self.config.as_ref().map_err(ConfigError::clone)
    }

    /// A project may not take a name from the managed or the user's file, and no name that would catch what is
    /// written for one of theirs: `a.b` next to their `a`, because `a.b.tool` would go to the longer name.
    fn refuse_servers(&mut self, taken: &[(ServerName, Origin)]) {
        let Ok(config) = &mut self.config else { return };
        let mut refused = Vec::new();
        for (name, server) in &config.servers {
            let catches = |taken: &str| {
                name.as_str() == taken
                    || name.as_str().strip_prefix(taken).is_some_and(|rest| rest.starts_with('.'))
            };
            let built_in = catches(ServerName::WORKSPACE).then(|| "built-in server".to_owned());
            let theirs = taken.iter().find(|(taken, _)| catches(taken.as_str()));
            let whose = theirs.map(|(taken, origin)| match origin {
                Origin::Managed => format!("server `{taken}` of the managed configuration"),
                _ => format!("server `{taken}` of your configuration"),
            });
            let Some(whose) = whose.or(built_in) else { continue };
            let line = match server {
                Ok(server) => server.line,
                Err(fault) => fault.line,
            };
            let reason = format!("takes the name of the {whose}, which a project's file may not");
            let key = format!("mcp_servers.{name}");
            let fault = ConfigError::new(&self.path.display().to_string(), line, &key, reason);
            refused.push((name.clone(), fault));
        }
        for (name, fault) in refused {
            config.servers.remove(&name);
            self.refused.push((name.to_string(), fault));
        }
    }

    fn read_permissions(&mut self, file: &str, profiles: &PermissionTables) -> Result<(), Failure> {
        let Ok(config) = &self.config else { return Ok(()) };
        if let Some(text) = config.permissions_source() {
            self.permissions = parse_permissions(text, file)?;
        }
        for (name, _) in self.permissions.names() {
            if profiles.names().any(|(taken, _)| taken == name) {
                let reason = "takes the name of a profile of a stronger configuration";
                let key = format!("permissions.{name}");
                self.refused.push((String::new(), ConfigError::new(file, 1, &key, reason)));
            }
        }
        Ok(())
    }

    /// Whether the file as a whole can be used: it is UTF-8 and TOML, with keys that a project may set.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let config = self.config.as_ref().map_err(ConfigError::clone)?;
        if let Some(text) = config.permissions_source() {
            parse_permissions(text, &self.path.display().to_string())?;
        }
        Ok(())
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let path = visible(&self.path.to_string_lossy());
        match self.consent {
            Consent::Given => {
                let config = self.config.iter();
                let config =
                    config.flat_map(|config| config.refused.iter().chain(&config.warnings));
                config
                    .chain(self.refused.iter().map(|(_, fault)| fault))
                    .map(ToString::to_string)
                    .collect()
            }
            Consent::Changed => vec![format!(
                "{path} changed since you trusted it and is not used; to look at it: {}",
                self.command()
            )],
            Consent::Missing => vec![format!(
                "{path} is not used, because you did not trust it yet; to look at it: {}",
                self.command()
            )],
        }
    }

    /// What to type to look at the file.
    pub(crate) fn command(&self) -> String {
        format!("plenipo trust {}", quoted(&self.path.to_string_lossy()))
    }

    pub(super) fn refusal(&self, text: &str) -> Option<Failure> {
        let names = |name: &str| {
            text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some((_, fault)) =
            self.refused.iter().find(|(name, _)| !name.is_empty() && names(name))
        {
            return Some(Failure::new(Code::Refused, format!("failed to {fault}")));
        }
        let config = self.config.as_ref().ok().filter(|_| !self.is_trusted())?;
        let name = config.server_names().find(|name| names(name.as_str()))?;
        let why = match self.consent {
            Consent::Changed => "which changed since you trusted it",
            _ => "which you did not trust yet",
        };
        let message = format!(
            "server `{name}` is defined by the project's {} only, {why}",
            visible(&self.path.to_string_lossy())
        );
        Some(
            Failure::new(Code::Refused, message)
                .with_hint(format!("look at it, and trust it if you do: {}", self.command())),
        )
    }
}
