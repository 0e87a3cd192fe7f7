//! What a project's file would do, exactly: every command line, directory, variable and URL.

use std::path::Path;

use plenipo_config::{
    HeaderValueSource, HttpSettings, OAuthConfig, ServerConfig, ServerState, StdioSettings,
    Template, TextSource, TransportSettings,
};
use plenipo_redact::{REDACTED, is_secret_header};
use serde_json::{Value, json};

use super::text::{quoted, visible};
use crate::settings::Project;

/// A label and what stands behind it.
type Line = (&'static str, String);

pub(super) struct Summary {
    file: String,
    digest: String,
    servers: Vec<(String, Vec<Line>)>,
    profiles: Vec<String>,
    default_profile: Option<String>,
    refused: Vec<String>,
}

impl Summary {
    pub(super) fn of(project: &Project) -> Self {
        let mut summary = Self {
            file: project.path().to_string_lossy().into_owned(),
            digest: project.digest.to_string(),
            servers: Vec::new(),
            profiles: Vec::new(),
            default_profile: None,
            refused: project.refused.iter().map(|(_, fault)| fault.to_string()).collect(),
        };
        let Ok(config) = project.as_written() else { return summary };
        summary.refused.extend(config.refused.iter().map(ToString::to_string));
        summary.default_profile.clone_from(&config.default_permissions);
        summary.profiles = project.permissions.names().map(|(name, _)| name.to_owned()).collect();
        let directory = project.path().parent().unwrap_or(project.path());
        for (name, server) in &config.servers {
            match server {
                Ok(server) => {
                    summary.servers.push((name.to_string(), server_lines(server, directory)));
                }
                Err(fault) => summary.refused.push(fault.to_string()),
            }
        }
        summary
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", visible(&self.file));
        for (name, lines) in &self.servers {
            text.extend([format!("\nserver {}\n", visible(name))]);
            for (label, line) in lines {
                text.extend([format!("  {label:<9} {line}\n")]);
            }
        }
        for name in &self.profiles {
            text.extend([format!("\nprofile {}\n", visible(name))]);
        }
        if let Some(name) = &self.default_profile {
            text.extend([format!("\ndefault profile {}\n", visible(name))]);
        }
        if !self.refused.is_empty() {
            text.push_str("\nrefused, whatever you answer:\n");
        }
        for refused in &self.refused {
            text.extend([format!("  {}\n", visible(refused))]);
        }
        text.push('\n');
        text
    }

    pub(super) fn json(&self) -> Value {
        let server = |(name, lines): &(String, Vec<Line>)| {
            let lines: Vec<Value> =
                lines.iter().map(|(label, line)| json!({"what": label, "text": line})).collect();
            json!({"name": name, "does": lines})
        };
        json!({
            "file": self.file,
            "digest": self.digest,
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(),
            "profiles": self.profiles,
            "default_profile": self.default_profile,
            "refused": self.refused,
        })
    }
}

fn server_lines(server: &ServerConfig, directory: &Path) -> Vec<Line> {
    let mut lines = match &server.transport {
        TransportSettings::Stdio(stdio) => stdio_lines(stdio, directory),
        TransportSettings::Http(http) => http_lines(http, directory),
        _ => Vec::new(),
    };
    if let ServerState::Disabled { reason } = &server.state {
        lines.push(("disabled", visible(reason)));
    }
    lines
}

fn stdio_lines(stdio: &StdioSettings, directory: &Path) -> Vec<Line> {
    let words = std::iter::once(&stdio.command).chain(&stdio.args);
    let cwd = match &stdio.cwd {
        Some(cwd) => directory.join(cwd.written().expose()),
        None => directory.to_path_buf(),
    };
    let mut lines = vec![("runs", command_line(words)), ("in", visible(&cwd.to_string_lossy()))];
    for (name, value) in &stdio.env {
        lines.push(("sets", format!("{}={}", visible(name), shown_value(name, value))));
    }
    let used = std::iter::once(&stdio.command).chain(&stdio.args).chain(stdio.env.values());
    let used = used.chain(&stdio.cwd).flat_map(Template::variables);
    let names = stdio.env_vars.iter().map(String::as_str).chain(used);
    lines.extend(taken(names));
    lines
}

fn http_lines(http: &HttpSettings, directory: &Path) -> Vec<Line> {
    let mut lines = vec![("reaches", visible(http.url.written().expose()))];
    let mut names: Vec<&str> = http.url.variables().collect();
    if let Some(name) = &http.bearer_token_env_var {
        lines.push(("sends", format!("Authorization: Bearer ${{{}}}", visible(name))));
        names.push(name);
    }
    for (name, source) in &http.headers {
        let (value, text) = match source {
            HeaderValueSource::Variable(value) => (value, visible(value.written().expose())),
            HeaderValueSource::Written(value) => (value, shown_value(name, value)),
            _ => continue,
        };
        lines.push(("sends", format!("{}: {text}", visible(name))));
        names.extend(value.variables());
    }
    if let Some(helper) = &http.headers_helper {
        lines.push(("runs", format!("{} (prints headers)", command_line(helper.iter()))));
        lines.push(("in", visible(&directory.to_string_lossy())));
        names.extend(helper.iter().flat_map(Template::variables));
    }
    lines.extend(sign_in_lines(&http.oauth, &mut names));
    lines.extend(taken(names.into_iter()));
    lines
}

/// Who would get which secret for what. Without an issuer that is whoever the server names.
fn sign_in_lines<'o>(oauth: &'o OAuthConfig, names: &mut Vec<&'o str>) -> Vec<Line> {
    let issuer = oauth.issuer.as_ref().map(|issuer| visible(issuer.as_str()));
    let issuer = issuer.unwrap_or_else(|| "whoever the server names as its issuer".to_owned());
    let mut lines = Vec::new();
    for (what, source) in [
        ("the client secret", &oauth.proof.secret),
        ("what is signed with the key", &oauth.proof.private_key),
        ("the assertion", &oauth.assertion),
    ] {
        // A project's file names no other source.
        let Some(TextSource::Variable(name)) = source else { continue };
        lines.push(("sends", format!("{what} ${{{}}} to {issuer}", visible(name))));
        names.push(name);
    }
    if let Some(client) = &oauth.client_id {
        lines.push(("signs in", format!("as client `{}` at {issuer}", visible(client))));
    }
    lines.extend(oauth.scopes.iter().map(|scopes| ("asks for", visible(&scopes.to_string()))));
    lines
}

fn command_line<'t>(words: impl Iterator<Item = &'t Template>) -> String {
    words.map(|word| quoted(word.written().expose())).collect::<Vec<_>>().join(" ")
}

/// What is set has a say in what runs, so it is shown; but for what its name and its text say is a credential.
fn shown_value(name: &str, value: &Template) -> String {
    match is_secret_header(name) && value.is_literal() {
        true => REDACTED.to_owned(),
        false => visible(value.written().expose()),
    }
}

fn taken<'n>(names: impl Iterator<Item = &'n str>) -> Option<Line> {
    let mut names: Vec<String> = names.map(visible).collect();
    names.sort_unstable();
    names.dedup();
    let text = format!("{} from your environment", names.join(", "));
    (!names.is_empty()).then_some(("takes", text))
}
