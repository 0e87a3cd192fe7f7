//! TOML to tables. Walked by hand over spanned values, because an error that cannot name its line
//! and the nearest known key sends a person guessing.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{NetworkMode, NetworkTable, PermissionTables, Place, ProfileTable, Written};
use crate::error::{ConfigError, ConfigErrorKind};
use crate::native;
use crate::network::{HostAccess, HostPattern, MAX_PATTERNS, PatternError};
use crate::profile::Access;

const PROFILE_KEYS: [&str; 5] =
    ["description", "extends", "filesystem", "network", "workspace_roots"];
const SPECIAL_PLACES: [&str; 5] =
    [":root", ":minimal", ":workspace_roots", ":tmpdir", ":slash_tmp"];
const NETWORK_KEYS: [&str; 11] = [
    "enabled",
    "mode",
    "domains",
    "unix_sockets",
    "allow_local_binding",
    "proxy_url",
    "socks_url",
    "enable_socks5",
    "enable_socks5_udp",
    "allow_upstream_proxy",
    "dangerously_allow_all_unix_sockets",
];

type Key<'a> = Spanned<Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

pub(super) fn tables(text: &str, file: &str) -> Result<PermissionTables, ConfigError> {
    let source = Source { text, file };
    let document = DeTable::parse(text).map_err(|error| {
        let line = source.line(error.span().map_or(0, |span| span.start));
        ConfigError::new(ConfigErrorKind::Malformed, "", error.message()).at(file, line)
    })?;
    let mut tables = PermissionTables::default();
    let Some((key, value)) = document.get_ref().get_key_value("permissions") else {
        return Ok(tables);
    };
    for (name, value) in table(value, &source.place(key, ""))?.iter() {
        let place = source.place(name, "permissions");
        if name.get_ref().starts_with(':') {
            let reason = "names that start with `:` are built in and cannot be redefined";
            return Err(place.fault(ConfigErrorKind::UnknownKey, reason));
        }
        let profile = profile(&source, value, &place)?;
        tables.tables.insert(name.get_ref().to_string(), profile);
    }
    Ok(tables)
}

/// The known word that was probably meant.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ENOUGH: f64 = 0.5;
    known
        .map(|known| (strsim::normalized_damerau_levenshtein(word, known), known))
        .filter(|(similarity, _)| *similarity >= ENOUGH)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, known)| known)
}

struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl Source<'_> {
    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }

    fn place(&self, key: &Key<'_>, parent: &str) -> Place {
        let name = key.get_ref();
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let plain = !name.is_empty() && name.bytes().all(bare);
        let name = if plain { name.to_string() } else { format!("{name:?}") };
        let key_path = if parent.is_empty() { name } else { format!("{parent}.{name}") };
        Place { file: self.file.to_owned(), line: self.line(key.span().start), key: key_path }
    }
}

fn profile(
    source: &Source<'_>,
    value: &Value<'_>,
    at: &Place,
) -> Result<ProfileTable, ConfigError> {
    let mut profile = ProfileTable::default();
    for (key, value) in table(value, at)?.iter() {
        let place = source.place(key, &at.key);
        match key.get_ref().as_ref() {
            "description" => profile.description = Some(text(value, &place)?.to_owned()),
            "extends" => {
                let value = text(value, &place)?.to_owned();
                profile.extends = Some(Written { value, place });
            }
            "filesystem" => filesystem(source, value, &place, &mut profile)?,
            "network" => network(source, value, &place, &mut profile)?,
            "workspace_roots" => profile.unsupported = Some(not_supported(&place)),
            unknown => return Err(unknown_key(&place, unknown, &PROFILE_KEYS)),
        }
    }
    Ok(profile)
}

fn filesystem(
    source: &Source<'_>,
    value: &Value<'_>,
    at: &Place,
    profile: &mut ProfileTable,
) -> Result<(), ConfigError> {
    for (key, value) in table(value, at)?.iter() {
        let place = source.place(key, &at.key);
        let name = key.get_ref().as_ref();
        if name == "glob_scan_max_depth" {
            profile.glob_scan_max_depth = Some(depth(value, &place)?);
            continue;
        }
        check_place(name, &place)?;
        let settings = profile.filesystem.entry(name.to_owned()).or_default();
        let DeValue::Table(below) = value.get_ref() else {
            settings.insert(".".to_owned(), access(value, place)?);
            continue;
        };
        if name.starts_with(':') && name != ":workspace_roots" || is_glob(name) {
            let reason = "expected one access word: only `:workspace_roots` and plain paths can \
                          hold a table of paths below them";
            return Err(place.fault(ConfigErrorKind::WrongType, reason));
        }
        for (key, value) in below.iter() {
            let below = source.place(key, &place.key);
            let name = key.get_ref().as_ref();
            native::relative(name).map_err(|rule| invalid(&below, rule, name))?;
            settings.insert(name.to_owned(), access(value, below)?);
        }
    }
    Ok(())
}

/// A special place, an absolute path, or a path below the home directory; each may be a glob.
fn check_place(name: &str, place: &Place) -> Result<(), ConfigError> {
    if name.starts_with(':') {
        return match SPECIAL_PLACES.contains(&name) {
            true => Ok(()),
            false => Err(unknown_key(place, name, &SPECIAL_PLACES)),
        };
    }
    if name == "~" {
        return Ok(());
    }
    if let Some(below) = name.strip_prefix("~/") {
        return native::relative(below).map(drop).map_err(|rule| invalid(place, rule, name));
    }
    if !name.starts_with('/') {
        let error = unknown_key(place, name, &["glob_scan_max_depth"]);
        return Err(match error.hint() {
            Some(_) => error,
            None => {
                let rule = "must be an absolute path, start with `~/`, or be a special path";
                invalid(place, rule, name)
            }
        });
    }
    native::glob(name)
        .or_else(|rule| if name == "/" { Ok(()) } else { Err(invalid(place, rule, name)) })
}

fn network(
    source: &Source<'_>,
    value: &Value<'_>,
    at: &Place,
    profile: &mut ProfileTable,
) -> Result<(), ConfigError> {
    for (key, value) in table(value, at)?.iter() {
        let place = source.place(key, &at.key);
        match key.get_ref().as_ref() {
            "enabled" => match value.get_ref() {
                DeValue::Boolean(enabled) => profile.network.enabled = Some(*enabled),
                other => return Err(mistyped(&place, "a boolean", other)),
            },
            "mode" => profile.network.mode = Some(mode(value, &place)?),
            "domains" => domains(source, value, &place, &mut profile.network)?,
            known if NETWORK_KEYS.contains(&known) => {
                profile.unsupported = Some(not_supported(&place));
            }
            unknown => return Err(unknown_key(&place, unknown, &NETWORK_KEYS)),
        }
    }
    Ok(())
}

fn mode(value: &Value<'_>, place: &Place) -> Result<NetworkMode, ConfigError> {
    match text(value, place)? {
        "limited" => Ok(NetworkMode::Limited),
        "full" => Ok(NetworkMode::Full),
        other => {
            let reason = format!("expected one of limited, full, found {other:?}");
            Err(place.fault(ConfigErrorKind::UnknownValue, reason))
        }
    }
}

/// `{ PATTERN = "allow" | "deny" }`, or a list of allowed patterns.
fn domains(
    source: &Source<'_>,
    value: &Value<'_>,
    at: &Place,
    network: &mut NetworkTable,
) -> Result<(), ConfigError> {
    network.domains_at = Some(at.clone());
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table.iter() {
                let place = source.place(key, &at.key);
                let access = match text(value, &place)? {
                    "allow" => HostAccess::Allow,
                    "deny" => HostAccess::Deny,
                    other => {
                        let reason = format!("expected one of allow, deny, found {other:?}");
                        return Err(place.fault(ConfigErrorKind::UnknownValue, reason));
                    }
                };
                add_host(network, key.get_ref(), access, &place)?;
            }
        }
        DeValue::Array(listed) => {
            for value in listed.iter() {
                add_host(network, text(value, at)?, HostAccess::Allow, at)?;
            }
        }
        other => return Err(mistyped(at, "a table or an array of domains", other)),
    }
    if network.domains.len() > MAX_PATTERNS {
        let reason = format!("{} domains, at most {MAX_PATTERNS}", network.domains.len());
        return Err(at.fault(ConfigErrorKind::InvalidHost, reason));
    }
    Ok(())
}

/// Two spellings of one pattern: the stricter counts.
fn add_host(
    network: &mut NetworkTable,
    written: &str,
    access: HostAccess,
    place: &Place,
) -> Result<(), ConfigError> {
    let invalid = |error: PatternError| {
        place.fault(ConfigErrorKind::InvalidHost, format!("{error}, found {written:?}"))
    };
    let pattern: HostPattern = written.parse().map_err(invalid)?;
    if access == HostAccess::Allow {
        pattern.check_allowed().map_err(invalid)?;
    }
    let present = network.domains.entry(pattern).or_insert(access);
    *present = access.max(*present);
    Ok(())
}

/// Whether a key is a glob; braces alone do not make one.
pub(super) fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', ']'])
}

fn table<'a>(value: &'a Value<'_>, place: &Place) -> Result<&'a DeTable<'a>, ConfigError> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        other => Err(mistyped(place, "a table", other)),
    }
}

fn text<'a>(value: &'a Value<'_>, place: &Place) -> Result<&'a str, ConfigError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        other => Err(mistyped(place, "a string", other)),
    }
}

fn access(value: &Value<'_>, place: Place) -> Result<Written<Access>, ConfigError> {
    let value = match text(value, &place)? {
        "read" => Access::Read,
        "write" => Access::Write,
        "deny" | "none" => Access::Deny,
        other => {
            let reason = format!("expected one of read, write, deny, found {other:?}");
            return Err(place.fault(ConfigErrorKind::UnknownValue, reason));
        }
    };
    Ok(Written { value, place })
}

fn depth(value: &Value<'_>, place: &Place) -> Result<NonZeroUsize, ConfigError> {
    const EXPECTED: &str = "a whole number of at least 1";
    let DeValue::Integer(integer) = value.get_ref() else {
        return Err(mistyped(place, EXPECTED, value.get_ref()));
    };
    usize::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| {
            let reason = format!("expected {EXPECTED}, found {}", integer.as_str());
            place.fault(ConfigErrorKind::UnknownValue, reason)
        })
}

fn mistyped(place: &Place, expected: &str, found: &DeValue<'_>) -> ConfigError {
    let found = match found {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::Float(_) => "a float".to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    place.fault(ConfigErrorKind::WrongType, format!("expected {expected}, found {found}"))
}

fn invalid(place: &Place, rule: &str, found: &str) -> ConfigError {
    place.fault(ConfigErrorKind::InvalidPath, format!("{rule}, found {found:?}"))
}

fn not_supported(place: &Place) -> ConfigError {
    let reason = "recognised but not supported yet, so this profile cannot be used";
    place.fault(ConfigErrorKind::NotSupported, reason)
}

fn unknown_key(place: &Place, found: &str, known: &[&str]) -> ConfigError {
    let error = place.fault(ConfigErrorKind::UnknownKey, "unknown key");
    match nearest(found, known.iter().copied()) {
        Some(nearest) => error.with_hint(format!("did you mean `{nearest}`?")),
        None => error,
    }
}
