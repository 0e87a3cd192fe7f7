//! A merged table to a written profile, its entries in the order of the reference runtime: sorted
//! by key, then by the key below it, then by workspace root.

use super::read::is_glob;
use super::{ProfileTable, Written};
use crate::error::{ConfigError, ConfigErrorKind};
use crate::native;
use crate::profile::{
    Access, Entry, EntryPath, FileSystem, PermissionProfile, RestrictedFileSystem, Special,
};
use crate::roots::WorkspaceRoots;

pub(super) fn profile(
    table: &ProfileTable,
    roots: &WorkspaceRoots,
) -> Result<PermissionProfile, ConfigError> {
    let mut entries = Vec::new();
    for (place, settings) in &table.filesystem {
        for (below, access) in settings {
            add(&mut entries, (place, below), access, roots)?;
        }
    }
    let mut restricted = RestrictedFileSystem::new(entries);
    restricted.glob_scan_max_depth = table.glob_scan_max_depth;
    let network = table.network.setting()?;
    Ok(PermissionProfile::Managed { file_system: FileSystem::Restricted(restricted), network })
}

fn add(
    entries: &mut Vec<Entry>,
    (place, below): (&str, &str),
    access: &Written<Access>,
    roots: &WorkspaceRoots,
) -> Result<(), ConfigError> {
    let special = match place {
        ":root" => Some(Special::Root),
        ":minimal" => Some(Special::Minimal),
        ":tmpdir" => Some(Special::Tmpdir),
        ":slash_tmp" => Some(Special::SlashTmp),
        _ => None,
    };
    if let Some(special) = special {
        entries.push(Entry::new(EntryPath::Special(special), access.value));
        return Ok(());
    }
    if place == ":workspace_roots" {
        if access.value == Access::Write {
            roots.check_writable()?;
        }
        for root in roots.paths() {
            let path = written(root, below, access)?;
            entries.push(Entry::new(path, access.value));
        }
        return Ok(());
    }
    // A place is a plain path, or a glob without anything below it.
    let (base, relative) = match place.strip_prefix('~') {
        Some(in_home) => (home(roots, access)?, in_home.trim_start_matches('/')),
        None => ("/", place.trim_start_matches('/')),
    };
    let joined = match (relative, below) {
        ("", below) => below.to_owned(),
        (relative, ".") => relative.to_owned(),
        (relative, below) => format!("{relative}/{below}"),
    };
    let base_is_literal = below == "." || !is_glob(below);
    let path = if base_is_literal {
        written(base, &joined, access)?
    } else {
        written(&join(base, relative), below, access)?
    };
    entries.push(Entry::new(path, access.value));
    Ok(())
}

/// `base` is a literal directory; `relative` may be a glob.
fn written(base: &str, relative: &str, access: &Written<Access>) -> Result<EntryPath, ConfigError> {
    let invalid = |rule: &str| {
        access.fault(ConfigErrorKind::InvalidPath, format!("{rule}, found {relative:?}"))
    };
    if !is_glob(relative) {
        return Ok(EntryPath::Path(join(base, &clean(relative).map_err(invalid)?)));
    }
    if access.value == Access::Deny {
        return Ok(EntryPath::Glob(join(&escape(base), relative)));
    }
    // A trailing `/**` is the directory with everything below it, which is what a path means.
    let directory = relative.strip_suffix("/**").or((relative == "**").then_some("."));
    match directory.filter(|directory| !is_glob(directory)) {
        Some(directory) => Ok(EntryPath::Path(join(base, &clean(directory).map_err(invalid)?))),
        None => {
            let reason = format!("a glob can only be denied, found {:?}", access.value.as_str());
            Err(access
                .fault(ConfigErrorKind::UnknownValue, reason)
                .with_hint("name a path, or end it with `/**` for everything below a directory"))
        }
    }
}

fn clean(relative: &str) -> Result<String, &'static str> {
    if relative.is_empty() {
        return Ok(String::new());
    }
    let path = native::relative(relative)?;
    path.into_os_string().into_string().map_err(|_| "must be UTF-8")
}

fn join(base: &str, relative: &str) -> String {
    match (base.trim_end_matches('/'), relative) {
        ("", "") => "/".to_owned(),
        (base, "") => base.to_owned(),
        (base, relative) => format!("{base}/{relative}"),
    }
}

/// A literal directory inside a glob: each metacharacter as a class of one.
fn escape(literal: &str) -> String {
    let mut escaped = String::with_capacity(literal.len());
    for character in literal.chars() {
        match character {
            '*' | '?' | '[' | ']' | '{' | '}' | '\\' => {
                escaped.extend(['[', character, ']']);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn home<'a>(roots: &'a WorkspaceRoots, access: &Written<Access>) -> Result<&'a str, ConfigError> {
    let reason = "the home directory is not known or not UTF-8, so `~` means nothing";
    let home = roots.home().filter(|home| home.is_absolute()).and_then(|home| home.to_str());
    home.ok_or_else(|| access.fault(ConfigErrorKind::InvalidPath, reason))
}
