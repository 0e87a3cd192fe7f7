//! `plenipo config show`: the servers in force and where each comes from. Values that may be secrets are masked,
//! whatever they are called.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use plenipo_config::ConfigError;
use plenipo_config::{HeaderValueSource, ServerConfig, ServerState, Template, TransportSettings};
use plenipo_connect::ApprovalMode;
use plenipo_connect::{RestartPolicy, ShutdownPolicy};
use plenipo_redact::{REDACTED, is_secret_header, redacted_url};
use serde_json::{Value, json};

use super::{layer_of, print};
use crate::arguments::Global;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::trust::{quoted, visible};

/// A server, its layer and its file.
struct Row<'a> {
    server: &'a Result<ServerConfig, ConfigError>,
    layer: &'static str,
    file: &'a Path,
}

pub(super) fn run(global: &Global) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    for warning in settings.warnings() {
        crate::terminal::warn(warning);
    }
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (file, config) in settings.layers() {
        let layer = layer_of(file, config);
        for (name, server) in &config.servers {
            rows.entry(name.as_str()).or_insert(Row { server, layer, file });
        }
    }
    if global.json {
        let servers: Vec<Value> = rows.iter().map(|(name, row)| row.json(name)).collect();
        return print(&format!("{}\n", json!({"servers": servers})));
    }
    if rows.is_empty() {
        crate::terminal::tell(
            "no servers are configured; `plenipo config path` says where, `plenipo add` adds one",
        );
    }
    print(&rows.iter().map(|(name, row)| row.text(name)).collect::<String>())
}

impl Row<'_> {
    fn text(&self, name: &str) -> String {
        let place = match self.server {
            Ok(server) => server.line,
            Err(fault) => fault.line,
        };
        let from = format!("    from {} {}:{place}\n", self.layer, self.file.display());
        match self.server {
            Err(fault) => format!("{name}\n    fault: {}\n{from}", visible(&fault.to_string())),
            Ok(server) => {
                let state = match &server.state {
                    ServerState::Disabled { reason } => {
                        format!("    disabled: {}\n", visible(reason))
                    }
                    _ => String::new(),
                };
                format!("{name}\n    {}\n{state}{from}", reached(server))
            }
        }
    }

    fn json(&self, name: &str) -> Value {
        let source = |line: usize| json!({"layer": self.layer, "file": self.file.to_string_lossy(), "line": line});
        match self.server {
            Err(fault) => json!({
                "name": name, "enabled": false, "fault": fault.to_string(), "hint": fault.hint(),
                "source": source(fault.line),
            }),
            Ok(server) => {
                let reason = match &server.state {
                    ServerState::Disabled { reason } => Some(reason),
                    _ => None,
                };
                json!({
                    "name": name,
                    "enabled": reason.is_none(),
                    "disabled_reason": reason,
                    "transport": transport(server),
                    "required": server.required,
                    "startup_timeout_sec": server.startup_timeout.as_ref().map(Duration::as_secs_f64),
                    "default_tools_approval_mode": server.approval.default_mode.map(ApprovalMode::name),
                    "tools": tools(server),
                    "trust_annotations": server.approval.trust_annotations,
                    "max_input_rounds": server.limits.max_input_rounds,
                    "tool_timeout_sec": server.tool_timeout.as_ref().map(Duration::as_secs_f64),
                    "tool_total_timeout_sec": server.tool_total_timeout.as_ref().map(Duration::as_secs_f64),
                    "restart": restart(server),
                    "shutdown": shutdown(server),
                    "source": source(server.line),
                })
            }
        }
    }
}

/// The tools about which something is said.
fn tools(server: &ServerConfig) -> Value {
    let mut tools = serde_json::Map::new();
    for (tool, mode) in &server.approval.tool_modes {
        tools.insert(tool.clone(), json!({ "approval_mode": mode.name() }));
    }
    for (tool, timeout) in &server.tool_timeouts {
        let told = tools.entry(tool).or_insert_with(|| json!({}));
        told["tool_timeout_sec"] = json!(timeout.as_secs_f64());
    }
    Value::Object(tools)
}

/// Of a server that is started here; there is nothing to start behind a URL.
fn restart(server: &ServerConfig) -> Option<&'static str> {
    matches!(server.transport, TransportSettings::Stdio(_)).then_some(match server.restart {
        RestartPolicy::Never => "never",
        _ => "on-failure",
    })
}

/// Likewise.
fn shutdown(server: &ServerConfig) -> Option<&'static str> {
    matches!(server.transport, TransportSettings::Stdio(_)).then_some(match server.shutdown {
        ShutdownPolicy::Wait => "wait",
        _ => "background",
    })
}

/// The command line or the URL.
fn reached(server: &ServerConfig) -> String {
    match &server.transport {
        TransportSettings::Stdio(stdio) => {
            let mut words = vec![quoted(stdio.command.written().expose())];
            words.extend(masked_args(&stdio.args).iter().map(|arg| quoted(arg)));
            words.join(" ")
        }
        TransportSettings::Http(http) => visible(&redacted_url(http.url.written().expose())),
        _ => String::new(),
    }
}

fn transport(server: &ServerConfig) -> Value {
    match &server.transport {
        TransportSettings::Stdio(stdio) => {
            let env: BTreeMap<&str, String> =
                stdio.env.iter().map(|(name, value)| (name.as_str(), value.redacted())).collect();
            json!({
                "type": "stdio",
                "command": stdio.command.written().expose(),
                "args": masked_args(&stdio.args),
                "env": env,
                "env_vars": stdio.env_vars,
                "cwd": stdio.cwd.as_ref().map(|cwd| cwd.written().expose().clone()),
            })
        }
        TransportSettings::Http(http) => {
            let mut written = BTreeMap::new();
            let mut variables = BTreeMap::new();
            for (name, source) in &http.headers {
                match source {
                    HeaderValueSource::Written(value) => written.insert(name, value.redacted()),
                    HeaderValueSource::Variable(value) => variables
                        .insert(name, value.variables().next().unwrap_or_default().to_owned()),
                    _ => None,
                };
            }
            json!({
                "type": "streamable_http",
                "url": redacted_url(http.url.written().expose()),
                "bearer_token_env_var": http.bearer_token_env_var,
                "http_headers": written,
                "env_http_headers": variables,
                "http_headers_helper": http.headers_helper.as_deref().map(masked_args),
            })
        }
        _ => Value::Null,
    }
}

/// Arguments are no place for secrets, and people put them there: after `--token`, in `--api-key=…`, in a URL.
fn masked_args(args: &[Template]) -> Vec<String> {
    let mut after_secret = false;
    args.iter()
        .map(|arg| {
            let text = arg.written().expose();
            let hide = std::mem::take(&mut after_secret);
            if hide && !text.starts_with('-') {
                return arg.redacted();
            }
            if let Some((name, _)) =
                text.split_once(['=', ':']).filter(|(name, _)| is_secret_header(name))
            {
                let mark = text.get(name.len()..=name.len()).unwrap_or_default();
                return format!("{name}{mark}{REDACTED}");
            }
            after_secret = text.starts_with('-') && is_secret_header(text);
            if text.contains("://") { redacted_url(text) } else { text.clone() }
        })
        .collect()
}
