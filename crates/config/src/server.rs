//! One configured server: what was written, checked; and what to start or to reach, once its
//! placeholders are filled in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plenipo_connect::environment::EnvironmentId;
use plenipo_redact::Secret;

use crate::enterprise::EnterpriseConfig;
use crate::error::ConfigError;
use crate::limits::Limits;
use crate::names::Use;
use crate::oauth::OAuthConfig;
use crate::template::{StartContext, Template};
use crate::{ApprovalSettings, Origin, http};
use plenipo_connect::Approvals;
use plenipo_connect::ConnectOptions;
use plenipo_connect::Endpoint;
use plenipo_connect::HttpEndpoint;
use plenipo_connect::HttpFault;
use plenipo_connect::RestartPolicy;
use plenipo_connect::ShutdownPolicy;
use plenipo_connect::StdioCommand;
use plenipo_connect::ToolFilter;
use plenipo_connect::environment;

/// One server.
///
/// | key | of | type | default |
/// |---|---|---|---|
/// | `command` | stdio | string | required |
/// | `args` | stdio | \[string\] | none |
/// | `env` | stdio | {string: string} | none |
/// | `env_vars` | stdio | \[string \| {name, source = "local"}\] | none |
/// | `cwd` | stdio | path | the host's |
/// | `url` | HTTP | `http://…` or `https://…` | required |
/// | `bearer_token_env_var` | HTTP | name of a variable | none |
/// | `http_headers` | HTTP | {name: value} | none |
/// | `env_http_headers` | HTTP | {name: name of a variable} | none |
/// | `http_headers_helper` | HTTP | \[string\]: program and arguments | none |
/// | `scopes` | HTTP | \[string\] | what the server asks for |
/// | `oauth_resource` | HTTP | URL | what the server publishes |
/// | `oauth` | HTTP | [`OAuthConfig`] | none |
/// | `auth` | HTTP | `oauth`, `enterprise` or `ema_auth`, the same | `oauth` |
/// | `enterprise` | HTTP, with `auth = "enterprise"` | [`EnterpriseConfig`] | none |
/// | `enabled` | both | bool | true |
/// | `required` | both | bool | false |
/// | `startup_timeout_sec` (or `startup_timeout_ms`, which is weaker) | both | seconds | 30 |
/// | `tool_timeout_sec` | both | seconds | 300 |
/// | `tools.NAME.tool_timeout_sec` | both | seconds | `tool_timeout_sec` |
/// | those of [`Limits`] | both | numbers | [`ConnectOptions`] |
/// | `tool_total_timeout_sec` | both | seconds | four times that |
/// | `restart` | stdio | `on-failure` or `never` | `on-failure` |
/// | `shutdown` | stdio | `background` or `wait` | `background` |
/// | `enabled_tools`, `disabled_tools` | both | \[string\] | every tool |
/// | `default_tools_approval_mode`, `tools.NAME.approval_mode` | both | `auto`, `prompt`, `writes` or `approve` | `auto` |
/// | `trust_annotations` | both | bool | false |
/// | `sandbox` | stdio | name of a profile that the server itself runs under, or `off` | `sandbox.default_for_servers` |
/// | `environment_id` | stdio | name of an environment | `local` |
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Whether it may be started.
    pub state: ServerState,
    /// How it is reached.
    pub transport: TransportSettings,
    /// The host should fail when this server does.
    pub required: bool,
    /// Limit of start and handshake.
    pub startup_timeout: Option<Duration>,
    /// Limit of a call without an answer or progress.
    pub tool_timeout: Option<Duration>,
    /// The same for tools that have their own.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// Sizes and counts.
    pub limits: Limits,
    /// Limit of a call whatever its progress.
    pub tool_total_timeout: Option<Duration>,
    /// Whether a host that keeps the server starts it again.
    pub restart: RestartPolicy,
    /// Who waits for its end.
    pub shutdown: ShutdownPolicy,
    /// Which tools exist.
    pub tools: ToolFilter,
    /// Which calls somebody has to approve.
    pub approval: ApprovalSettings,
    /// Profile that the server itself runs under, or `off`; absent: what is usual for servers.
    pub sandbox: Option<String>,
    /// Where it runs; absent: on this machine.
    pub environment_id: Option<EnvironmentId>,
    /// How far the file it was read from is trusted.
    pub origin: Origin,
    /// The file it was read from, as the caller named it.
    pub file: String,
    /// Line of its table, counted from 1.
    pub line: usize,
    /// What a person should know and nothing stops: a secret that would be visible in `args`.
    pub warnings: Vec<ConfigError>,
    /// The profile and the environment that it names.
    pub(crate) names: Vec<Use>,
}

/// Whether a server may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It may.
    Enabled,
    /// It may not.
    Disabled {
        /// Why, as a fragment: `enabled = false`, `not honoured yet: tools`.
        reason: String,
    },
}

/// How a server is reached, as written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TransportSettings {
    /// A process on this machine.
    Stdio(StdioSettings),
    /// Streamable HTTP.
    Http(HttpSettings),
}

/// A server that is started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StdioSettings {
    /// Program: a path with a slash, or a name looked up in the child's `PATH`.
    pub command: Template,
    /// Arguments; there is no shell.
    pub args: Vec<Template>,
    /// Variables set to a value.
    pub env: BTreeMap<String, Template>,
    /// Variables passed on from the host by name.
    pub env_vars: Vec<String>,
    /// Working directory.
    pub cwd: Option<Template>,
}

/// A server that is reached by URL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// `http://…` or `https://…`; checked when it is read as far as it has no placeholders.
    pub url: Template,
    /// Variable that holds a bearer token; its header replaces an `Authorization` of `headers`.
    pub bearer_token_env_var: Option<String>,
    /// Headers by name as written; no two names differ only in case, none is the transport's own.
    pub headers: Vec<(String, HeaderValueSource)>,
    /// Program and arguments that print headers; never empty.
    pub headers_helper: Option<Vec<Template>>,
    /// About signing in.
    pub oauth: Box<OAuthConfig>,
    /// With `auth = "enterprise"`: the company's identity provider gives the tokens, and nobody else.
    pub enterprise: Option<EnterpriseConfig>,
}

/// Where a header's value comes from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HeaderValueSource {
    /// `http_headers`.
    Written(Template),
    /// `env_http_headers`: the variable's name, in a template `${NAME}` that fills it in.
    Variable(Template),
}

impl ServerConfig {
    /// What `sandbox` says instead of a profile: the server runs unconfined.
    pub const UNCONFINED: &str = "off";

    /// Fills the placeholders in, once.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and variable: one that is needed and not set; a URL or a
    /// header that is none once it is filled in.
    pub fn endpoint(&self, context: &StartContext<'_>) -> Result<Endpoint, ConfigError> {
        match &self.transport {
            TransportSettings::Stdio(stdio) => stdio.command(context).map(Endpoint::from),
            TransportSettings::Http(http) => http.endpoint(context).map(Endpoint::from),
        }
    }

    /// What the file itself says that looks like a credential, if anything: a header, or a variable of `env`. Its
    /// key and line are those of [`Template::fault`].
    #[must_use]
    pub fn written_credential(&self) -> Option<&Template> {
        match &self.transport {
            TransportSettings::Http(http) => http.written_credential(),
            TransportSettings::Stdio(stdio) => http::credential_of(&stdio.env),
        }
    }

    /// Puts this server's limits, filter and rules of approval into `options`; who approves is the
    /// host's to add.
    pub fn apply_to(&self, options: &mut ConnectOptions) {
        options.start_timeout = self.startup_timeout.unwrap_or(options.start_timeout);
        options.tool_timeout = self.tool_timeout.unwrap_or(options.tool_timeout);
        options.tool_timeouts.clone_from(&self.tool_timeouts);
        self.limits.apply_to(options);
        options.tool_total_timeout = self.tool_total_timeout.or(options.tool_total_timeout);
        options.restart = self.restart;
        options.shutdown = self.shutdown;
        options.filter = self.tools.clone();
        let mut approvals = Approvals::default();
        approvals.default_mode = self.approval.default_mode;
        approvals.tool_modes.clone_from(&self.approval.tool_modes);
        approvals.trust_annotations = self.approval.trust_annotations;
        approvals.binding = self.origin == Origin::Managed;
        options.approvals = Some(approvals);
    }
}

impl StdioSettings {
    /// What to start.
    ///
    /// # Errors
    /// As for [`ServerConfig::endpoint`].
    pub fn command(&self, context: &StartContext<'_>) -> Result<StdioCommand, ConfigError> {
        let mut command = program(&self.command, &self.args, context)?;
        command.environment(environment::build(
            context.lookup,
            &self.env_vars,
            &self.env(context)?,
        ));
        let cwd = self.cwd.as_ref().map(|cwd| cwd.expand(context)).transpose()?.map(PathBuf::from);
        let cwd = match (cwd, context.directory) {
            (Some(cwd), Some(directory)) => Some(directory.join(cwd)),
            (cwd, directory) => cwd.or_else(|| directory.map(Path::to_path_buf)),
        };
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        Ok(command)
    }

    /// What an environment other than this machine has to start: the configured variables and no others, paths as
    /// they are written.
    ///
    /// # Errors
    /// As for [`ServerConfig::endpoint`].
    pub fn command_elsewhere(
        &self,
        context: &StartContext<'_>,
    ) -> Result<StdioCommand, ConfigError> {
        let here = StartContext { directory: None, ..*context };
        let mut command = program(&self.command, &self.args, &here)?;
        let mut variables = self.env(context)?;
        for name in &self.env_vars {
            let value = (context.lookup)(name).map(OsString::into_string).transpose();
            let value = value
                .map_err(|_| self.command.fault(format!("needs `{name}`, which is not UTF-8")));
            if let Some(value) = value? {
                variables.entry(name.clone()).or_insert_with(|| Secret::new(value));
            }
        }
        command.environment(variables.iter().map(|(name, value)| (name, value.expose())));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd.expand(context)?);
        }
        Ok(command)
    }

    fn env(
        &self,
        context: &StartContext<'_>,
    ) -> Result<BTreeMap<String, Secret<String>>, ConfigError> {
        let mut env = BTreeMap::new();
        for (name, value) in &self.env {
            env.insert(name.clone(), Secret::new(value.expand(context)?));
        }
        Ok(env)
    }
}

/// A program with its arguments. A relative path with a slash is taken from the directory that the
/// host works in, wherever the child is started.
pub(crate) fn program(
    command: &Template,
    args: &[Template],
    context: &StartContext<'_>,
) -> Result<StdioCommand, ConfigError> {
    let program = command.expand(context)?;
    if program.is_empty() {
        return Err(command.fault("is empty once its variables are filled in"));
    }
    let mut stdio = match context.directory.filter(|_| program.contains('/')) {
        Some(directory) => StdioCommand::new(directory.join(&program)),
        None => StdioCommand::new(&program),
    };
    for arg in args {
        stdio.args([arg.expand(context)?]);
    }
    Ok(stdio)
}

impl HttpSettings {
    /// A header that holds a credential as it is written, if one does.
    pub(crate) fn written_credential(&self) -> Option<&Template> {
        self.headers.iter().find_map(|(name, source)| match source {
            HeaderValueSource::Written(value) => {
                http::has_credential(name, &value.own_text()).then_some(value)
            }
            HeaderValueSource::Variable(_) => None,
        })
    }

    /// Whether nothing else is configured that tells the server who asks: then OAuth may.
    #[must_use]
    pub fn may_sign_in(&self) -> bool {
        let authorizes =
            |(name, _): &(String, HeaderValueSource)| name.eq_ignore_ascii_case("authorization");
        self.enterprise.is_none()
            && self.bearer_token_env_var.is_none()
            && self.headers_helper.is_none()
            && !self.headers.iter().any(authorizes)
    }

    /// What to reach.
    ///
    /// # Errors
    /// As for [`ServerConfig::endpoint`].
    pub fn endpoint(&self, context: &StartContext<'_>) -> Result<HttpEndpoint, ConfigError> {
        let url = self.url.expand(context)?;
        let at = |value: &Template| {
            let value = value.clone();
            move |fault: HttpFault| value.fault(fault.to_string())
        };
        let mut endpoint = HttpEndpoint::new(&url).map_err(at(&self.url))?;
        for (name, source) in &self.headers {
            let (HeaderValueSource::Written(value) | HeaderValueSource::Variable(value)) = source;
            let text = Secret::new(value.expand(context)?);
            if text.expose().trim().is_empty() {
                return Err(value.fault("is empty once its variables are filled in"));
            }
            endpoint.header(name, &text).map_err(at(value))?;
        }
        if let Some(name) = &self.bearer_token_env_var {
            let token = Secret::new(self.bearer_token(name, context)?);
            endpoint.bearer(&token).map_err(at(&self.url))?;
        }
        if let Some((command, args)) = self.headers_helper.as_deref().and_then(<[_]>::split_first) {
            let mut helper = program(command, args, context)?;
            helper.environment(environment::build(context.lookup, &[], &BTreeMap::new()));
            if let Some(directory) = context.directory {
                helper.current_dir(directory);
            }
            endpoint.headers_helper(helper);
        }
        Ok(endpoint)
    }

    fn bearer_token(&self, name: &str, context: &StartContext<'_>) -> Result<String, ConfigError> {
        let fault = |what: &str| {
            let reason = format!("needs a bearer token in the variable `{name}`, which {what}");
            self.url.fault(reason)
        };
        let value = (context.lookup)(name).ok_or_else(|| fault("is not set"))?;
        let value = value.into_string().map_err(|_| fault("is not UTF-8"))?;
        match value.trim() {
            "" => Err(fault("is empty")),
            token => Ok(token.to_owned()),
        }
    }
}
