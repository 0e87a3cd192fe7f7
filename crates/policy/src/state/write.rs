//! A state as text, with the members in the order of the reference runtime.
//!
//! Written by hand because a map type would make the order depend on `serde_json`'s features. It goes into one string,
//! because every call begins with it.

use serde_json::Value;

use super::State;
use super::file_uri;
use super::grammar::LIMITED_NETWORK;
use crate::network::Hosts;
use crate::profile::{Entry, EntryPath, FileSystem, Missing, Network, PermissionProfile, Special};

/// What most states take, in bytes.
const TYPICAL: usize = 2048;

pub(super) fn state(state: &State) -> String {
    let mut out = String::with_capacity(TYPICAL);
    Object::write(&mut out, |object| {
        profile(object.member("permissionProfile"), &state.profile);
        let executable = object.member("codexLinuxSandboxExe");
        match &state.linux_sandbox_executable {
            Some(path) => text(executable, path),
            None => executable.push_str("null"),
        }
        object.text("sandboxCwd", &file_uri::encode(&state.cwd));
        object.member("useLegacyLandlock").push_str(truth(state.legacy_landlock));
        object.member("useMxc").push_str(truth(state.use_mxc));
        if let Some(hosts) = limited(&state.profile) {
            limited_network(object.member(LIMITED_NETWORK), hosts);
        }
    });
    out
}

fn limited(profile: &PermissionProfile) -> Option<&Hosts> {
    match profile {
        PermissionProfile::External { network: Network::Limited(hosts) }
        | PermissionProfile::Managed { network: Network::Limited(hosts), .. } => Some(hosts),
        _ => None,
    }
}

fn limited_network(out: &mut String, hosts: &Hosts) {
    Object::write(out, |object| {
        object.text("mode", "limited");
        Object::write(object.member("domains"), |domains| {
            for (pattern, access) in hosts.iter() {
                domains.text(&pattern.to_string(), access.as_str());
            }
        });
    });
}

/// As every launcher of the contract understands it: what is limited is restricted to them.
fn network(network: &Network) -> &'static str {
    match network {
        Network::Restricted | Network::Limited(_) => "restricted",
        Network::Enabled => "enabled",
    }
}

fn profile(out: &mut String, profile: &PermissionProfile) {
    Object::write(out, |object| match profile {
        PermissionProfile::Disabled => object.text("type", "disabled"),
        PermissionProfile::External { network } => {
            object.text("type", "external");
            object.text("network", self::network(network));
        }
        PermissionProfile::Managed { file_system, network } => {
            object.text("type", "managed");
            self::file_system(object.member("file_system"), file_system);
            object.text("network", self::network(network));
        }
    });
}

fn file_system(out: &mut String, file_system: &FileSystem) {
    Object::write(out, |object| match file_system {
        FileSystem::Unrestricted => object.text("type", "unrestricted"),
        FileSystem::Restricted(restricted) => {
            object.text("type", "restricted");
            let out = object.member("entries");
            out.push('[');
            for (index, entry) in restricted.entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                self::entry(out, entry);
            }
            out.push(']');
            if let Some(depth) = restricted.glob_scan_max_depth {
                object.member("glob_scan_max_depth").push_str(&depth.to_string());
            }
        }
    });
}

fn entry(out: &mut String, entry: &Entry) {
    Object::write(out, |object| {
        Object::write(object.member("path"), |path| match &entry.path {
            EntryPath::Path(text) => {
                path.text("type", "path");
                path.text("path", text);
            }
            EntryPath::Glob(pattern) => {
                path.text("type", "glob_pattern");
                path.text("pattern", pattern);
            }
            EntryPath::Special(value) => {
                path.text("type", "special");
                special(path.member("value"), value);
            }
        });
        object.text("access", entry.access.as_str());
        match entry.missing {
            Missing::Enforce => {}
            Missing::Skip => object.text("missing_path_behavior", "skip"),
        }
    });
}

fn special(out: &mut String, special: &Special) {
    let (kind, path, subpath) = match special {
        Special::Root => ("root", None, None),
        Special::Minimal => ("minimal", None, None),
        Special::ProjectRoots { subpath } => ("project_roots", None, subpath.as_deref()),
        Special::Tmpdir => ("tmpdir", None, None),
        Special::SlashTmp => ("slash_tmp", None, None),
        Special::Unknown { path, subpath } => ("unknown", Some(path.as_str()), subpath.as_deref()),
    };
    Object::write(out, |object| {
        object.text("kind", kind);
        for (name, value) in [("path", path), ("subpath", subpath)] {
            if let Some(value) = value {
                object.text(name, value);
            }
        }
    });
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn text(out: &mut String, value: &str) {
    if value.bytes().any(|byte| matches!(byte, ..0x20 | b'"' | b'\\')) {
        return out.push_str(&Value::from(value).to_string());
    }
    out.push('"');
    out.push_str(value);
    out.push('"');
}

/// The members of one object, in the order in which they are asked for.
struct Object<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl<'o> Object<'o> {
    fn write(out: &'o mut String, build: impl FnOnce(&mut Self)) {
        out.push('{');
        let mut object = Self { out, is_empty: true };
        build(&mut object);
        object.out.push('}');
    }

    /// Where the member's value goes.
    fn member(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        text(self.out, name);
        self.out.push(':');
        self.out
    }

    fn text(&mut self, name: &str, value: &str) {
        text(self.member(name), value);
    }
}
