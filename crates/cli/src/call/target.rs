//! Which server and tool `SERVER.TOOL` means.

use plenipo_connect::catalog::{Catalog, Lookup, Tool};
use plenipo_connect::config::{Endpoint, ServerConfig, ServerState, StartContext};
use plenipo_connect::{ConnectOptions, EraHint, ServerName, StdioCommand, environment};

use crate::arguments::Global;
use crate::env;
use crate::failure::{Code, Failure};
use crate::settings::Settings;

/// A server that can be started, and the name of one of its tools.
pub(super) struct Target {
    pub(super) server: ServerName,
    pub(super) tool: String,
    /// Absent for the built-in server.
    config: Option<ServerConfig>,
}

impl Target {
    /// The longest known server name that is followed by a dot wins, because both names may hold dots.
    pub(super) fn find(settings: &Settings, text: &str) -> Result<Self, Failure> {
        let split = |name: &str| {
            text.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('.'))
                .filter(|tool| !tool.is_empty())
                .map(|tool| (name.len(), tool.to_owned()))
        };
        let configured = settings.server_names().filter_map(|name| split(name.as_str()));
        let longest =
            configured.chain(split(ServerName::WORKSPACE)).max_by_key(|(length, _)| *length);
        let Some((length, tool)) = longest else { return Err(unknown(settings, text)) };
        let name = text.get(..length).unwrap_or_default();
        if name == ServerName::WORKSPACE {
            return Ok(Self { server: ServerName::workspace(), tool, config: None });
        }
        let Some((server, config)) = settings.server(name) else {
            return Err(unknown(settings, text));
        };
        let config = config?;
        if let ServerState::Disabled { reason } = &config.state {
            return Err(Failure::usage(format!("server `{server}` is disabled: {reason}")));
        }
        Ok(Self { server, tool, config: Some(config) })
    }

    /// How to start the server; puts what is known about it into `options`.
    pub(super) fn prepare(
        &self,
        global: &Global,
        options: &mut ConnectOptions,
    ) -> Result<StdioCommand, Failure> {
        let lookup = |name: &str| env::variable(name);
        if let Some(config) = &self.config {
            config.apply_to(options);
            return match config.endpoint(&StartContext::new(&lookup))? {
                Endpoint::Stdio(command) => Ok(command),
                _ => Err(Failure::usage(format!(
                    "server `{}` is reached by URL, which is not supported yet",
                    self.server
                ))),
            };
        }
        let executable = env::executable().map_err(|error| {
            Failure::new(
                Code::Transport,
                format!("failed to find this program's own file: {error}"),
            )
        })?;
        options.era = EraHint::Legacy; // both are spoken; this one takes no probe
        let mut command = StdioCommand::new(executable);
        if let Some(file) = given_configuration(global) {
            command.args([std::ffi::OsStr::new("--config"), file.as_os_str()]);
        }
        command.args(["server", "workspace"]);
        let nothing = std::collections::BTreeMap::new();
        command.environment(environment::build(&lookup, &[], &nothing));
        Ok(command)
    }
}

/// The server gets a short environment, so a configuration that was named in this one is named to it.
fn given_configuration(global: &Global) -> Option<std::path::PathBuf> {
    let named = global.config.clone().or_else(|| env::variable("PLENIPO_CONFIG").map(Into::into));
    let usual = || {
        let file = env::configuration_directory()?.join("plenipo.toml");
        file.is_file().then_some(file)
    };
    named.and_then(|file| std::path::absolute(file).ok()).or_else(usual)
}

fn unknown(settings: &Settings, text: &str) -> Failure {
    let mut names: Vec<&str> = settings.server_names().map(ServerName::as_str).collect();
    names.push(ServerName::WORKSPACE);
    names.sort_unstable();
    names.dedup();
    if names.contains(&text) {
        return Failure::usage(format!("`{text}` names a server and no tool"))
            .with_hint(format!("write it as {text}.TOOL"));
    }
    Failure::usage(format!("no configured server fits `{text}`, which should be SERVER.TOOL"))
        .with_hint(format!("known servers: {}", names.join(", ")))
}

/// The tool, or a failure that names what there is.
pub(super) fn tool<'a>(catalog: &'a Catalog, target: &Target) -> Result<&'a Tool, Failure> {
    let Target { server, tool: name, .. } = target;
    match catalog.find(name) {
        Lookup::Found(tool) => Ok(tool),
        Lookup::Disabled => Err(Failure::new(
            Code::Refused,
            format!("tool `{name}` of server `{server}` is disabled by the configuration"),
        )),
        Lookup::Missing { nearest } => {
            let message = format!("server `{server}` has no tool `{name}`");
            let hint = match nearest {
                Some(nearest) => format!("did you mean `{server}.{nearest}`?"),
                None => {
                    let names: Vec<&str> = catalog.tools().map(Tool::name).take(20).collect();
                    format!("its tools: {}", names.join(", "))
                }
            };
            Err(Failure::usage(message).with_hint(hint))
        }
        _ => Err(Failure::usage(format!("tool `{name}` of server `{server}` cannot be used"))),
    }
}
