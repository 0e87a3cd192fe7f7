//! Calls as a server received them from another host (`tests/data/requests/MODE.SERVER.json`).

use std::{fs, path::Path};

use plenipo_authority::{
    AuthorityParts, CallAuthority, CapturedAuthority, EnvironmentId, LAUNCHER_KEY, OperatorPolicy,
    Refusal, STATE_ALIAS_KEY, STATE_KEY, SandboxOptIn, SandboxState, SandboxedCommand, ServerReach,
};
use serde_json::value::RawValue;

use crate::fixture::{LauncherFile, members, one_line, raw};

/// What the captures name as their launcher.
const CAPTURED_LAUNCHER: &str = "/opt/codex/bin/codex";
const CAPTURES: usize = 63;

struct Capture {
    name: String,
    meta: Vec<(String, String)>,
    meta_text: String,
    reach: ServerReach,
    capabilities: &'static str,
}

impl Capture {
    /// Reads a capture with its launcher's path replaced by `launcher`.
    fn read(path: &Path, launcher: &str) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(path).unwrap().replace(CAPTURED_LAUNCHER, launcher);
        let params = member(&members(&text), "params").unwrap();
        let meta_text = member(&members(&params), "_meta").unwrap();
        let (_, server) = name.split_once('.').unwrap();
        let reach = match server {
            "s_state" | "s_meta" | "s_both" | "s_neither" | "p_both" | "p_none" => {
                ServerReach::LocalStdio
            }
            "h_state" | "h_meta" | "h_both" | "h_neither" | "p_http" => ServerReach::Remote,
            other => panic!("unknown kind of server {other}"),
        };
        let capabilities = match server {
            "s_state" | "h_state" => r#"{"experimental":{"codex/sandbox-state":{}}}"#,
            "s_meta" | "h_meta" => r#"{"experimental":{"codex/sandbox-state-meta":{}}}"#,
            "s_neither" | "h_neither" | "p_none" => r#"{"experimental":{}}"#,
            _ => r#"{"experimental":{"codex/sandbox-state":{},"codex/sandbox-state-meta":{}}}"#,
        };
        Self { meta: members(&meta_text), meta_text, name, reach, capabilities }
    }

    fn opted_in(&self) -> bool {
        SandboxOptIn::from_capabilities(&raw(self.capabilities)).advertised
    }

    /// What the host's caller and the host put there, other than the sandbox keys.
    fn unrelated(&self) -> Vec<(String, String)> {
        let is_unrelated = |(key, _): &&(String, String)| !key.starts_with("codex/sandbox-");
        self.meta.iter().filter(is_unrelated).cloned().collect()
    }
}

fn member(members: &[(String, String)], key: &str) -> Option<String> {
    members.iter().find(|(found, _)| found == key).map(|(_, value)| value.clone())
}

fn for_each_capture(launcher: &LauncherFile, mut check: impl FnMut(&Capture)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/requests");
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        check(&Capture::read(&entry.unwrap().path(), launcher.path().to_str().unwrap()));
        count += 1;
    }
    assert_eq!(count, CAPTURES);
}

#[test]
fn attaching_reproduces_every_capture() {
    let launcher = LauncherFile::new();
    for_each_capture(&launcher, |capture| {
        let state = member(&capture.meta, STATE_KEY).unwrap_or_else(|| "{\"any\":1}".to_owned());
        let mut parts = AuthorityParts::new(EnvironmentId::local(), capture.reach);
        parts.state = Some(SandboxState::capture(&state).unwrap());
        parts.launcher = Some(launcher.verified());
        parts.opt_in = capture.opted_in();
        let authority = CapturedAuthority::capture(parts);

        let unrelated = capture.unrelated();
        let token = raw(&member(&unrelated, "progressToken").unwrap());
        let callers = unrelated.iter().filter(|(key, _)| key != "progressToken");
        let stale = [STATE_KEY, STATE_ALIAS_KEY, LAUNCHER_KEY].map(|key| format!(r#""{key}":1"#));
        let entries: Vec<String> =
            stale.into_iter().chain(callers.map(|(k, v)| format!(r#""{k}":{v}"#))).collect();
        let caller = raw(&format!("{{{}}}", entries.join(",")));
        let attached = authority.attach(Some(&caller), &[("progressToken", &token)]).unwrap();

        let mut found = members(attached.get());
        let token_at = found.iter().position(|(key, _)| key == "progressToken").unwrap();
        let token = found.remove(token_at);
        found.push(token); // the captures have it last
        let expected: Vec<_> = capture
            .meta
            .iter()
            .map(|(key, value)| match key.as_str() {
                LAUNCHER_KEY => (key.clone(), without_whitespace(value)),
                _ => (key.clone(), one_line(value)),
            })
            .collect();
        assert_eq!(found, expected, "{}", capture.name);
    });
}

/// The launcher value is the host's own text; its path holds no whitespace here.
fn without_whitespace(value: &str) -> String {
    value.split_whitespace().collect()
}

#[test]
fn reading_every_capture_gives_its_command_or_refuses() {
    let launcher = LauncherFile::new();
    for_each_capture(&launcher, |capture| {
        let meta = raw(&capture.meta_text);
        let parsed = serde_json::from_str(&capture.meta_text).unwrap();
        let exact = CallAuthority::from_meta(&meta).unwrap();
        let by_value = CallAuthority::from_map(&parsed).unwrap();
        for authority in [&exact, &by_value] {
            let command = SandboxedCommand::new(authority, ["id"], OperatorPolicy::RequireLauncher);
            match (capture.opted_in(), capture.reach) {
                (false, _) => assert_eq!(command.unwrap_err(), Refusal::NoAuthority),
                (true, ServerReach::Remote) => {
                    assert_eq!(command.unwrap_err(), Refusal::NoLauncher);
                }
                (true, _) => {
                    let command = command.unwrap();
                    assert_eq!(command.program(), launcher.path());
                    let state = authority.state().unwrap().as_str();
                    let expected = ["sandbox", "--sandbox-state-json", state, "--", "id"];
                    assert_eq!(command.args(), expected);
                }
            }
        }
        if let Some(state) = exact.state() {
            let captured = member(&capture.meta, STATE_KEY).unwrap();
            assert_eq!(state.as_str(), one_line(&captured), "{}", capture.name);
            assert_same_value(state.as_raw(), by_value.state().unwrap().as_raw());
        }
    });
}

fn assert_same_value(left: &RawValue, right: &RawValue) {
    let value = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get()).unwrap();
    assert_eq!(value(left), value(right));
}
