//! A server while its keys are read.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::enterprise::{self, EnterpriseConfig};
use crate::error::ConfigError;
use crate::format::Format;
use crate::keys::{self, Meaning};
use crate::limits::Limits;
use crate::node::{Node, Place, Value};
use crate::oauth::OAuthConfig;
use crate::scalar::{
    forwarded, looked_up, milliseconds, restart, seconds, shutdown, variable_name,
};
use crate::server::{
    HeaderValueSource, HttpSettings, ServerConfig, ServerState, StdioSettings, TransportSettings,
};
use crate::template::{Template, TemplateFault};
use crate::{ApprovalSettings, Origin, approval, helper, http, names, places};
use plenipo_connect::environment::EnvironmentId;
use plenipo_connect::{RestartPolicy, ShutdownPolicy, ToolFilter};

pub(crate) fn read_server(
    format: Format,
    node: &Node,
    place: &Place<'_>,
) -> Result<ServerConfig, ConfigError> {
    let mut draft = Draft::new(format);
    for (name, value) in place.table(node)? {
        draft.take(&name.text, value, place.member(name))?;
    }
    draft.finish(place)
}

struct Draft<'a> {
    format: Format,
    /// What was given, under the reference schema's names.
    given: Vec<(String, Place<'a>)>,
    kind: Option<(String, Place<'a>)>,
    command: Option<Template>,
    args: Vec<Template>,
    env: BTreeMap<String, Template>,
    env_vars: Vec<String>,
    cwd: Option<Template>,
    url: Option<Template>,
    bearer_token_env_var: Option<String>,
    headers: Vec<(String, HeaderValueSource)>,
    headers_helper: Option<Vec<Template>>,
    oauth: OAuthConfig,
    is_managed: bool,
    enterprise: Option<EnterpriseConfig>,
    enabled: bool,
    off: Option<&'static str>,
    required: bool,
    startup_seconds: Option<Duration>,
    startup_milliseconds: Option<Duration>,
    tool_timeout: Option<Duration>,
    tool_timeouts: BTreeMap<String, Duration>,
    limits: Limits,
    tool_total_timeout: Option<Duration>,
    restart: RestartPolicy,
    shutdown: ShutdownPolicy,
    enabled_tools: Option<Vec<String>>,
    disabled_tools: Vec<String>,
    approval: ApprovalSettings,
    environment: Option<EnvironmentId>,
    sandbox: Option<String>,
    /// Why it cannot be started yet.
    reasons: Vec<String>,
    not_yet: Vec<String>,
}

impl<'a> Draft<'a> {
    fn new(format: Format) -> Self {
        Self {
            format,
            given: Vec::new(),
            kind: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            env_vars: Vec::new(),
            cwd: None,
            url: None,
            bearer_token_env_var: None,
            headers: Vec::new(),
            headers_helper: None,
            oauth: OAuthConfig::default(),
            is_managed: false,
            enterprise: None,
            enabled: true,
            off: None,
            required: false,
            startup_seconds: None,
            startup_milliseconds: None,
            tool_timeout: None,
            tool_timeouts: BTreeMap::new(),
            limits: Limits::default(),
            tool_total_timeout: None,
            restart: RestartPolicy::default(),
            shutdown: ShutdownPolicy::default(),
            enabled_tools: None,
            disabled_tools: Vec::new(),
            approval: ApprovalSettings::default(),
            environment: None,
            sandbox: None,
            reasons: Vec::new(),
            not_yet: Vec::new(),
        }
    }

    fn take(&mut self, key: &str, node: &Node, place: Place<'a>) -> Result<(), ConfigError> {
        if self.given.iter().any(|(_, other)| other.key() == place.key()) {
            return Err(place.fault("is given twice"));
        }
        match keys::meaning(self.format, key) {
            Meaning::Honoured(meant) => {
                self.honour(meant, node, &place)?;
                self.given.push((meant.to_owned(), place));
            }
            Meaning::NotYet => {
                if !is_default(key, node) {
                    self.not_yet.push(format!("`{key}`"));
                }
                self.given.push((key.to_owned(), place));
            }
            Meaning::Descriptive => {}
            Meaning::Unknown if key == "bearer_token" => {
                let mut fault =
                    place.fault("is never read from a file: use `bearer_token_env_var`");
                fault.hint = Some(
                    "put the token into an environment variable and name it in \
                     `bearer_token_env_var`"
                        .to_owned(),
                );
                return Err(fault);
            }
            Meaning::Unknown => return Err(place.unknown_key(key, keys::known(self.format))),
        }
        Ok(())
    }

    fn honour(&mut self, key: &str, node: &Node, place: &Place<'a>) -> Result<(), ConfigError> {
        match key {
            "type" => self.kind = Some((place.string(node)?, place.clone())),
            "command" => self.command = Some(self.template(node, place)?),
            "args" => self.args = self.templates(node, place)?,
            "env" => self.env = self.variables(node, place)?,
            "env_vars" => self.env_vars = forwarded(node, place)?,
            "cwd" => self.cwd = Some(self.template(node, place)?),
            "url" => self.url = Some(self.url(node, place)?),
            "bearer_token_env_var" => {
                self.bearer_token_env_var = Some(looked_up(&place.string(node)?, place)?);
            }
            "http_headers" => self.headers(node, place)?,
            "env_http_headers" => self.headers_from_variables(node, place)?,
            "http_headers_helper" => self.headers_helper = Some(self.helper(node, place)?),
            "scopes" => self.oauth.scopes(node, place)?,
            "oauth_resource" => self.oauth.resource(node, place)?,
            "oauth" => self.oauth.table(node, place)?,
            "auth" => self.is_managed = enterprise::is_managed(node, place)?,
            "enterprise" => self.enterprise = Some(EnterpriseConfig::read(node, place)?),
            "enabled" => self.enabled = place.boolean(node)?,
            "disabled" => self.off = place.boolean(node)?.then_some("`disabled: true`"),
            "required" => self.required = place.boolean(node)?,
            "startup_timeout_sec" => self.startup_seconds = Some(seconds(node, place)?),
            "startup_timeout_ms" => self.startup_milliseconds = Some(milliseconds(node, place)?),
            "tool_timeout_sec" => self.tool_timeout = Some(seconds(node, place)?),
            limit if Limits::KEYS.contains(&limit) => self.limits.take(limit, node, place)?,
            "tool_total_timeout_sec" => self.tool_total_timeout = Some(seconds(node, place)?),
            "restart" => self.restart = restart(node, place)?,
            "shutdown" => self.shutdown = shutdown(node, place)?,
            "enabled_tools" => self.enabled_tools = Some(place.strings(node)?),
            "disabled_tools" => self.disabled_tools = place.strings(node)?,
            "default_tools_approval_mode" => {
                self.approval.default_mode = Some(approval::mode(node, place)?);
            }
            "tools" => {
                let tools = approval::tools(node, place)?;
                self.approval.tool_modes = tools.modes;
                self.tool_timeouts = tools.timeouts;
                self.not_yet.extend(tools.not_yet);
            }
            "trust_annotations" => self.approval.trust_annotations = place.boolean(node)?,
            "sandbox" => self.sandbox = Some(place.string(node)?),
            "environment_id" => {
                let id = EnvironmentId::new(place.string(node)?);
                self.environment = (id != EnvironmentId::local()).then_some(id);
            }
            other => return Err(place.unknown_key(other, keys::known(self.format))),
        }
        Ok(())
    }

    fn template(&mut self, node: &Node, place: &Place<'_>) -> Result<Template, ConfigError> {
        let text = place.string(node)?;
        let fault = match Template::parse(self.format, place, text.clone()) {
            Ok(template) => return Ok(template),
            Err(fault) => fault,
        };
        match fault {
            TemplateFault::Malformed(fault) => Err(fault),
            TemplateFault::Unsupported(reason) => {
                self.reasons.push(format!("{reason} (line {})", place.line()));
                Ok(Template::literal(place, text))
            }
        }
    }

    fn templates(&mut self, node: &Node, place: &Place<'_>) -> Result<Vec<Template>, ConfigError> {
        place.array(node)?.map(|(place, item)| self.template(item, &place)).collect()
    }

    fn variables(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<BTreeMap<String, Template>, ConfigError> {
        let mut variables = BTreeMap::new();
        for (name, value) in place.table(node)? {
            let place = place.member(name);
            let template = match &value.value {
                // VS Code documents numbers here.
                Value::Integer { digits: text, .. } | Value::Float(text)
                    if self.format == Format::VsCode =>
                {
                    Template::literal(&place, text.clone())
                }
                _ => self.template(value, &place)?,
            };
            variables.insert(variable_name(&name.text, &place)?, template);
        }
        Ok(variables)
    }

    fn url(&mut self, node: &Node, place: &Place<'_>) -> Result<Template, ConfigError> {
        let url = self.template(node, place)?;
        let literal = url.is_literal() && self.reasons.is_empty();
        if literal && let Err(reason) = http::check_url(url.written().expose()) {
            return Err(place.fault(reason));
        }
        Ok(url)
    }

    fn headers(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        for (name, value) in place.table(node)? {
            let place = place.member(name);
            let template = self.template(value, &place)?;
            http::check_header_value(template.written().expose())
                .map_err(|reason| place.fault(reason))?;
            self.header(&name.text, HeaderValueSource::Written(template), &place)?;
        }
        Ok(())
    }

    fn headers_from_variables(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<(), ConfigError> {
        for (name, value) in place.table(node)? {
            let place = place.member(name);
            let variable = looked_up(&place.string(value)?, &place)?;
            let template = Template::variable_named(&place, variable);
            self.header(&name.text, HeaderValueSource::Variable(template), &place)?;
        }
        Ok(())
    }

    fn header(
        &mut self,
        name: &str,
        source: HeaderValueSource,
        place: &Place<'_>,
    ) -> Result<(), ConfigError> {
        http::check_header_name(name).map_err(|reason| place.fault(reason))?;
        if self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(place.fault("is a header that is given twice"));
        }
        self.headers.push((name.to_owned(), source));
        Ok(())
    }

    fn helper(&mut self, node: &Node, place: &Place<'_>) -> Result<Vec<Template>, ConfigError> {
        if let Value::Text(text) = &node.value {
            return Err(helper::string_refused(self.format, text, place));
        }
        let helper = self.templates(node, place)?;
        match helper.first().is_some_and(|program| !program.written().expose().is_empty()) {
            true => Ok(helper),
            false => Err(place.fault("should be a program and its arguments, found nothing")),
        }
    }

    fn finish(mut self, place: &Place<'_>) -> Result<ServerConfig, ConfigError> {
        let is_http = self.is_http(place)?;
        self.check_transport(is_http)?;
        if let Some((kind, _)) = &self.kind {
            self.reasons.extend(unsupported_kind(kind));
        }
        let enterprise = self.managed(place)?;
        if is_http && self.environment.is_some() {
            self.reasons.push(places::URL_ELSEWHERE.to_owned());
        }
        self.check_directory(place)?;
        let (warnings, id) = (self.warnings(), self.environment.as_ref());
        let names = names::of_server(&self.given, self.sandbox.as_deref(), id);
        let state = self.state();
        let transport = match (self.url, self.command) {
            (Some(url), None) => TransportSettings::Http(HttpSettings {
                url,
                bearer_token_env_var: self.bearer_token_env_var,
                headers: self.headers,
                headers_helper: self.headers_helper,
                oauth: Box::new(self.oauth),
                enterprise,
            }),
            (None, Some(command)) => TransportSettings::Stdio(StdioSettings {
                command,
                args: self.args,
                env: self.env,
                env_vars: self.env_vars,
                cwd: self.cwd,
            }),
            _ => return Err(place.fault("has neither `command` nor `url`")),
        };
        Ok(ServerConfig {
            state,
            transport,
            required: self.required,
            startup_timeout: self.startup_seconds.or(self.startup_milliseconds),
            tool_timeout: self.tool_timeout,
            tool_timeouts: self.tool_timeouts,
            limits: self.limits,
            tool_total_timeout: self.tool_total_timeout,
            restart: self.restart,
            shutdown: self.shutdown,
            tools: ToolFilter::new(self.enabled_tools, self.disabled_tools),
            approval: self.approval,
            environment_id: self.environment,
            sandbox: self.sandbox,
            origin: Origin::Project,
            file: place.file.to_owned(),
            line: place.line(),
            warnings,
            names,
        })
    }

    /// What the company manages has one way to a token, and everything about it is pinned.
    fn managed(&self, place: &Place<'_>) -> Result<Option<EnterpriseConfig>, ConfigError> {
        if !self.is_managed {
            return match self.enterprise {
                Some(_) => Err(place.fault("has `enterprise`, but not `auth = \"enterprise\"`")),
                None => Ok(None),
            };
        }
        let given = |key: &&str| self.given.iter().any(|(given, _)| given == key);
        if let Some(key) = keys::NOT_MANAGED.into_iter().find(given) {
            return Err(place.fault(format!("has `auth = \"enterprise\"` and `{key}`")));
        }
        match self.oauth.misses_for_enterprise() {
            Some(reason) => Err(place.fault(reason)),
            None => Ok(Some(self.enterprise.clone().unwrap_or_default())),
        }
    }

    /// Which transport was meant, by the key that is there; `type` may only agree.
    fn is_http(&self, place: &Place<'_>) -> Result<bool, ConfigError> {
        let is_http = match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                return Err(place.fault("has both `command` and `url`: a server has one transport"));
            }
            (None, None) => return Err(place.fault("has neither `command` nor `url`")),
            (Some(command), None) if command.written().expose().is_empty() => {
                return Err(place.fault("has an empty `command`"));
            }
            (command, _) => command.is_none(),
        };
        let Some((kind, place)) = &self.kind else { return Ok(is_http) };
        let wanted = match kind.as_str() {
            "stdio" | "local" => false,
            "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "sse" | "ws"
            | "remote" => true,
            _ => return Err(place.fault("should be `stdio` or `http`")),
        };
        match wanted == is_http {
            true => Ok(is_http),
            false if wanted => Err(place.fault(format!("is `{kind}`, which needs `url`"))),
            false => Err(place.fault(format!("is `{kind}`, which needs `command`"))),
        }
    }

    fn check_transport(&self, is_http: bool) -> Result<(), ConfigError> {
        for (key, place) in &self.given {
            let foreign = match is_http {
                true => keys::STDIO_ONLY.contains(&key.as_str()),
                false => keys::HTTP_ONLY.contains(&key.as_str()),
            };
            if foreign {
                let of = if is_http { "url" } else { "command" };
                return Err(place.fault(format!("is not supported for a server with `{of}`")));
            }
        }
        Ok(())
    }

    /// The directory of a server elsewhere cannot be relative to one here.
    fn check_directory(&self, place: &Place<'_>) -> Result<(), ConfigError> {
        let confined = self.sandbox.as_deref().is_some_and(|it| it != ServerConfig::UNCONFINED);
        if confined && self.environment.is_some() {
            return Err(
                place.fault("has both `sandbox` and `environment_id`: no launcher is there")
            );
        }
        let elsewhere = self.cwd.as_ref().filter(|_| self.environment.is_some());
        match elsewhere.filter(|cwd| cwd.is_literal()) {
            Some(cwd) if !places::is_absolute(cwd.written().expose()) => Err(place
                .fault("runs in an environment, so its `cwd` should be an absolute path there")),
            _ => Ok(()),
        }
    }

    fn state(&self) -> ServerState {
        let mut reasons = self.reasons.clone();
        if !self.not_yet.is_empty() {
            reasons.push(format!("not honoured yet: {}", self.not_yet.join(", ")));
        }
        let off = if self.enabled { self.off } else { Some("`enabled = false`") };
        match (off, reasons.is_empty()) {
            (Some(off), _) => ServerState::Disabled { reason: off.to_owned() },
            (None, true) => ServerState::Enabled,
            (None, false) => ServerState::Disabled { reason: reasons.join("; ") },
        }
    }

    fn warnings(&self) -> Vec<ConfigError> {
        let mut warnings = Vec::new();
        for arg in &self.args {
            for name in arg.variables() {
                let mut warning = arg.fault(format!(
                    "shows the value of `{name}` to every user of this machine, in the list of \
                     processes"
                ));
                warning.hint = Some("use `env` for secrets".to_owned());
                warnings.push(warning);
            }
        }
        let values = self.headers.iter().filter_map(|(_, source)| match source {
            HeaderValueSource::Written(template) => Some(template),
            HeaderValueSource::Variable(_) => None,
        });
        if matches!(self.format, Format::Codex | Format::ClaudeDesktop) {
            let sent = values.chain(&self.url).chain(self.env.values()).chain(&self.args);
            for template in sent.filter(|value| value.written().expose().contains("${")) {
                let whose = self.format.description();
                warnings.push(template.fault(format!(
                    "has a `${{`, which is taken as it stands: nothing is expanded in {whose}"
                )));
            }
        }
        warnings
    }
}

fn unsupported_kind(kind: &str) -> Option<String> {
    match kind {
        "sse" => Some(
            "the transport `sse` of 2024 is not supported; many such servers have a streamable \
             HTTP URL, often ending in /mcp"
                .to_owned(),
        ),
        "ws" => Some("the transport `ws` is not supported".to_owned()),
        _ => None,
    }
}

/// A value that says what would be so without it needs nothing to be honoured.
fn is_default(key: &str, node: &Node) -> bool {
    match (key, &node.value) {
        ("auth", Value::Text(text)) => text == "oauth",
        ("supports_parallel_tool_calls", Value::Boolean(value)) => !value,
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Table(members)) => members.is_empty(),
        _ => false,
    }
}
