//! The vectors that this crate shares with the kits of other languages.

use std::collections::BTreeMap;

use plenipo_authority::{
    AuthorityGuard, CallAuthority, CallAuthorityError, OperatorPolicy, Refusal, SandboxedCommand,
    StateError,
};
use serde_json::{Value, json};

use crate::fixture::raw;

const VECTORS: &str = include_str!("../../../../kits/vectors.json");

/// The vectors of one part, every mark replaced.
fn vectors(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).unwrap();
    let vectors = all.get(part).and_then(Value::as_array).unwrap();
    assert!(vectors.len() > 5, "{part} has vectors");
    vectors.iter().map(|vector| filled(vector, &vector["replace"])).collect()
}

fn filled(value: &Value, marks: &Value) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            for (mark, what) in marks.as_object().into_iter().flatten() {
                let times = usize::try_from(what["times"].as_u64().unwrap()).unwrap();
                text = text.replace(mark, &what["text"].as_str().unwrap().repeat(times));
            }
            text.into()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, marks)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, item)| (key.clone(), filled(item, marks))).collect()
        }
        other => other.clone(),
    }
}

fn text<'a>(vector: &'a Value, key: &str) -> &'a str {
    vector[key].as_str().unwrap()
}

/// The kits' code of an error.
fn code_of(error: &CallAuthorityError) -> &'static str {
    match error {
        CallAuthorityError::NotAnObject { .. } => "meta-not-an-object",
        CallAuthorityError::Duplicated { .. } => "duplicated",
        CallAuthorityError::Differ => "differ",
        CallAuthorityError::State { source: StateError::TooLong { .. }, .. } => "state-too-large",
        CallAuthorityError::State { source: StateError::NotAnObject { .. }, .. } => {
            "state-not-an-object"
        }
        CallAuthorityError::InexactNumber { .. } => "inexact-number",
        CallAuthorityError::TooDeep { .. } => "too-deep",
        CallAuthorityError::LauncherNotAnObject { .. } => "launcher-not-an-object",
        CallAuthorityError::LauncherMissing => "launcher-missing",
        CallAuthorityError::LauncherMember { .. } => "launcher-member",
        CallAuthorityError::LauncherNotText { .. } => "launcher-not-text",
        CallAuthorityError::LauncherPath { .. } => "launcher-path",
        other => panic!("no vector has this error: {other}"),
    }
}

fn code_of_refusal(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoAuthority => "no-authority",
        Refusal::NoState => "no-state",
        Refusal::NoLauncher => "no-launcher",
        Refusal::StateTooLong { .. } => "state-too-long",
        Refusal::EmptyCommand => "empty-command",
        Refusal::ArgumentNul { .. } => "argument-nul",
        Refusal::ArgumentTooLong { .. } => "argument-too-long",
        Refusal::EnvironmentName { .. } => "environment-name",
        Refusal::EnvironmentEntry { .. } => "environment-entry",
        other => panic!("no vector has this refusal: {other}"),
    }
}

fn outcome(read: &Result<CallAuthority, CallAuthorityError>) -> Value {
    match read {
        Ok(authority) => json!({
            "state": authority.state().map(|state| state.as_str()),
            "launcher": authority.launcher().map(|launcher| launcher.as_str()),
        }),
        Err(error) => json!({ "error": code_of(error) }),
    }
}

/// The state as a value, for comparing what was parsed and written again.
fn by_value(mut outcome: Value) -> Value {
    if let Some(state) = outcome.get_mut("state")
        && let Some(text) = state.as_str()
    {
        *state = serde_json::from_str(text).unwrap();
    }
    outcome
}

#[test]
fn authority_is_read_or_refused_as_in_every_kit() {
    for vector in vectors("read") {
        let read = CallAuthority::from_meta(&raw(text(&vector, "meta")));
        assert_eq!(outcome(&read), vector["expect"], "{}", text(&vector, "name"));
    }
}

#[test]
fn parsed_authority_is_read_or_refused_as_in_every_kit() {
    let mut read = 0;
    for vector in vectors("read") {
        let name = text(&vector, "name");
        let expected = vector.get("rust_parsed").unwrap_or(&vector["expect"]);
        match serde_json::from_str(text(&vector, "meta")) {
            Ok(Value::Object(meta)) => {
                let found = outcome(&CallAuthority::from_map(&meta));
                assert_eq!(by_value(found), by_value(expected.clone()), "{name}");
                read += 1;
            }
            Ok(_) => assert_eq!(vector["expect"], json!({ "error": "meta-not-an-object" })),
            Err(_) => assert!(expected.is_null(), "{name}"),
        }
    }
    assert!(read > 40, "{read}");
}

fn build(vector: &Value) -> Result<SandboxedCommand, Refusal> {
    let authority = CallAuthority::from_meta(&raw(text(vector, "meta"))).unwrap();
    let argv = vector["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let operator = match vector["operator"].as_str() {
        Some("allow-unsandboxed") => OperatorPolicy::AllowUnsandboxed,
        _ => OperatorPolicy::RequireLauncher,
    };
    let pairs = |key: &str| -> Vec<(String, String)> {
        let members = vector[key].as_object().into_iter().flatten();
        members.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
    };
    SandboxedCommand::new(&authority, argv, operator)?
        .with_environment(pairs("inherited"))
        .with_additions(pairs("additions"))
}

#[test]
fn commands_are_built_or_refused_as_in_every_kit() {
    for vector in vectors("command") {
        let found = match build(&vector) {
            Err(refusal) => json!({ "error": code_of_refusal(&refusal) }),
            Ok(command) => {
                let mut argv = vec![command.program().to_str().unwrap()];
                argv.extend(command.args().iter().map(|word| word.to_str().unwrap()));
                let environment: BTreeMap<_, _> = command
                    .environment()
                    .iter()
                    .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
                    .collect();
                let sandboxed = command.is_sandboxed();
                json!({ "argv": argv, "environment": environment, "sandboxed": sandboxed })
            }
        };
        assert_eq!(found, vector["expect"], "{}", text(&vector, "name"));
    }
}

#[test]
fn what_outlives_a_call_serves_the_same_authority_only_in_every_kit() {
    for vector in vectors("guard") {
        let read = |key| CallAuthority::from_meta(&raw(text(&vector, key))).unwrap();
        let said = AuthorityGuard::retain(&read("kept")).ensure_same(&read("call"));
        let changed = vector["changed"].as_array().unwrap();
        let name = text(&vector, "name");
        match said {
            Ok(()) => assert!(changed.is_empty(), "{name}"),
            Err(error) => {
                let message = error.to_string();
                assert!(!changed.is_empty(), "{name}: {message}");
                for part in ["state", "launcher"] {
                    let wanted = changed.iter().any(|changed| changed == part);
                    assert_eq!(message.contains(part), wanted, "{name}: {message}");
                }
            }
        }
    }
}
