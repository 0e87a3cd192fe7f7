//! The top level of a file, in each format.

use std::collections::BTreeMap;

use plenipo_redact::Secret;

use crate::credentials::CredentialsDraft;
use crate::draft::read_server;
use crate::error::ConfigError;
use crate::format::{Format, looks_like_json};
use crate::names::{Kind, Use};
use crate::node::{Faults, Name, Node, Place, Table};
use crate::scalar::absolute;
use crate::{
    Config, IdentityProviderConfig, Origin, ServerConfig, TransportSettings, enterprise,
    environment, json_document, keys, literal, places, toml_document,
};
use plenipo_connect::ServerName;

/// A file as far as it can be read, and all that is wrong with it.
pub(crate) struct Read {
    pub(crate) config: Config,
    /// What keeps all of it from being used.
    pub(crate) outside: Vec<ConfigError>,
    /// What keeps one server or one environment from that, or has no name to be kept under.
    pub(crate) inside: Vec<ConfigError>,
}

pub(crate) fn read(text: &str, file: &str, origin: Origin) -> Read {
    let faults = Faults::default();
    let root = Place::start(file, text, &faults);
    let mut read = Read { config: empty(text, origin), outside: Vec::new(), inside: Vec::new() };
    if let Some((format, document)) = root.note(document(&root, text, file)) {
        read.config.format = format;
        read.members(&document, &root);
    }
    read.outside = root.noted_since(0);
    read
}

fn empty(text: &str, origin: Origin) -> Config {
    Config {
        origin,
        format: Format::Plenipo,
        launcher: None,
        default_permissions: None,
        allow_unsandboxed: false,
        environment: None,
        audit_file: None,
        credentials: None,
        identity_provider: None,
        account: None,
        minimum_rung: None,
        strict_globs: false,
        sandbox_of_servers: None,
        environments: BTreeMap::new(),
        local_environment: true,
        servers: BTreeMap::new(),
        refused: Vec::new(),
        warnings: Vec::new(),
        text: Secret::new(text.to_owned()),
        has_permissions: false,
        names: Vec::new(),
    }
}

impl Read {
    fn members(&mut self, document: &Table, root: &Place<'_>) {
        let (mut credentials, before) = (CredentialsDraft::default(), root.noted());
        for (name, node) in document {
            let place = root.member(name);
            place.note(match (self.config.format, name.text.as_str()) {
                (Format::Plenipo, "credentials_store") => trusted(self.config.origin, &place)
                    .and_then(|()| credentials.store(node, &place)),
                (Format::Plenipo, "credentials") => trusted(self.config.origin, &place)
                    .and_then(|()| credentials.table(node, &place)),
                (Format::Plenipo, _) => self.own(name, node, &place),
                _ => self.foreign(name, node, &place),
            });
        }
        // What is not there because it has a fault is not missed.
        if root.noted() == before {
            self.config.credentials = root.note(credentials.finish(root)).flatten();
        }
    }

    /// The faults of one server or environment, noted since there were so many; the first one is what is kept with it.
    fn apart<T>(
        &mut self,
        read: Result<T, ConfigError>,
        (place, since): (&Place<'_>, usize),
    ) -> Result<T, ConfigError> {
        let read = place.note(read);
        let faults = place.noted_since(since);
        let first = faults.first().cloned();
        self.inside.extend(faults);
        match (read, first) {
            (Some(read), None) => Ok(read),
            (_, first) => Err(first.unwrap_or_else(|| place.fault("cannot be read"))),
        }
    }

    fn refuse(&mut self, fault: ConfigError) {
        self.inside.push(fault.clone());
        self.config.refused.push(fault);
    }

    /// Another program's file: what is not about MCP is that program's business.
    fn foreign(&mut self, name: &Name, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let config = &mut self.config;
        if name.text == config.format.servers_key() {
            self.servers(node, place)?;
        } else if config.format == Format::Codex && name.text == "mcp_enterprise_managed_auth" {
            trusted(config.origin, place)?;
            config.identity_provider = Some(enterprise::managed_auth(node, place)?);
        } else if config.format == Format::Codex
            && keys::TOP_LEVEL_NOT_YET.contains(&name.text.as_str())
        {
            config.warnings.push(place.fault("is recognised but not honoured yet"));
        }
        Ok(())
    }

    fn own(&mut self, name: &Name, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match name.text.as_str() {
            "environments" => self.environments(node, place),
            "mcp_servers" => self.servers(node, place),
            _ => own(&mut self.config, name, node, place),
        }
    }

    /// What leads to another machine is the operator's.
    fn environments(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        trusted(self.config.origin, place)?;
        for (name, node) in place.table(node)? {
            let (place, since) = (place.member(name), place.noted());
            let read = places::read(&name.text, node, &place);
            let read = match self.apart(read, (&place, since)) {
                Ok(places::Read::Local(enabled)) => {
                    self.config.local_environment = enabled;
                    continue;
                }
                Ok(places::Read::Other(settings)) => Ok(*settings),
                Err(fault) => Err(fault),
            };
            self.config.environments.insert(name.text.clone(), read);
        }
        Ok(())
    }

    fn servers(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let (format, origin) = (self.config.format, self.config.origin);
        for (name, node) in place.table(node)? {
            let (place, since) = (place.member(name), place.noted());
            let server = match server_name(&name.text, &place) {
                Ok(server) => server,
                Err(fault) => {
                    self.refuse(fault);
                    continue;
                }
            };
            if self.config.servers.contains_key(&server) {
                self.refuse(place.fault("is given twice; the first one counts"));
                continue;
            }
            let read = read_server(format, node, &place)
                .and_then(|read| of_project(origin, read, (node, &place)))
                .and_then(|read| in_its_place(ServerConfig { origin, ..read }));
            let read = self.apart(read, (&place, since));
            self.config.servers.insert(server, read);
        }
        Ok(())
    }
}

fn document(root: &Place<'_>, text: &str, file: &str) -> Result<(Format, Table), ConfigError> {
    if !looks_like_json(text, file) {
        let document = toml_document::parse(root, text)?;
        let keys = document.iter().map(|(name, _)| name.text.as_str());
        return Ok((Format::of_toml(file, keys), document));
    }
    let document = json_document::parse(root, text)?;
    let keys = document.iter().map(|(name, _)| name.text.as_str());
    match Format::of_json(file, keys) {
        Some(format) => Ok((format, document)),
        None if document.is_empty() => Ok((Format::McpServers, document)),
        None => Err(root.fault("is JSON with neither `mcpServers` nor `servers`")),
    }
}

fn own(
    config: &mut Config,
    name: &Name,
    node: &Node,
    place: &Place<'_>,
) -> Result<(), ConfigError> {
    match name.text.as_str() {
        "launcher" => {
            trusted(config.origin, place)?;
            config.launcher = Some(absolute(place, &place.string(node)?)?);
        }
        "default_permissions" => {
            let name = place.string(node)?;
            config.names.push(Use::new(Kind::Profile, &name, place));
            config.default_permissions = Some(name);
        }
        "permissions" => {
            place.table(node)?;
            config.has_permissions = true;
        }
        "server" => built_in(config, node, place)?,
        "audit" => audit(config, node, place)?,
        "sandbox" => sandbox(config, node, place)?,
        "shell_environment_policy" => {
            trusted(config.origin, place)?;
            config.environment = Some(environment::read(node, place)?);
        }
        "mcp_enterprise_managed_auth" => {
            trusted(config.origin, place)?;
            config.identity_provider = Some(enterprise::managed_auth(node, place)?);
        }
        "account" => {
            trusted(config.origin, place)?;
            config.account = Some(IdentityProviderConfig::read(node, place)?);
        }
        known if keys::TOP_LEVEL_NOT_YET.contains(&known) || keys::OWN_NOT_YET.contains(&known) => {
            trusted(config.origin, place)?;
            config.warnings.push(place.fault("is recognised but not honoured yet"));
        }
        unknown => return Err(place.unknown_key(unknown, keys::TOP_LEVEL.into_iter())),
    }
    Ok(())
}

/// A project may not send what it brings to where only the operator leads.
fn in_its_place(server: ServerConfig) -> Result<ServerConfig, ConfigError> {
    let Some(name) = server.names.first().filter(|_| server.origin == Origin::Project) else {
        return Ok(server);
    };
    let mut fault = name.refused(match name.kind {
        Kind::Environment => "may not be set by a project's file: its servers run on this machine",
        _ => "may not be set by a project's file: only its user can choose",
    });
    fault.hint = Some("remove it, or define the server in your own configuration".to_owned());
    Err(fault)
}

fn built_in(config: &mut Config, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
    place.each(node, |name, node, place| {
        if name != ServerName::WORKSPACE {
            return Err(place.unknown_key(name, [ServerName::WORKSPACE].into_iter()));
        }
        place.each(node, |key, value, place| {
            if key != "allow_unsandboxed" {
                return Err(place.unknown_key(key, keys::WORKSPACE.into_iter()));
            }
            trusted(config.origin, place)?;
            config.allow_unsandboxed = place.boolean(value)?;
            Ok(())
        })
    })
}

fn audit(config: &mut Config, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
    place.each(node, |key, value, place| {
        if key != "file" {
            return Err(place.unknown_key(key, keys::AUDIT.into_iter()));
        }
        trusted(config.origin, place)?;
        config.audit_file = Some(absolute(place, &place.string(value)?)?);
        Ok(())
    })
}

fn sandbox(config: &mut Config, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
    place.each(node, |key, value, place| sandbox_key(config, key, (value, place)))
}

fn sandbox_key(
    config: &mut Config,
    key: &str,
    (value, place): (&Node, &Place<'_>),
) -> Result<(), ConfigError> {
    let values: &[&str] = match key {
        "default_for_servers" => {
            trusted(config.origin, place)?;
            let name = place.string(value)?;
            config.names.push(Use::new(Kind::Confinement, &name, place));
            config.sandbox_of_servers = Some(name);
            return Ok(());
        }
        "minimum_rung" => &keys::RUNGS,
        "deny_glob" => &keys::DENY_GLOBS,
        _ => return Err(place.unknown_key(key, keys::SANDBOX.into_iter())),
    };
    trusted(config.origin, place)?;
    let word = place.string(value)?;
    if !values.contains(&word.as_str()) {
        return Err(place.fault(format!("should be one of {}", values.join(", "))));
    }
    if key == "minimum_rung" {
        config.minimum_rung = Some(word);
    } else {
        config.strict_globs = word == keys::STRICT;
    }
    Ok(())
}

/// What decides about enforcement is the operator's, never a project's.
fn trusted(origin: Origin, place: &Place<'_>) -> Result<(), ConfigError> {
    if origin != Origin::Project {
        return Ok(());
    }
    let mut fault = place.fault("may not be set by a project's file");
    fault.hint = Some("set it in the user's or the managed configuration".to_owned());
    Err(fault)
}

/// A project names no files of the user that would be sent to somebody, and holds no credentials.
fn of_project(
    origin: Origin,
    mut read: ServerConfig,
    (node, place): (&Node, &Place<'_>),
) -> Result<ServerConfig, ConfigError> {
    if origin != Origin::Project {
        return Ok(read);
    }
    let http = match &read.transport {
        TransportSettings::Http(http) => http,
        TransportSettings::Stdio(stdio) => {
            let variables = stdio.env.iter();
            let found =
                variables.filter_map(|(name, value)| literal::of_project_variable(name, value));
            read.warnings.extend(found);
            return Ok(read);
        }
    };
    // It could send the company's tokens elsewhere, or ask for more.
    if http.enterprise.is_some() {
        let place = place.on_line_of(node, &["auth"]).named("auth");
        return trusted(origin, &place).map(|()| read);
    }
    if let Some(key) = http.oauth.file_key() {
        let place = place.on_line_of(node, &["oauth", &key]).named(&format!("oauth.{key}"));
        return trusted(origin, &place).map(|()| read);
    }
    if let Some(value) = http.written_credential() {
        let mut fault = value.fault("holds a credential, which a project's file may not");
        fault.hint = Some(
            "put it into an environment variable and name that in `bearer_token_env_var` or \
             `env_http_headers`"
                .to_owned(),
        );
        return Err(fault);
    }
    Ok(read)
}

fn server_name(name: &str, place: &Place<'_>) -> Result<ServerName, ConfigError> {
    if name == ServerName::WORKSPACE {
        return Err(place.fault("is the name of the built-in server and cannot be redefined"));
    }
    ServerName::new(name)
        .ok_or_else(|| place.fault("is not a server name: letters, digits and `_:@/.-` only"))
}
