//! Names that somebody has to define: of profiles (`sandbox`, `permissions`, `default_permissions`,
//! `sandbox.default_for_servers`) and of environments (`environment_id`).
//!
//! What defines them may stand in another file, so they are checked when all files are read.

use std::collections::{BTreeMap, BTreeSet};

use plenipo_connect::environment::EnvironmentId;
use plenipo_connect::text::{nearest, shown};

use crate::error::ConfigError;
use crate::node::Place;
use crate::{Config, EnvironmentSettings, ServerConfig, TransportSettings};

/// What files may name: what the managed and the user's configuration define, and what is built in.
#[derive(Debug, Clone, Default)]
pub struct Defined {
    profiles: BTreeSet<String>,
    /// With whether their profile needs a server that says where it runs.
    environments: BTreeMap<String, bool>,
}

impl Defined {
    /// These profiles, the built-in ones among them.
    #[must_use]
    pub fn new(profiles: impl IntoIterator<Item = String>) -> Self {
        let environments = [(EnvironmentId::local().as_str().to_owned(), false)].into();
        Self { profiles: profiles.into_iter().collect(), environments }
    }

    /// With the environments of a file, faulty ones included: their fault is told where they stand.
    #[must_use]
    pub fn with_environments_of(mut self, config: &Config) -> Self {
        for (name, environment) in &config.environments {
            let needs = environment.as_ref().is_ok_and(EnvironmentSettings::needs_directory);
            self.environments.entry(name.clone()).or_insert(needs);
        }
        self
    }
}

/// Whose name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A profile.
    Profile,
    /// A profile that a server runs under, or `off`.
    Confinement,
    /// An environment.
    Environment,
}

/// A name and where it is used.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub(crate) kind: Kind,
    name: String,
    /// The place; its reason is empty.
    at: ConfigError,
}

impl Use {
    pub(crate) fn new(kind: Kind, name: &str, place: &Place<'_>) -> Self {
        Self { kind, name: name.to_owned(), at: place.fault("") }
    }

    /// That the name may not be used where it is.
    pub(crate) fn refused(&self, reason: &str) -> ConfigError {
        ConfigError { reason: reason.to_owned(), ..self.at.clone() }
    }

    fn fault(&self, defined: &Defined) -> Option<ConfigError> {
        let off = (self.kind == Kind::Confinement).then_some(ServerConfig::UNCONFINED);
        let (known, table): (Vec<&str>, _) = match self.kind {
            Kind::Environment => {
                (defined.environments.keys().map(String::as_str).collect(), "environments")
            }
            _ => (defined.profiles.iter().map(String::as_str).collect(), "permissions"),
        };
        if known.contains(&self.name.as_str()) || off == Some(self.name.as_str()) {
            return None;
        }
        let name = shown(&self.name);
        let mut fault = self.at.clone();
        fault.reason = match self.kind {
            Kind::Environment => format!("references unknown environment id `{name}`"),
            _ => format!("should be the name of a profile, found `{name}`, which is not defined"),
        };
        let candidates = known.into_iter().chain(off);
        fault.hint = Some(match nearest(&self.name, candidates) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("define [{table}.{name}] in your own or the managed configuration")
            }
        });
        Some(fault)
    }
}

/// The names in a server's table, of what was given there.
pub(crate) fn of_server(
    given: &[(String, Place<'_>)],
    sandbox: Option<&str>,
    environment: Option<&EnvironmentId>,
) -> Vec<Use> {
    let local = EnvironmentId::local();
    let place = |key: &str| given.iter().find(|(given, _)| given == key).map(|(_, place)| place);
    let confined = place("sandbox").zip(sandbox);
    let bound = place("environment_id").map(|place| (place, environment.unwrap_or(&local)));
    let confined = confined.map(|(place, name)| Use::new(Kind::Confinement, name, place));
    let bound = bound.map(|(place, id)| Use::new(Kind::Environment, id.as_str(), place));
    confined.into_iter().chain(bound).collect()
}

/// The first name that nobody defines.
fn undefined(names: &[Use], defined: &Defined) -> Option<ConfigError> {
    names.iter().find_map(|name| name.fault(defined))
}

/// A server whose environment has a profile, and neither says which directory that is about: it would be ignored.
fn nowhere(server: &ServerConfig, defined: &Defined) -> Option<ConfigError> {
    let name = server.names.iter().find(|name| name.kind == Kind::Environment)?;
    let TransportSettings::Stdio(stdio) = &server.transport else { return None };
    if stdio.cwd.is_some() || !*defined.environments.get(&name.name)? {
        return None;
    }
    let id = shown(&name.name);
    let reason = format!("is `{id}`, whose `permissions` need a `cwd` that begins with `/`");
    let mut fault = name.refused(&reason);
    fault.hint = Some(format!("set `cwd` in [environments.{id}] or for this server"));
    Some(fault)
}

impl Config {
    /// Whether a name stands here that needs [`Config::check_names`].
    #[must_use]
    pub fn has_names(&self) -> bool {
        let environments = self.environments.values().flatten();
        let servers = self.servers.values().flatten();
        !self.names.is_empty()
            || environments.into_iter().any(|environment| !environment.names.is_empty())
            || servers.into_iter().any(|server| !server.names.is_empty())
    }

    /// Makes every server and every environment that names what nobody defines a faulty one. Returns the faults of
    /// names that stand outside of both.
    pub fn check_names(&mut self, defined: &Defined) -> Vec<ConfigError> {
        for environment in self.environments.values_mut() {
            let fault = environment.as_ref().ok().and_then(|it| undefined(&it.names, defined));
            if let Some(fault) = fault {
                *environment = Err(fault);
            }
        }
        for server in self.servers.values_mut() {
            let fault = server
                .as_ref()
                .ok()
                .and_then(|it| undefined(&it.names, defined).or_else(|| nowhere(it, defined)));
            if let Some(fault) = fault {
                *server = Err(fault);
            }
        }
        self.names.iter().filter_map(|name| name.fault(defined)).collect()
    }
}
