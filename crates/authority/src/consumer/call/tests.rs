use serde_json::json;

use super::*;

fn raw(text: &str) -> Result<CallAuthority, CallAuthorityError> {
    CallAuthority::from_meta(&RawValue::from_string(text.to_owned()).unwrap())
}

fn parsed(value: Value) -> Result<CallAuthority, CallAuthorityError> {
    let Value::Object(map) = value else { panic!("an object expected") };
    CallAuthority::from_map(&map)
}

#[test]
fn either_name_or_both_with_the_same_text_give_the_state() {
    for meta in [
        r#"{"codex/sandbox-state":{"a": 1e0}}"#,
        r#"{"codex/sandbox-state-meta":{"a": 1e0}}"#,
        r#"{"x":1,"codex/sandbox-state":{"a": 1e0},"codex\/sandbox-state-meta":{"a": 1e0}}"#,
    ] {
        let authority = raw(meta).unwrap();
        assert_eq!(authority.state().unwrap().as_str(), r#"{"a": 1e0}"#);
        assert_eq!(authority.launcher(), None);
    }
}

#[test]
fn differing_states_are_refused_even_when_they_mean_the_same() {
    for (state, alias) in [
        (r#"{"a":1}"#, r#"{"a":2}"#),
        (r#"{"a":1}"#, r#"{"a":1.0}"#),
        (r#"{"a":1}"#, r#"{"a": 1}"#),
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
        ("{}", r#"{"a":1}"#),
    ] {
        let meta = format!(r#"{{"{STATE_KEY}":{state},"{STATE_ALIAS_KEY}":{alias}}}"#);
        assert!(matches!(raw(&meta), Err(CallAuthorityError::Differ)), "{meta}");
    }
}

#[test]
fn parsed_states_are_compared_by_value() {
    let authority = parsed(json!({STATE_KEY: {"a":1,"b":2}, STATE_ALIAS_KEY: {"b":2,"a":1}}));
    assert!(authority.unwrap().state().is_some());
    let differing = parsed(json!({STATE_KEY: {"a":1}, STATE_ALIAS_KEY: {"a":1.0}}));
    assert!(matches!(differing, Err(CallAuthorityError::Differ)));
}

#[test]
fn a_state_that_is_no_object_is_refused_under_either_name() {
    for value in ["null", "true", "\"{}\"", "[]", "0"] {
        for key in [STATE_KEY, STATE_ALIAS_KEY] {
            let meta = format!(r#"{{"{key}":{value}}}"#);
            let error = raw(&meta).unwrap_err();
            assert!(matches!(error, CallAuthorityError::State { .. }), "{meta}: {error}");
            let error = parsed(serde_json::from_str(&meta).unwrap()).unwrap_err();
            assert!(matches!(error, CallAuthorityError::State { .. }), "{meta}: {error}");
        }
    }
}

#[test]
fn a_duplicated_sandbox_key_is_refused_after_unescaping() {
    for (key, escaped) in [
        (STATE_KEY, "codex\\/sandbox-state"),
        (STATE_ALIAS_KEY, "codex/sandbox\\u002dstate-meta"),
        (LAUNCHER_KEY, "\\u0063odex/sandbox-launcher"),
    ] {
        let value = r#"{"codexExecutable":"/l"}"#;
        let meta = format!(r#"{{"{key}":{value},"x":1,"{escaped}":{value}}}"#);
        let error = raw(&meta).unwrap_err();
        assert!(matches!(error, CallAuthorityError::Duplicated { key: found } if found == key));
    }
}

#[test]
fn a_launcher_is_exactly_one_absolute_path() {
    let launcher = |value: &str| raw(&format!(r#"{{"codex/sandbox-launcher":{value}}}"#));
    let found = launcher(r#"{ "codex\u0045xecutable" : "\/opt\/a b\/\u00e9" }"#).unwrap();
    assert_eq!(found.launcher().unwrap().as_str(), "/opt/a b/é");
    for value in [
        "null",
        "\"/l\"",
        "[]",
        "{}",
        r#"{"codexExecutable":null}"#,
        r#"{"codexExecutable":["/l"]}"#,
        r#"{"codexExecutable":""}"#,
        r#"{"codexExecutable":"l"}"#,
        r#"{"codexExecutable":"./l"}"#,
        r#"{"codexExecutable":"C:\\l.exe"}"#,
        r#"{"codexExecutable":"/l\u0000"}"#,
        r#"{"codexExecutable":"/\ud800"}"#,
        r#"{"codexExecutable":"/l (deleted)"}"#,
        r#"{"codexExecutable":"/l","args":[]}"#,
        r#"{"codexExecutable":"/l","codexExecutable":"/l"}"#,
        r#"{"CodexExecutable":"/l"}"#,
    ] {
        assert!(launcher(value).is_err(), "{value}");
    }
}

#[test]
fn meta_without_the_keys_brings_nothing() {
    for meta in ["{}", r#"{"progressToken":1}"#, r#"{"codex/sandbox":{}}"#] {
        assert_eq!(raw(meta).unwrap(), CallAuthority::absent());
    }
    for meta in ["null", "[]", "\"x\""] {
        assert!(matches!(raw(meta), Err(CallAuthorityError::NotAnObject { .. })), "{meta}");
    }
}

#[test]
fn numbers_that_a_parsed_value_may_have_rounded_are_refused() {
    let read = |number: &str| {
        let meta = format!(r#"{{"{STATE_KEY}":{{"n":[{{"m":{number}}}]}}}}"#);
        parsed(serde_json::from_str(&meta).unwrap())
    };
    for number in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "1e16",
        "1e300",
        "0.12345678901234567",
        "9007199254740993.0",
    ] {
        let error = read(number).unwrap_err();
        assert!(matches!(error, CallAuthorityError::InexactNumber { .. }), "{number}: {error}");
    }
    for number in
        ["0", "-0", "-1", "18446744073709551615", "-9223372036854775808", "0.1", "1e2", "2.5e-10"]
    {
        let authority = read(number).unwrap();
        let text = authority.state().unwrap().as_str();
        let value: Value = serde_json::from_str(text).unwrap();
        let sent: Value = serde_json::from_str(number).unwrap();
        assert_eq!(value["n"][0]["m"], sent, "{number}");
    }
    let launcher = parsed(json!({LAUNCHER_KEY: {"codexExecutable": 1e300}}));
    assert!(launcher.is_err());
}

#[test]
fn a_parsed_value_too_deep_to_write_is_refused_not_overflowed() {
    let mut value = json!({});
    for _ in 0..100_000 {
        value = Value::Array(vec![value]);
    }
    let mut map = Map::new();
    map.insert(STATE_KEY.to_owned(), value);
    let error = CallAuthority::from_map(&map).unwrap_err();
    assert!(matches!(error, CallAuthorityError::TooDeep { .. }), "{error}");
    dismantle(map);
}

/// Takes a deep value apart piece by piece: its own drop would recurse.
fn dismantle(map: Map<String, Value>) {
    let mut rest: Vec<Value> = map.into_iter().map(|(_, value)| value).collect();
    while let Some(value) = rest.pop() {
        if let Value::Array(items) = value {
            rest.extend(items);
        }
    }
}
