//! Every captured state: parsed, written again, resolved.

use std::path::{Path, PathBuf};

use plenipo_policy::{
    Access, FileSystemPolicy, Network, PermissionProfile, State, WorkspaceRoots, parse_permissions,
};
use serde_json::value::RawValue;

/// The captured states: file name and compact JSON text with the member order as captured.
pub(crate) fn captured_states() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut states = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(state) = state_of(&text) {
            states.push((name, compact(&state)));
        }
    }
    states
}

#[derive(serde::Deserialize)]
struct Request {
    params: Params,
}

#[derive(serde::Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(serde::Deserialize)]
struct Meta {
    #[serde(rename = "codex/sandbox-state")]
    state: Option<Box<RawValue>>,
}

fn state_of(request: &str) -> Option<String> {
    let request: Request = serde_json::from_str(request).unwrap();
    request.params.meta.state.map(|state| state.get().to_owned())
}

/// The same JSON without whitespace between tokens and with minimal escapes: order kept.
fn compact(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let text = stream.next().unwrap().unwrap();
            out += &serde_json::Value::from(text).to_string();
            rest = &rest[stream.byte_offset()..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
        rest = rest.trim_start();
    }
    out
}

#[test]
fn a_captured_state_is_written_again_with_the_same_values_in_the_same_order() {
    let states = captured_states();
    assert_eq!(states.len(), 52, "captures with a state");
    for (name, json) in states {
        let state = State::parse(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(state.to_json(), json, "{name}");
        assert_eq!(state.unknown_members, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_captured_state_resolves_and_means_what_its_mode_says() {
    for (name, json) in captured_states() {
        let state = State::parse(&json).unwrap();
        let mut context = state.resolve_context();
        context.tmpdir = Some("/var/tmp/session".into());
        context.home = Some("/home/dev".into());
        let policy = state.profile.resolve(&context).unwrap_or_else(|e| panic!("{name}: {e}"));
        let writable = match name.split('.').next().unwrap() {
            "mode-danger-full-access"
            | "mode-profile-builtin-danger-full-access"
            | "model-bypass"
            | "model-danger-full-access" => {
                assert_eq!(state.profile, PermissionProfile::Disabled, "{name}");
                assert_eq!(policy.file_system, FileSystemPolicy::Unrestricted, "{name}");
                continue;
            }
            "mode-read-only"
            | "mode-default-no-sandbox-setting"
            | "mode-legacy-landlock"
            | "mode-profile-builtin-read-only"
            | "model-read-only" => Access::Read,
            _ => Access::Write,
        };
        assert_eq!(policy.access(&state.cwd.join("note.txt")), Some(writable), "{name}");
        assert_ne!(policy.access(Path::new("/usr/lib/x")), Some(Access::Write), "{name}");
    }
}

/// The captured state of one mode, as a stdio server that advertised both names got it.
fn captured(mode: &str) -> String {
    let name = format!("{mode}.s_both.json");
    captured_states().into_iter().find(|(file, _)| *file == name).unwrap().1
}

fn roots(paths: &[&str]) -> WorkspaceRoots {
    let home = Path::new("/home/dev");
    let (main, extra) = paths.split_first().unwrap();
    let roots = WorkspaceRoots::new(Path::new(main), Some(home), false).unwrap();
    extra.iter().fold(roots, |roots, path| roots.with_extra(Path::new(path)).unwrap())
}

/// The state with the profile built here in place of the captured one.
fn rebuilt(captured: &str, profile: PermissionProfile) -> String {
    let mut state = State::parse(captured).unwrap();
    state.profile = profile;
    state.to_json()
}

#[test]
fn built_in_profiles_are_what_the_reference_runtime_sends() {
    let tables = parse_permissions("", "plenipo.toml").unwrap();
    let workspace =
        |paths| PermissionProfile::workspace(&roots(paths), Network::Restricted).unwrap();
    let odd = "/home/dev/ws git é %25";
    for (mode, profile) in [
        ("mode-read-only", PermissionProfile::read_only()),
        ("mode-danger-full-access", PermissionProfile::danger_full_access()),
        ("mode-workspace-write", workspace(&["/home/dev/ws"])),
        ("mode-workspace-git-oddpath", workspace(&[odd])),
        ("mode-runtime-workspace-roots", workspace(&["/home/dev/ws", "/home/dev/extra1"])),
        (
            "mode-profile-builtin-workspace",
            tables.profile(":workspace", &roots(&["/home/dev/ws"])).unwrap(),
        ),
    ] {
        let json = captured(mode);
        assert_eq!(rebuilt(&json, profile), json, "{mode}");
    }
}

/// The reference runtime lists configured roots twice; ours are listed once and mean the same.
#[test]
fn a_root_given_twice_means_the_same_as_once() {
    let captured = State::parse(&captured("mode-workspace-write-roots-net")).unwrap();
    let roots =
        roots(&["/home/dev/ws", "/home/dev/extra1", "/opt/doesnotexist", "/home/dev/extra1"]);
    let profile = PermissionProfile::workspace(&roots, Network::Enabled).unwrap();
    let without_origins = |profile: &PermissionProfile| {
        let policy = profile.resolve(&captured.resolve_context()).unwrap();
        let FileSystemPolicy::Restricted(rules) = policy.file_system else { unreachable!() };
        rules.into_iter().map(|rule| rule.with_origin("")).collect::<Vec<_>>()
    };
    assert_eq!(without_origins(&profile), without_origins(&captured.profile));
}

#[test]
fn configured_profiles_are_what_the_reference_runtime_sends() {
    let text = r#"
        [permissions.deny.filesystem]
        "~/x" = "read"
        ":root" = "read"
        ":tmpdir" = "write"
        "/etc/shadow" = "none"
        "/home/dev/secret" = "deny"
        [permissions.deny.filesystem.":workspace_roots"]
        "." = "write"
        "docs" = "read"
        "**/*.env" = "deny"

        [permissions.extended]
        extends = "parent"
        filesystem = { "/home/dev/secret/**" = "deny" }
        [permissions.parent]
        extends = ":workspace"
        filesystem = { glob_scan_max_depth = 3 }

        [permissions.minimal-net]
        filesystem = { ":minimal" = "read", ":workspace_roots" = "write" }
        network = { enabled = true }
    "#;
    let tables = parse_permissions(text, "plenipo.toml").unwrap();
    // What only the reference runtime adds: a place it does not know itself, its own helper.
    let unknown = r#"{"path":{"type":"special","value":{"kind":"unknown","path":":bogus"}},"access":"read"},"#;
    let helper = r#",{"path":{"type":"path","path":"/home/dev/.codex/tmp/arg0-linux/codex-arg0AAAAAA"},"access":"read"}"#;
    for (name, mode, extra) in [
        ("deny", "mode-profile-named-deny", ""),
        ("extended", "mode-profile-named-extends-unknown-special", unknown),
        ("minimal-net", "mode-profile-named-minimal-net", helper),
    ] {
        let json = captured(mode);
        assert!(json.contains(extra), "{mode}");
        let json = json.replacen(extra, "", 1);
        let profile = tables.profile(name, &roots(&["/home/dev/ws"])).unwrap();
        assert_eq!(rebuilt(&json, profile), json, "{mode}");
    }
}
