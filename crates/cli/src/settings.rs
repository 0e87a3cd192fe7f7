//! Configuration in force: the managed file, then the user's.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plenipo_connect::config::{Config, Origin, ServerConfig, parse};
use plenipo_connect::{ConfigError, ServerName};
use plenipo_policy::{PermissionTables, parse_permissions};

use crate::env;
use crate::failure::Failure;

/// Written by the machine's administrator; cannot be overridden.
const MANAGED: &str = "/etc/plenipo/plenipo.toml";
const FILE_NAME: &str = "plenipo.toml";
/// Longest configuration file that is read.
const MAX_CONFIG_BYTES: u64 = 16 * 1024 * 1024;

/// The layers, strongest first, and where they came from.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    layers: Vec<(PathBuf, Config)>,
    /// The user's file: the one given, else the usual place, whether it exists or not.
    pub(crate) user_file: Option<PathBuf>,
}

impl Settings {
    /// Reads the layers. `given` is `--config`; without it `$PLENIPO_CONFIG`, then the user's usual place. A file that
    /// was named has to exist.
    pub(crate) fn load(given: Option<&Path>) -> Result<Self, Failure> {
        let mut settings = Self::default();
        let managed = Path::new(MANAGED);
        if let Some(text) = read_optional(managed)? {
            check_managed(managed)?;
            settings.add(managed, &text, Origin::Managed)?;
        }
        let named = given.map(Path::to_path_buf).or_else(|| {
            env::variable("PLENIPO_CONFIG").filter(|value| !value.is_empty()).map(PathBuf::from)
        });
        if let Some(path) = named {
            let path = std::path::absolute(&path).map_err(|error| unreadable(&path, &error))?;
            let text = read(&path).map_err(|error| unreadable(&path, &error))?;
            settings.add(&path, &text, Origin::User)?;
            settings.user_file = Some(path);
        } else if let Some(directory) = env::configuration_directory() {
            let path = directory.join(FILE_NAME);
            if let Some(text) = read_optional(&path)? {
                settings.add(&path, &text, Origin::User)?;
            }
            settings.user_file = Some(path);
        }
        Ok(settings)
    }

    fn add(&mut self, path: &Path, text: &str, origin: Origin) -> Result<(), Failure> {
        let config = parse(text, &path.display().to_string(), origin)?;
        self.layers.push((path.to_path_buf(), config));
        Ok(())
    }

    /// Files that were read, strongest first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.layers.iter().map(|(path, _)| path.as_path())
    }

    /// Keys that are recognised and not honoured yet, outside servers.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &ConfigError> {
        self.layers.iter().flat_map(|(_, config)| &config.warnings)
    }

    /// A server comes whole from the strongest layer that has it.
    pub(crate) fn server(
        &self,
        name: &str,
    ) -> Option<(ServerName, Result<ServerConfig, ConfigError>)> {
        let found = self.layers.iter().flat_map(|(_, config)| &config.servers);
        found
            .into_iter()
            .find(|(present, _)| present.as_str() == name)
            .map(|(name, server)| (name.clone(), server.clone()))
    }

    pub(crate) fn server_names(&self) -> impl Iterator<Item = &ServerName> {
        self.layers.iter().flat_map(|(_, config)| config.server_names())
    }

    /// The launcher that an operator put in place of this program.
    pub(crate) fn launcher(&self) -> Option<&Path> {
        self.layers.iter().find_map(|(_, config)| config.launcher.as_deref())
    }

    pub(crate) fn default_permissions(&self) -> Option<&str> {
        self.layers.iter().find_map(|(_, config)| config.default_permissions.as_deref())
    }

    /// Whether an operator lets commands run without a launcher.
    pub(crate) fn allow_unsandboxed(&self) -> bool {
        self.layers.iter().any(|(_, config)| config.allow_unsandboxed)
    }

    /// Named profiles; a stronger layer's name wins.
    pub(crate) fn permissions(&self) -> Result<PermissionTables, Failure> {
        let mut tables = PermissionTables::default();
        for (path, config) in &self.layers {
            if let Some(text) = config.permissions_source() {
                tables = tables.or(parse_permissions(text, &path.display().to_string())?);
            }
        }
        Ok(tables)
    }
}

fn read_optional(path: &Path) -> Result<Option<String>, Failure> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_CONFIG_BYTES {
        return Err(io::Error::other("it is longer than 16 MiB"));
    }
    Ok(text)
}

/// A managed file that others could write is nobody's authority.
fn check_managed(path: &Path) -> Result<(), Failure> {
    const OTHERS_MAY_WRITE: u32 = 0o022;
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if metadata.uid() == 0 && metadata.mode() & OTHERS_MAY_WRITE == 0 {
        return Ok(());
    }
    Err(Failure::usage(format!("{} can be written by others than root", path.display()))
        .with_hint("the managed configuration has to belong to root, with no group or world write"))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("failed to read the configuration {}: {error}", path.display()))
}
