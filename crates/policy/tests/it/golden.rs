//! Every captured state: parsed, written again, resolved.

use std::path::{Path, PathBuf};

use plenipo_policy::{Access, FileSystemPolicy, PermissionProfile, State};
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
