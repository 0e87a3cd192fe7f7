//! Walks the parsed document by hand, because an error has to name its line and the nearest key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plenipo_redact::Secret;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::server::read_server;
use super::{Config, Origin, keys};
use crate::error::ConfigError;
use crate::server_name::ServerName;
use crate::text::{nearest, shown};

pub(super) type Key<'a> = Spanned<Cow<'a, str>>;
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// A place in a file: what an error needs.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    file: &'a str,
    text: &'a str,
    offset: usize,
    key: String,
}

impl<'a> Place<'a> {
    pub(super) fn fault(&self, reason: impl Into<String>) -> ConfigError {
        let before = self.text.as_bytes().get(..self.offset).unwrap_or_default();
        ConfigError {
            file: self.file.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1),
            key: self.key.clone(),
            reason: reason.into(),
            hint: None,
        }
    }

    /// The place of a member.
    pub(super) fn member(&self, key: &Key<'_>) -> Self {
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let name = match shown(key.get_ref()) {
            name if !name.is_empty() && name.bytes().all(bare) => name,
            name => format!("\"{name}\""),
        };
        let key_path = if self.key.is_empty() { name } else { format!("{}.{name}", self.key) };
        Self { offset: key.span().start, key: key_path, ..*self }
    }

    /// The place of an item in this array.
    pub(super) fn item(&self, index: usize, value: &Value<'_>) -> Self {
        Self { offset: value.span().start, key: format!("{}[{index}]", self.key), ..*self }
    }

    pub(super) fn unknown_key<'k>(
        &self,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> ConfigError {
        let mut fault = self.fault("is not a known key");
        fault.hint = nearest(name, known).map(|key| format!("did you mean `{key}`?"));
        fault
    }

    pub(super) fn wrong_type(&self, expected: &str, found: &DeValue<'_>) -> ConfigError {
        self.fault(format!("should be {expected}, found {}", found.type_str()))
    }

    pub(super) fn string(&self, value: &Value<'_>) -> Result<String, ConfigError> {
        let found = value.get_ref();
        let text = found.as_str().ok_or_else(|| self.wrong_type("a string", found))?;
        if text.contains('\0') {
            return Err(self.fault("contains a NUL character"));
        }
        Ok(text.to_owned())
    }

    pub(super) fn boolean(&self, value: &Value<'_>) -> Result<bool, ConfigError> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong_type("true or false", value.get_ref()))
    }

    pub(super) fn table<'v>(&self, value: &'v Value<'v>) -> Result<&'v DeTable<'v>, ConfigError> {
        value.get_ref().as_table().ok_or_else(|| self.wrong_type("a table", value.get_ref()))
    }

    pub(super) fn array<'v>(
        &self,
        value: &'v Value<'v>,
    ) -> Result<impl Iterator<Item = (Self, &'v Value<'v>)>, ConfigError> {
        let found = value.get_ref();
        let array = found.as_array().ok_or_else(|| self.wrong_type("an array", found))?;
        Ok(array.iter().enumerate().map(|(index, item)| (self.item(index, item), item)))
    }

    pub(super) fn strings(&self, value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
        self.array(value)?.map(|(place, item)| place.string(item)).collect()
    }
}

pub(super) fn read(text: &str, file: &str, origin: Origin) -> Result<Config, ConfigError> {
    let root = Place { file, text, offset: 0, key: String::new() };
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Place { offset, ..root.clone() }.fault(format!("is not TOML: {}", shown(error.message())))
    })?;
    let mut config = Config {
        origin,
        launcher: None,
        default_permissions: None,
        allow_unsandboxed: false,
        servers: BTreeMap::new(),
        warnings: Vec::new(),
        text: Secret::new(text.to_owned()),
        has_permissions: false,
    };
    for (key, value) in document.get_ref() {
        top_level(&mut config, key, value, &root.member(key))?;
    }
    Ok(config)
}

fn top_level(
    config: &mut Config,
    key: &Key<'_>,
    value: &Value<'_>,
    place: &Place<'_>,
) -> Result<(), ConfigError> {
    match &**key.get_ref() {
        "launcher" => {
            trusted(config.origin, place)?;
            config.launcher = Some(absolute(place, &place.string(value)?)?);
        }
        "default_permissions" => config.default_permissions = Some(place.string(value)?),
        "permissions" => {
            place.table(value)?;
            config.has_permissions = true;
        }
        "server" => built_in(config, value, place)?,
        "mcp_servers" => {
            for (name, value) in place.table(value)? {
                let place = place.member(name);
                let server = server_name(name.get_ref(), &place)?;
                let read = read_server(value, &place);
                config.servers.insert(server, read);
            }
        }
        known if keys::TOP_LEVEL_NOT_YET.contains(&known) => {
            config.warnings.push(place.fault("is recognised but not honoured yet"));
        }
        unknown => return Err(place.unknown_key(unknown, keys::TOP_LEVEL.into_iter())),
    }
    Ok(())
}

fn built_in(config: &mut Config, value: &Value<'_>, place: &Place<'_>) -> Result<(), ConfigError> {
    for (name, value) in place.table(value)? {
        let place = place.member(name);
        if name.get_ref() != ServerName::WORKSPACE {
            return Err(place.unknown_key(name.get_ref(), [ServerName::WORKSPACE].into_iter()));
        }
        for (key, value) in place.table(value)? {
            let place = place.member(key);
            if key.get_ref() != "allow_unsandboxed" {
                return Err(place.unknown_key(key.get_ref(), keys::WORKSPACE.into_iter()));
            }
            trusted(config.origin, &place)?;
            config.allow_unsandboxed = place.boolean(value)?;
        }
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

fn absolute(place: &Place<'_>, text: &str) -> Result<PathBuf, ConfigError> {
    if Path::new(text).is_absolute() {
        return Ok(PathBuf::from(text));
    }
    Err(place.fault("should be an absolute path"))
}

fn server_name(name: &str, place: &Place<'_>) -> Result<ServerName, ConfigError> {
    if name == ServerName::WORKSPACE {
        return Err(place.fault("is the name of the built-in server and cannot be redefined"));
    }
    ServerName::new(name)
        .ok_or_else(|| place.fault("is not a server name: letters, digits and `_:@/.-` only"))
}
