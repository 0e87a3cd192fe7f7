//! A state as text, with the members in the order of the reference runtime.
//!
//! Written by hand because a map type would make the order depend on `serde_json`'s features.

use serde_json::Value;

use super::State;
use super::file_uri;
use super::grammar::LIMITED_NETWORK;
use crate::profile::{Entry, EntryPath, FileSystem, Missing, Network, PermissionProfile, Special};

pub(super) fn state(state: &State) -> String {
    let executable = state.linux_sandbox_executable.as_deref().map_or("null".to_owned(), text);
    object(&[
        ("permissionProfile", Some(profile(&state.profile))),
        ("codexLinuxSandboxExe", Some(executable)),
        ("sandboxCwd", Some(text(&file_uri::encode(&state.cwd)))),
        ("useLegacyLandlock", Some(state.legacy_landlock.to_string())),
        ("useMxc", Some(state.use_mxc.to_string())),
        (LIMITED_NETWORK, limited_network(&state.profile)),
    ])
}

fn limited_network(profile: &PermissionProfile) -> Option<String> {
    let (PermissionProfile::External { network: Network::Limited(hosts) }
    | PermissionProfile::Managed { network: Network::Limited(hosts), .. }) = profile
    else {
        return None;
    };
    let hosts = hosts.iter().map(|(pattern, access)| {
        format!("{}:{}", text(&pattern.to_string()), text(access.as_str()))
    });
    let hosts = format!("{{{}}}", hosts.collect::<Vec<_>>().join(","));
    Some(object(&[("mode", Some(text("limited"))), ("domains", Some(hosts))]))
}

/// As every launcher of the contract understands it: what is limited is restricted to them.
fn network(network: &Network) -> String {
    text(match network {
        Network::Restricted | Network::Limited(_) => "restricted",
        Network::Enabled => "enabled",
    })
}

fn profile(profile: &PermissionProfile) -> String {
    match profile {
        PermissionProfile::Disabled => object(&[("type", Some(text("disabled")))]),
        PermissionProfile::External { network } => {
            object(&[("type", Some(text("external"))), ("network", Some(self::network(network)))])
        }
        PermissionProfile::Managed { file_system, network } => object(&[
            ("type", Some(text("managed"))),
            ("file_system", Some(self::file_system(file_system))),
            ("network", Some(self::network(network))),
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
