//! A server while its keys are read.

mod whole;

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
use crate::server::{HeaderValueSource, ServerConfig};
use crate::template::{Template, TemplateFault};
use crate::{ApprovalSettings, approval, helper, http};
use plenipo_connect::environment::EnvironmentId;
use plenipo_connect::{RestartPolicy, ShutdownPolicy};

pub(crate) fn read_server(
    format: Format,
    node: &Node,
    place: &Place<'_>,
) -> Result<ServerConfig, ConfigError> {
    let (mut draft, before) = (Draft::new(format), place.noted());
    for (name, value) in place.table(node)? {
        let (place, before) = (place.member(name), place.noted());
        let taken = draft.take(&name.text, value, place.clone());
        if place.note(taken).is_none() || place.noted() > before {
            draft.faulty.push(name.text.clone());
        }
    }
    if place.noted() > before {
        draft.note_misfits(place);
    }
    place.whole(before)?;
    draft.finish(place)
}

struct Draft<'a> {
    format: Format,
    /// What was given, under the reference schema's names.
    given: Vec<(String, Place<'a>)>,
    /// Keys that have a fault, as they are written.
    faulty: Vec<String>,
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
            faulty: Vec::new(),
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
        let items = place.array(node)?;
        Ok(items.filter_map(|(place, item)| place.note(self.template(item, &place))).collect())
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
                _ => match place.note(self.template(value, &place)) {
                    Some(template) => template,
                    None => continue,
                },
            };
            let name = place.note(variable_name(&name.text, &place));
            variables.extend(name.map(|name| (name, template)));
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
            let template = self.template(value, &place).and_then(|template| {
                let checked = http::check_header_value(template.written().expose());
                checked.map_err(|reason| place.fault(reason)).map(|()| template)
            });
            let template = place.note(template).map(HeaderValueSource::Written);
            place.note(template.map_or(Ok(()), |value| self.header(&name.text, value, &place)));
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
            let variable = place.string(value).and_then(|name| looked_up(&name, &place));
            let Some(variable) = place.note(variable) else { continue };
            let value = HeaderValueSource::Variable(Template::variable_named(&place, variable));
            place.note(self.header(&name.text, value, &place));
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
        let before = place.noted();
        let helper = self.templates(node, place)?;
        place.whole(before)?;
        match helper.first().is_some_and(|program| !program.written().expose().is_empty()) {
            true => Ok(helper),
            false => Err(place.fault("should be a program and its arguments, found nothing")),
        }
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
