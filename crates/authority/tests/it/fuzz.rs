//! The reader of `_meta`, on anything.

use std::path::Path;

use plenipo_authority::CallAuthority;
use plenipo_testkit::Fuzz;
use serde_json::Value;
use serde_json::value::RawValue;

const WORDS: [&str; 14] = [
    "\"codex/sandbox-state\":",
    "\"codex/sandbox-state-meta\":",
    "\"codex/sandbox-launcher\":",
    "\"codex\\/sandbox-state\":",
    "\"\\u0063odex/sandbox-state\":",
    "{\"codexExecutable\":\"/x\"}",
    "{}",
    "{\"a\":1}",
    ",",
    "\n",
    "null",
    "[]",
    "1e400",
    "\"/\\u0000\"",
];

/// What is taken is what stands there: one value by whichever name, never two, never something that is no object.
#[test]
fn fuzz_meta() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/meta");
    Fuzz::of(&corpus, &WORDS).run(|input| {
        let Ok(text) = std::str::from_utf8(input) else { return "not UTF-8".to_owned() };
        let Ok(raw) = RawValue::from_string(text.to_owned()) else { return "not JSON".to_owned() };
        let authority = match CallAuthority::from_meta(&raw) {
            Ok(authority) => authority,
            Err(error) => return format!("{:?}", error.kind()),
        };
        if let Some(state) = authority.state() {
            assert!(!state.as_str().contains(['\n', '\r']), "{}", state.as_str());
            assert!(state.as_str().starts_with('{'));
        }
        if let Some(launcher) = authority.launcher() {
            assert!(launcher.as_path().is_absolute() && !launcher.as_str().contains('\0'));
        }
        // An independent reading, where a parser that keeps no text can give one.
        if let Ok(Value::Object(map)) = serde_json::from_str(text) {
            let by_name = map.get("codex/sandbox-state").or(map.get("codex/sandbox-state-meta"));
            let parsed =
                authority.state().map(|state| serde_json::from_str(state.as_str()).unwrap());
            assert_eq!(parsed.as_ref(), by_name);
            assert_eq!(authority.launcher().is_some(), map.contains_key("codex/sandbox-launcher"));
        }
        format!("{} {}", authority.state().is_some(), authority.launcher().is_some())
    });
}
