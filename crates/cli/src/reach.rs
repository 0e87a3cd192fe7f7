//! How the servers of the configuration are reached: what `call`, `tools` and `servers` have in common.

mod elsewhere;
mod host;

use std::path::PathBuf;

use plenipo_config::{
    EnvironmentSettings, ServerConfig, ServerState, StartContext, TransportSettings,
};
use plenipo_connect::{Endpoint, EraHint, Member, ServerName, ShutdownPolicy};
use plenipo_keeper::Keeper;

use crate::failure::Failure;
use crate::settings::Settings;
use crate::{confined, env, terminal};

pub(crate) use elsewhere::failed_in_place;
pub(crate) use host::Host;

use elsewhere::not_bound;

/// A server that may be started.
pub(crate) struct Reachable {
    pub(crate) name: ServerName,
    /// Absent for the built-in server.
    config: Option<ServerConfig>,
}

/// Why a server may not be started.
pub(crate) enum Unreachable {
    /// Switched off, with the reason.
    Disabled(String),
    /// Its configuration is wrong.
    Faulty(Failure),
}

impl Reachable {
    /// The built-in server.
    pub(crate) fn workspace() -> Self {
        Self { name: ServerName::workspace(), config: None }
    }

    /// A server by its name; `None` if nothing has that name.
    pub(crate) fn find(settings: &Settings, name: &str) -> Option<Result<Self, Unreachable>> {
        if name == ServerName::WORKSPACE {
            return Some(Ok(Self::workspace()));
        }
        let (name, config) = settings.server(name)?;
        Some(match config {
            Ok(config) => match &config.state {
                ServerState::Disabled { reason } => Err(Unreachable::Disabled(reason.clone())),
                _ => Ok(Self { name, config: Some(config) }),
            },
            Err(error) => Err(Unreachable::Faulty(error.into())),
        })
    }

    /// Every server, the configured ones by name and then the built-in one.
    pub(crate) fn all(settings: &Settings) -> Vec<(ServerName, Result<Self, Unreachable>)> {
        let mut names: Vec<&ServerName> = settings.server_names().collect();
        names.sort();
        names.dedup();
        let configured = names
            .into_iter()
            .filter_map(|name| Some((name.clone(), Self::find(settings, name.as_str())?)));
        configured.chain([(ServerName::workspace(), Ok(Self::workspace()))]).collect()
    }

    /// The host fails when this server does.
    pub(crate) fn is_required(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.required)
    }

    /// `stdio`, `http` or `built-in`.
    pub(crate) fn transport(&self) -> &'static str {
        match &self.config {
            None => "built-in",
            Some(config) => match config.transport {
                TransportSettings::Http(_) => "http",
                _ => "stdio",
            },
        }
    }

    /// Whether it is a process of this machine, of somebody else's program.
    pub(crate) fn is_local(&self) -> bool {
        self.config.as_ref().is_some_and(|config| {
            config.environment_id.is_none()
                && matches!(config.transport, TransportSettings::Stdio(_))
        })
    }

    /// Where it runs, if that is not this machine.
    pub(crate) fn environment<'s>(
        &self,
        settings: &'s Settings,
    ) -> Result<Option<&'s EnvironmentSettings>, Failure> {
        let local = match &self.config {
            None => true,
            Some(config) => matches!(config.transport, TransportSettings::Stdio(_)),
        };
        let Some(id) = self.config.as_ref().and_then(|config| config.environment_id.as_ref())
        else {
            if local && !settings.has_local_environment()? {
                let message = format!(
                    "server `{}` requires a local environment, which is switched off",
                    self.name
                );
                return Err(Failure::usage(message).with_hint(
                    "`environments.local.enabled = false` stands in the configuration",
                ));
            }
            return Ok(None);
        };
        match settings.environment(id) {
            Some(found) => Ok(Some(found?)),
            None => {
                let message =
                    format!("server `{}` references unknown environment id `{id}`", self.name);
                Err(Failure::usage(message).with_hint(format!(
                    "define [environments.{id}] in your own or the managed configuration"
                )))
            }
        }
    }

    /// The same server outside of any sandbox, whatever its configuration says.
    #[must_use]
    pub(crate) fn unconfined(mut self) -> Self {
        if let Some(config) = &mut self.config {
            config.sandbox = Some(ServerConfig::UNCONFINED.to_owned());
        }
        self
    }

    /// Names of the variables that its configuration sets.
    pub(crate) fn variables_set(&self) -> impl Iterator<Item = &str> {
        let stdio = self.config.iter().filter_map(|config| match &config.transport {
            TransportSettings::Stdio(stdio) => Some(stdio),
            _ => None,
        });
        stdio.flat_map(|stdio| stdio.env.keys().chain(&stdio.env_vars)).map(String::as_str)
    }

    /// The profile that the server itself runs under. The built-in server and servers elsewhere have none.
    pub(crate) fn confinement<'s>(&'s self, settings: &'s Settings) -> Option<&'s str> {
        let config = self.config.as_ref().filter(|config| config.environment_id.is_none())?;
        let TransportSettings::Stdio(_) = config.transport else { return None };
        let profile = config.sandbox.as_deref().or_else(|| settings.sandbox_of_servers());
        profile.filter(|profile| *profile != ServerConfig::UNCONFINED)
    }

    /// The server's own directory over there, else the environment's.
    pub(crate) fn directory_in(
        &self,
        place: &EnvironmentSettings,
    ) -> Result<Option<PathBuf>, Failure> {
        let own = match self.config.as_ref().map(|config| &config.transport) {
            Some(TransportSettings::Stdio(stdio)) => stdio.cwd.as_ref(),
            _ => None,
        };
        let home = env::home();
        let lookup = |name: &str| env::variable(name);
        let mut context = StartContext::new(&lookup);
        context.home = home.as_deref();
        let own = own.map(|cwd| cwd.expand(&context)).transpose()?;
        Ok(own.or_else(|| place.cwd.clone()).map(PathBuf::from))
    }

    /// Its keeper, when it will be a process of this machine: started early, it is ready when it is needed.
    pub(crate) fn start_keeper(&self) -> Option<Option<Keeper>> {
        (self.transport() != "http").then(host::start_keeper)
    }

    /// The server with everything filled in that its start needs.
    pub(crate) fn member(&self, host: &Host<'_>) -> Result<Member, Failure> {
        let mut options = host.options();
        let place = self.environment(host.settings())?;
        if let Some(place) = place {
            place.apply_to(&mut options);
        }
        let Some(config) = &self.config else {
            options.era = EraHint::Legacy; // both are spoken; this one takes no probe
            host.keep(&mut options);
            return Ok(Member::new(self.name.clone(), host.own_server()?, options));
        };
        config.apply_to(&mut options);
        if host.is_verbose() {
            // Its last words are wanted, too.
            options.shutdown = ShutdownPolicy::Wait;
        }
        options.memory = host.memory();
        let lookup = |name: &str| env::variable(name);
        let home = env::home();
        let mut context = StartContext::new(&lookup);
        context.home = home.as_deref();
        context.directory = Some(host.directory());
        for warning in &config.warnings {
            terminal::warn(&warning.to_string());
        }
        let mut endpoint = match (place, &config.transport) {
            (Some(place), TransportSettings::Stdio(stdio)) => {
                let bound = place.environment(&context)?.bind(&stdio.command_elsewhere(&context)?);
                Endpoint::from(bound.map_err(|fault| not_bound(&self.name, &fault))?)
            }
            _ => config.endpoint(&context)?,
        };
        if let (Some(profile), Endpoint::Stdio(command)) =
            (self.confinement(host.settings()), &endpoint)
        {
            endpoint =
                Endpoint::from(confined::command(host.settings(), &self.name, profile, command)?);
        }
        match &mut endpoint {
            // Nothing is listened for between a command's few requests.
            Endpoint::Http(http) => {
                http.server_stream(false);
                if let TransportSettings::Http(settings) = &config.transport {
                    host.authorize(&self.name, http, settings)?;
                }
            }
            _ => host.keep(&mut options),
        }
        Ok(Member::new(self.name.clone(), endpoint, options))
    }
}

impl Unreachable {
    /// As a failure of a command that needs this very server.
    pub(crate) fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Disabled(reason) => {
                Failure::usage(format!("server `{name}` is disabled: {reason}"))
            }
            Self::Faulty(failure) => failure,
        }
    }
}
