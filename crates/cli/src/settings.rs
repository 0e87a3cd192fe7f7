//! Configuration in force: the managed file, the user's, and the project's if the user consented to it.
//!
//! A server's table comes whole from the strongest layer that has it. What a project's file says takes part only
//! after consent to its digest, and then only where it takes nothing away from the stronger layers.

mod profiles;
mod project;
mod reading;

use std::path::{Path, PathBuf};

use plenipo_config::ConfigError;
use plenipo_config::{
    Config, CredentialsConfig, Defined, EnvironmentPolicy, EnvironmentSettings,
    IdentityProviderConfig, Origin, ServerConfig, parse,
};
use plenipo_connect::ServerName;
use plenipo_connect::environment::EnvironmentId;
use plenipo_launch::Rung;
use plenipo_policy::{PermissionTables, parse_permissions};

use crate::env;
use crate::failure::Failure;

pub(crate) use project::{Consent, FILE_NAME, Project, ProjectFile};
pub(crate) use reading::read;
use reading::{read_managed, read_optional, unreadable};

/// Written by the machine's administrator; cannot be overridden.
pub(crate) const MANAGED: &str = "/etc/plenipo/plenipo.toml";

/// The layers, strongest first, and where they came from.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Managed and user.
    layers: Vec<(PathBuf, Config)>,
    /// The user's file: the one given, else the usual place, whether it exists or not.
    pub(crate) user_file: Option<PathBuf>,
    /// The file in the directory that is worked in, trusted or not.
    pub(crate) project: Option<Project>,
    notices: Vec<String>,
}

impl Settings {
    /// Reads the layers for work in the current directory.
    pub(crate) fn load(given: Option<&Path>) -> Result<Self, Failure> {
        Self::load_in(given, None)
    }

    /// Reads the layers. `given` is `--config`; without it `$PLENIPO_CONFIG`, then the user's usual place. A file that
    /// was named has to exist. `directory` is `-C`, else the current one: the project's.
    pub(crate) fn load_in(given: Option<&Path>, directory: Option<&Path>) -> Result<Self, Failure> {
        let mut settings = Self::of_user(given)?;
        settings.check_names()?;
        let found = match directory {
            Some(directory) => Some(directory.to_path_buf()),
            None => env::current_directory().ok(),
        };
        let Some(directory) = found else { return Ok(settings) };
        match ProjectFile::find(&directory, |file| settings.reads(file)) {
            Ok(None) => {}
            Ok(Some(file)) => settings.add_project(file)?,
            Err(notice) => settings.notices.push(notice),
        }
        Ok(settings)
    }

    /// The managed layer only.
    pub(crate) fn managed() -> Result<Self, Failure> {
        let mut settings = Self::default();
        let managed = Path::new(MANAGED);
        if let Some(text) = read_managed(managed)? {
            settings.add(managed, &text, Origin::Managed)?;
        }
        Ok(settings)
    }

    /// The managed and the user's layer only.
    pub(crate) fn of_user(given: Option<&Path>) -> Result<Self, Failure> {
        let mut settings = Self::managed()?;
        if let Some((path, named)) = Self::user_file(given)? {
            let text = match named {
                true => Some(read(&path).map_err(|error| unreadable(&path, &error))?),
                false => read_optional(&path)?,
            };
            if let Some(text) = text {
                settings.add(&path, &text, Origin::User)?;
            }
            settings.user_file = Some(path);
        }
        Ok(settings)
    }

    /// The managed and the user's layer, the latter found by the passwd file: nothing that a caller's environment says
    /// can put another one in its place.
    pub(crate) fn of_passwd_user() -> Result<Self, Failure> {
        let mut settings = Self::managed()?;
        let Some(home) = env::passwd_home() else { return Ok(settings) };
        let path = home.join(".config/plenipo").join(FILE_NAME);
        if let Some(text) = read_optional(&path)? {
            settings.add(&path, &text, Origin::User)?;
        }
        Ok(settings)
    }

    /// Which variables a command gets; whole from the strongest layer that says so.
    pub(crate) fn environment_policy(&self) -> Option<&EnvironmentPolicy> {
        self.layers.iter().find_map(|(_, config)| config.environment.as_ref())
    }

    /// The weakest rung that the operator lets a sandbox be built on; a user can only raise what the machine's
    /// administrator set.
    pub(crate) fn minimum_rung(&self) -> Rung {
        let of = |origin: Origin| -> Option<Rung> {
            let mut layers = self.layers.iter().filter(|(_, config)| config.origin == origin);
            layers.find_map(|(_, config)| Rung::from_name(config.minimum_rung.as_deref()?))
        };
        match (of(Origin::Managed), of(Origin::User)) {
            (Some(managed), Some(user)) => managed.or_stronger(user),
            (managed, user) => managed.or(user).unwrap_or(Rung::Full),
        }
    }

    /// The rung that some file asks for; absent where none does.
    pub(crate) fn asked_rung(&self) -> Option<Rung> {
        let asked = self.layers.iter().any(|(_, config)| config.minimum_rung.is_some());
        asked.then(|| self.minimum_rung())
    }

    /// The profile of servers that name none.
    pub(crate) fn sandbox_of_servers(&self) -> Option<&str> {
        self.layers.iter().find_map(|(_, config)| config.sandbox_of_servers.as_deref())
    }

    /// Whether deny patterns have to hold for what appears later. Who asks for it has it: nobody takes it away.
    pub(crate) fn strict_globs(&self) -> bool {
        self.layers.iter().any(|(_, config)| config.strict_globs)
    }

    /// Where the user's file is, and whether it was named; absent without a home directory.
    pub(crate) fn user_file(given: Option<&Path>) -> Result<Option<(PathBuf, bool)>, Failure> {
        let named = given.map(Path::to_path_buf).or_else(|| {
            env::variable("PLENIPO_CONFIG").filter(|value| !value.is_empty()).map(PathBuf::from)
        });
        if let Some(path) = named {
            let path = std::path::absolute(&path).map_err(|error| unreadable(&path, &error))?;
            return Ok(Some((path, true)));
        }
        Ok(env::configuration_directory().map(|directory| (directory.join(FILE_NAME), false)))
    }

    fn add(&mut self, path: &Path, text: &str, origin: Origin) -> Result<(), Failure> {
        let config = parse(text, &path.display().to_string(), origin)?;
        self.notices.extend(config.refused.iter().map(ToString::to_string));
        self.notices.extend(config.warnings.iter().map(ToString::to_string));
        self.layers.push((path.to_path_buf(), config));
        Ok(())
    }

    /// What names a profile or an environment that nobody defines cannot be used.
    fn check_names(&mut self) -> Result<(), Failure> {
        if !self.layers.iter().any(|(_, config)| config.has_names()) {
            return Ok(());
        }
        // A fault in the profiles themselves is told when one is used.
        let Ok(tables) = self.permissions() else { return Ok(()) };
        let defined = defined(&tables, self.layers.iter().map(|(_, config)| config));
        for (_, config) in &mut self.layers {
            if let Some(fault) = config.check_names(&defined).into_iter().next() {
                return Err(fault.into());
            }
        }
        Ok(())
    }

    fn add_project(&mut self, file: ProjectFile) -> Result<(), Failure> {
        let project = Project::judge(file, &self.taken(), &self.permissions()?)?;
        self.notices.extend(project.notices());
        self.project = Some(project);
        Ok(())
    }

    /// Whether one of the stronger layers is this very file.
    pub(crate) fn reads(&self, file: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let file = real(file);
        file.is_some() && self.layers.iter().any(|(path, _)| real(path) == file)
    }

    /// Names that a project may not use, with whose they are.
    pub(crate) fn taken(&self) -> Vec<(ServerName, Origin)> {
        let of = |config: &Config| -> Vec<(ServerName, Origin)> {
            config.server_names().map(|name| (name.clone(), config.origin)).collect()
        };
        self.layers.iter().flat_map(|(_, config)| of(config)).collect()
    }

    /// Files that are in force, strongest first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let project = self.project.iter().filter(|project| project.is_trusted());
        self.layers.iter().map(|(path, _)| path.as_path()).chain(project.map(Project::path))
    }

    /// The layers that are in force, strongest first, with their files.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (&Path, &Config)> {
        let project =
            self.project.iter().filter_map(|project| Some((project.path(), project.in_force()?)));
        self.layers.iter().map(|(path, config)| (path.as_path(), config)).chain(project)
    }

    /// What a person should know, each once: keys that are recognised and not honoured yet, entries that are refused,
    /// a project's file that nobody consented to.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.notices.iter().map(String::as_str)
    }

    /// A server comes whole from the strongest layer that has it.
    pub(crate) fn server(
        &self,
        name: &str,
    ) -> Option<(ServerName, Result<ServerConfig, ConfigError>)> {
        self.layers()
            .flat_map(|(_, config)| &config.servers)
            .find(|(present, _)| present.as_str() == name)
            .map(|(name, server)| (name.clone(), server.clone()))
    }

    /// An environment that an operator named, from the strongest layer that has it.
    pub(crate) fn environment(
        &self,
        id: &EnvironmentId,
    ) -> Option<Result<&EnvironmentSettings, ConfigError>> {
        let found = self.layers.iter().find_map(|(_, config)| config.environments.get(id.as_str()));
        found.map(|settings| settings.as_ref().map_err(ConfigError::clone))
    }

    /// Whether servers can run on this machine. Who says no is obeyed, and nobody who says what it is instead.
    pub(crate) fn has_local_environment(&self) -> Result<bool, ConfigError> {
        let local = EnvironmentId::local();
        self.environment(&local).transpose()?;
        Ok(self.layers.iter().all(|(_, config)| config.local_environment))
    }

    /// Names of servers that may be used, strongest layer first; a name may come twice.
    pub(crate) fn server_names(&self) -> impl Iterator<Item = &ServerName> {
        self.layers().flat_map(|(_, config)| config.server_names())
    }

    /// Why a server that only a project's file defines cannot be used, if `text` (a server, or a server and a tool)
    /// names one.
    pub(crate) fn refused_server(&self, text: &str) -> Option<Failure> {
        self.project.as_ref()?.refusal(text)
    }

    /// The launcher that an operator put in place of this program.
    pub(crate) fn launcher(&self) -> Option<&Path> {
        self.layers.iter().find_map(|(_, config)| config.launcher.as_deref())
    }

    /// Whether an operator lets commands run without a launcher.
    pub(crate) fn allow_unsandboxed(&self) -> bool {
        self.layers.iter().any(|(_, config)| config.allow_unsandboxed)
    }

    /// The company's identity provider; whole from the strongest layer that has it, never a project's.
    pub(crate) fn identity_provider(&self) -> Option<&IdentityProviderConfig> {
        self.layers.iter().find_map(|(_, config)| config.identity_provider.as_ref())
    }

    /// The provider of the person's own account; as above.
    pub(crate) fn account(&self) -> Option<&IdentityProviderConfig> {
        self.layers.iter().find_map(|(_, config)| config.account.as_ref())
    }

    /// Where credentials are kept; whole from the strongest layer that says anything of it.
    pub(crate) fn credentials(&self) -> CredentialsConfig {
        let said = self.layers.iter().find_map(|(_, config)| config.credentials.clone());
        said.unwrap_or_default()
    }

    /// Where calls are recorded.
    pub(crate) fn audit_file(&self) -> Option<&Path> {
        self.layers.iter().find_map(|(_, config)| config.audit_file.as_deref())
    }

    /// The user's profile of a call that names none, whatever a project says.
    fn default_permissions(&self) -> Option<&str> {
        self.layers.iter().find_map(|(_, config)| config.default_permissions.as_deref())
    }

    /// Named profiles of the managed and the user's file; a stronger layer's name wins.
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

/// What files may name, by the profiles that there are and the files with environments.
pub(crate) fn defined<'a>(
    tables: &PermissionTables,
    configs: impl IntoIterator<Item = &'a Config>,
) -> Defined {
    let profiles = Defined::new(tables.choices().map(str::to_owned));
    configs.into_iter().fold(profiles, Defined::with_environments_of)
}
