//! A state as text, with the members in the order of the reference runtime.
//!
//! Written by hand because a map type would make the order depend on `serde_json`'s features.

use serde_json::Value;

use super::State;
use super::file_uri;
use crate::profile::{Entry, EntryPath, FileSystem, Missing, PermissionProfile, Special};

pub(super) fn state(state: &State) -> String {
    let executable = state.linux_sandbox_executable.as_deref().map_or("null".to_owned(), text);
    object(&[
        ("permissionProfile", Some(profile(&state.profile))),
        ("codexLinuxSandboxExe", Some(executable)),
        ("sandboxCwd", Some(text(&file_uri::encode(&state.cwd)))),
        ("useLegacyLandlock", Some(state.legacy_landlock.to_string())),
        ("useMxc", Some(state.use_mxc.to_string())),
    ])
}

fn profile(profile: &PermissionProfile) -> String {
    match profile {
        PermissionProfile::Disabled => object(&[("type", Some(text("disabled")))]),
        PermissionProfile::External { network } => {
            object(&[("type", Some(text("external"))), ("network", Some(text(network.as_str())))])
        }
        PermissionProfile::Managed { file_system, network } => object(&[
            ("type", Some(text("managed"))),
            ("file_system", Some(self::file_system(file_system))),
            ("network", Some(text(network.as_str()))),
        ]),
    }
}

fn file_system(file_system: &FileSystem) -> String {
    match file_system {
        FileSystem::Unrestricted => object(&[("type", Some(text("unrestricted")))]),
        FileSystem::Restricted(restricted) => {
            let entries: Vec<String> = restricted.entries.iter().map(entry).collect();
            object(&[
                ("type", Some(text("restricted"))),
                ("entries", Some(format!("[{}]", entries.join(",")))),
                ("glob_scan_max_depth", restricted.glob_scan_max_depth.map(|n| n.to_string())),
            ])
        }
    }
}

fn entry(entry: &Entry) -> String {
    let path = match &entry.path {
        EntryPath::Path(path) => {
            object(&[("type", Some(text("path"))), ("path", Some(text(path)))])
        }
        EntryPath::Glob(pattern) => {
            object(&[("type", Some(text("glob_pattern"))), ("pattern", Some(text(pattern)))])
        }
        EntryPath::Special(special) => {
            object(&[("type", Some(text("special"))), ("value", Some(self::special(special)))])
        }
    };
    let missing = match entry.missing {
        Missing::Enforce => None,
        Missing::Skip => Some(text("skip")),
    };
    object(&[
        ("path", Some(path)),
        ("access", Some(text(entry.access.as_str()))),
        ("missing_path_behavior", missing),
    ])
}

fn special(special: &Special) -> String {
    let (kind, path, subpath) = match special {
        Special::Root => ("root", None, None),
        Special::Minimal => ("minimal", None, None),
        Special::ProjectRoots { subpath } => ("project_roots", None, subpath.as_deref()),
        Special::Tmpdir => ("tmpdir", None, None),
        Special::SlashTmp => ("slash_tmp", None, None),
        Special::Unknown { path, subpath } => ("unknown", Some(path.as_str()), subpath.as_deref()),
    };
    object(&[("kind", Some(text(kind))), ("path", path.map(text)), ("subpath", subpath.map(text))])
}

fn text(value: &str) -> String {
    Value::from(value).to_string()
}

/// The members that are present, in the order given; values are JSON text already.
fn object(members: &[(&str, Option<String>)]) -> String {
    let present = members.iter().filter_map(|(key, value)| Some((key, value.as_deref()?)));
    let members: Vec<String> =
        present.map(|(key, value)| format!("{}:{value}", text(key))).collect();
    format!("{{{}}}", members.join(","))
}
