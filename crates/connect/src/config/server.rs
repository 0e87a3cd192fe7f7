//! `[mcp_servers.NAME]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plenipo_redact::Secret;
use toml::de::DeValue;

use super::keys;
use super::reader::{Place, Value};
use crate::catalog::ToolFilter;
use crate::environment::{self, Lookup};
use crate::error::ConfigError;
use crate::options::ConnectOptions;
use crate::transport::stdio::StdioCommand;

/// One server, started over stdio on this machine.
///
/// | key | type | default |
/// |---|---|---|
/// | `command` | string | required |
/// | `args` | \[string\] | none |
/// | `env` | {string: string} | none |
/// | `env_vars` | \[string \| {name, source = "local"}\] | none |
/// | `cwd` | path | the host's |
/// | `enabled` | bool | true |
/// | `required` | bool | false |
/// | `startup_timeout_sec` (or `startup_timeout_ms`, which is weaker) | seconds | 30 |
/// | `tool_timeout_sec` | seconds | 300 |
/// | `enabled_tools`, `disabled_tools` | \[string\] | every tool |
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Whether it may be started.
    pub state: ServerState,
    /// Program: a path with a slash, or a name looked up in the child's `PATH`.
    pub command: String,
    /// Arguments; there is no shell.
    pub args: Vec<String>,
    /// Variables set to a value, which may be a secret.
    pub env: BTreeMap<String, Secret<String>>,
    /// Variables passed on from the host by name.
    pub env_vars: Vec<String>,
    /// Working directory.
    pub cwd: Option<PathBuf>,
    /// The host should fail when this server does.
    pub required: bool,
    /// Limit of start and handshake.
    pub startup_timeout: Option<Duration>,
    /// Limit of a call.
    pub tool_timeout: Option<Duration>,
    /// Which tools exist.
    pub tools: ToolFilter,
}

/// Whether a server may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It may.
    Enabled,
    /// It may not.
    Disabled {
        /// Why, as a fragment: `enabled = false`, `key url is not honoured yet`.
        reason: String,
    },
}

impl ServerConfig {
    /// What to start. `lookup` gives the host's environment variables.
    #[must_use]
    pub fn command(&self, lookup: Lookup<'_>) -> StdioCommand {
        let environment = environment::build(lookup, &self.env_vars, &self.env);
        let mut command = StdioCommand::new(&self.command);
        command.args(&self.args).environment(environment);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }

    /// Puts this server's limits and filter into `options`.
    pub fn apply_to(&self, options: &mut ConnectOptions) {
        options.start_timeout = self.startup_timeout.unwrap_or(options.start_timeout);
        options.tool_timeout = self.tool_timeout.unwrap_or(options.tool_timeout);
        options.filter = self.tools.clone();
    }
}

/// A server while its keys are read.
#[derive(Default)]
struct Draft {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, Secret<String>>,
    env_vars: Vec<String>,
    cwd: Option<PathBuf>,
    enabled: Option<bool>,
    required: bool,
    startup_seconds: Option<Duration>,
    startup_milliseconds: Option<Duration>,
    tool_timeout: Option<Duration>,
    enabled_tools: Option<Vec<String>>,
    disabled_tools: Vec<String>,
    not_yet: Vec<String>,
    has_url: bool,
}

pub(super) fn read_server(
    value: &Value<'_>,
    place: &Place<'_>,
) -> Result<ServerConfig, ConfigError> {
    let mut draft = Draft::default();
    for (key, value) in place.table(value)? {
        draft.take(key.get_ref(), value, &place.member(key))?;
    }
    draft.finish(place)
}

impl Draft {
    fn take(&mut self, key: &str, value: &Value<'_>, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "command" => self.command = Some(place.string(value)?),
            "args" => self.args = place.strings(value)?,
            "env" => self.env = literal(value, place)?,
            "env_vars" => self.env_vars = forwarded(value, place)?,
            "cwd" => self.cwd = Some(PathBuf::from(place.string(value)?)),
            "enabled" => self.enabled = Some(place.boolean(value)?),
            "required" => self.required = place.boolean(value)?,
            "startup_timeout_sec" => self.startup_seconds = Some(seconds(value, place)?),
            "startup_timeout_ms" => self.startup_milliseconds = Some(milliseconds(value, place)?),
            "tool_timeout_sec" => self.tool_timeout = Some(seconds(value, place)?),
            "enabled_tools" => self.enabled_tools = Some(place.strings(value)?),
            "disabled_tools" => self.disabled_tools = place.strings(value)?,
            "bearer_token" => {
                return Err(place.fault("is never read from a file: use `bearer_token_env_var`"));
            }
            known if keys::NOT_YET.contains(&known) => {
                self.has_url |= known == "url";
                self.not_yet.push(known.to_owned());
            }
            unknown => {
                let known = keys::HONOURED.into_iter().chain(keys::NOT_YET);
                return Err(place.unknown_key(unknown, known));
            }
        }
        Ok(())
    }

    fn finish(self, place: &Place<'_>) -> Result<ServerConfig, ConfigError> {
        if self.has_url && self.command.is_some() {
            return Err(place.fault("has both `command` and `url`: a server has one transport"));
        }
        if self.command.is_none() && !self.has_url {
            return Err(place.fault("has neither `command` nor `url`"));
        }
        if self.command.as_deref() == Some("") {
            return Err(place.fault("has an empty `command`"));
        }
        let state = if self.enabled == Some(false) {
            ServerState::Disabled { reason: "`enabled = false`".to_owned() }
        } else if self.not_yet.is_empty() {
            ServerState::Enabled
        } else {
            let keys: Vec<_> = self.not_yet.iter().map(|key| format!("`{key}`")).collect();
            ServerState::Disabled { reason: format!("not honoured yet: {}", keys.join(", ")) }
        };
        Ok(ServerConfig {
            state,
            command: self.command.unwrap_or_default(),
            args: self.args,
            env: self.env,
            env_vars: self.env_vars,
            cwd: self.cwd,
            required: self.required,
            startup_timeout: self.startup_seconds.or(self.startup_milliseconds),
            tool_timeout: self.tool_timeout,
            tools: ToolFilter::new(self.enabled_tools, self.disabled_tools),
        })
    }
}

fn literal(
    value: &Value<'_>,
    place: &Place<'_>,
) -> Result<BTreeMap<String, Secret<String>>, ConfigError> {
    let mut variables = BTreeMap::new();
    for (name, value) in place.table(value)? {
        let place = place.member(name);
        let value = Secret::new(place.string(value)?);
        variables.insert(variable_name(name.get_ref(), &place)?, value);
    }
    Ok(variables)
}

fn forwarded(value: &Value<'_>, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    let mut names = Vec::new();
    for (place, item) in place.array(value)? {
        if let Some(name) = item.get_ref().as_str() {
            names.push(variable_name(name, &place)?);
            continue;
        }
        let table = item
            .get_ref()
            .as_table()
            .ok_or_else(|| place.wrong_type("a name or a table {name, source}", item.get_ref()))?;
        let mut name = None;
        for (key, value) in table {
            let place = place.member(key);
            match &**key.get_ref() {
                "name" => name = Some(variable_name(&place.string(value)?, &place)?),
                "source" => match place.string(value)?.as_str() {
                    "local" => {}
                    "remote" => return Err(place.fault("is `remote`, but this server is local")),
                    _ => return Err(place.fault("should be `local` or `remote`")),
                },
                unknown => {
                    return Err(place.unknown_key(unknown, ["name", "source"].into_iter()));
                }
            }
        }
        names.push(name.ok_or_else(|| place.fault("has no `name`"))?);
    }
    Ok(names)
}

fn variable_name(name: &str, place: &Place<'_>) -> Result<String, ConfigError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(place.fault("is not the name of an environment variable"));
    }
    Ok(name.to_owned())
}

fn seconds(value: &Value<'_>, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let number = match value.get_ref() {
        DeValue::Integer(integer) => decimal(integer.as_str(), integer.radix()),
        DeValue::Float(float) => float.as_str().replace('_', "").parse::<f64>().ok(),
        other => return Err(place.wrong_type("a number of seconds", other)),
    };
    number
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| place.fault("should be a number of seconds above 0 and below 30 days"))
}

fn milliseconds(value: &Value<'_>, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let DeValue::Integer(integer) = value.get_ref() else {
        return Err(place.wrong_type("a whole number of milliseconds", value.get_ref()));
    };
    u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix())
        .ok()
        .filter(|milliseconds| *milliseconds > 0)
        .map(Duration::from_millis)
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| place.fault("should be a number of milliseconds above 0 and below 30 days"))
}

/// Clocks far in the future overflow on some systems; 30 days is for ever here.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

fn decimal(text: &str, radix: u32) -> Option<f64> {
    let number = u32::from_str_radix(&text.replace('_', ""), radix).ok()?;
    Some(f64::from(number))
}
