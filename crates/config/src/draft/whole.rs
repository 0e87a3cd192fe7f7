//! What cannot be seen in one key of a server.

use super::Draft;
use crate::enterprise::EnterpriseConfig;
use crate::error::ConfigError;
use crate::format::Format;
use crate::keys;
use crate::node::Place;
use crate::server::{
    HeaderValueSource, HttpSettings, ServerConfig, ServerState, StdioSettings, TransportSettings,
};
use crate::{Origin, literal, names, places};
use plenipo_connect::ToolFilter;

impl Draft<'_> {
    /// Of a server that has faults in single keys: what does not fit together whatever these ought to be.
    pub(super) fn note_misfits(&self, place: &Place<'_>) {
        let is_faulty = |keys: &[&str]| self.faulty.iter().any(|key| keys.contains(&key.as_str()));
        // One that is not there may be what a misspelt one was to be.
        if is_faulty(&["type", "command", "url"]) || self.command.is_none() == self.url.is_none() {
            if self.command.is_some() && self.url.is_some() {
                place.note(self.is_http(place));
            }
            return;
        }
        let Some(is_http) = place.note(self.is_http(place)) else { return };
        self.check_transport(is_http);
        if !is_faulty(&["auth", "enterprise", "oauth"]) {
            place.note(self.managed(place));
        }
        if !is_faulty(&["sandbox", "environment_id", "cwd"]) {
            place.note(self.check_directory(place));
        }
    }

    pub(super) fn finish(mut self, place: &Place<'_>) -> Result<ServerConfig, ConfigError> {
        let (is_http, before) = (self.is_http(place)?, place.noted());
        self.check_transport(is_http);
        if let Some((kind, _)) = &self.kind {
            self.reasons.extend(unsupported_kind(kind));
        }
        let enterprise = place.note(self.managed(place)).flatten();
        if is_http && self.environment.is_some() {
            self.reasons.push(places::URL_ELSEWHERE.to_owned());
        }
        place.note(self.check_directory(place));
        place.whole(before)?;
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

    fn check_transport(&self, is_http: bool) {
        for (key, place) in &self.given {
            let foreign = match is_http {
                true => keys::STDIO_ONLY.contains(&key.as_str()),
                false => keys::HTTP_ONLY.contains(&key.as_str()),
            };
            if foreign {
                let of = if is_http { "url" } else { "command" };
                let reason = format!("is not supported for a server with `{of}`");
                place.note(Err::<(), _>(place.fault(reason)));
            }
        }
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
        warnings.extend(literal::of_arguments(&self.args));
        warnings.extend(self.url.as_ref().and_then(literal::of_url));
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
