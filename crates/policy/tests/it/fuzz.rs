//! The state parser, on anything.

use std::path::Path;

use plenipo_policy::{FileSystemPolicy, State};
use plenipo_testkit::Fuzz;

const WORDS: [&str; 36] = [
    "\"permissionProfile\":",
    "\"sandboxCwd\":",
    "\"file:///\"",
    "\"type\":",
    "\"managed\"",
    "\"external\"",
    "\"disabled\"",
    "\"file_system\":",
    "\"restricted\"",
    "\"unrestricted\"",
    "\"entries\":[",
    "\"access\":",
    "\"read\"",
    "\"write\"",
    "\"deny\"",
    "\"none\"",
    "\"path\":",
    "\"special\"",
    "\"value\":{\"kind\":",
    "\"root\"",
    "\"tmpdir\"",
    "\"glob_pattern\",\"pattern\":",
    "\"glob_scan_max_depth\":",
    "\"network\":",
    "\"enabled\"",
    "null",
    "true",
    "..",
    "%2e%2e%2f",
    "\\u0000",
    "\"plenipoNetwork\":{\"mode\":\"limited\",\"domains\":",
    "\"allow\"",
    "\"*.a.org:443\":",
    "xn--",
    "0x7f.1",
    "[::ffff:1.2.3.4]",
];

/// What is understood can be written down and read again as the same, and never becomes a relative rule.
#[test]
fn fuzz_state() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/state");
    Fuzz::of(&corpus, &WORDS).run(|input| {
        let Ok(text) = std::str::from_utf8(input) else { return "not UTF-8".to_owned() };
        let state = match State::parse(text) {
            Ok(state) => state,
            Err(error) => return without_names(&error.to_string()),
        };
        assert!(state.cwd.is_absolute());
        let again = State::parse(&state.to_json()).expect("what was written can be read");
        assert_eq!((&again.profile, &again.cwd), (&state.profile, &state.cwd));
        let mut context = state.resolve_context();
        context.tmpdir = Some("/t".into());
        context.home = Some("/h".into());
        let policy = match state.profile.resolve(&context) {
            Ok(policy) => policy,
            Err(error) => return without_names(&error.to_string()),
        };
        let FileSystemPolicy::Restricted(rules) = &policy.file_system else {
            return "unrestricted".to_owned();
        };
        for rule in rules {
            let path = rule.path.to_str().unwrap_or_default();
            assert!(
                path.starts_with('/') && !path.contains("/../") && !path.contains("//"),
                "{path}"
            );
        }
        format!("{} rules, {} globs", rules.len().min(8), policy.deny_globs.len().min(3))
    });
}

/// The shape of a message: numbers and quoted names would make every one new.
fn without_names(message: &str) -> String {
    let mut shape: String =
        message.chars().filter(|c| c.is_ascii_lowercase() || *c == ' ').collect();
    shape.truncate(16);
    shape
}
