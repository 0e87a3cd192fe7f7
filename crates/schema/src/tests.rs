use std::time::{Duration, Instant};

use plenipo_wire::Fragment;
use serde_json::json;

use super::*;

fn schema(value: &Value) -> Result<Schema, SchemaFault> {
    Schema::read(Fragment::serialize(value).unwrap().as_raw())
}

fn check(of: &Value, value: &str) -> Result<(), SchemaFault> {
    schema(of)?.check(Fragment::parse(value).unwrap().as_raw())
}

fn shown(of: &Value, value: &str) -> String {
    check(of, value).map_or_else(|fault| fault.to_string(), |()| "ok".to_owned())
}

/// Both ways to tell, the quick one and the thorough one, have to agree.
fn thoroughly(of: &Value, value: &str) -> Result<(), SchemaFault> {
    let value: Value = serde_json::from_str(value).unwrap();
    on_a_deep_stack(|| schema(of)?.check_thoroughly(&value))
}

#[test]
fn a_pattern_that_cannot_be_used_is_named_with_its_place() {
    let of = json!({"properties": {"code": {"items": {"pattern": "(?=x)y"}}}});
    let text = Fragment::parse(&of.to_string()).unwrap();
    let value = Fragment::parse("{\"code\": [\"y\"]}").unwrap();
    let fault = Schema::read(text.as_raw()).and_then(|of| of.check(value.as_raw())).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the schema is not valid at `properties.code.items.pattern`: `(?=x)y` is no pattern, or has what \
         patterns here have not: look-around, references back, a large size"
    );
}

#[test]
fn a_mismatch_says_where_what_and_what_instead() {
    let of = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 2},
            "size": {"enum": ["small", "big"]},
            "labels": {"type": "array", "items": {"type": "object", "required": ["name"],
                "properties": {"name": {"type": "string"}}, "additionalProperties": false}},
            "limit": {"anyOf": [{"type": "integer", "maximum": 5}, {"type": "null"}]},
            "code": {"pattern": "^[A-Z]+$"},
            "who": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["text"],
    });
    let lines: Vec<String> = [
        r#"{"text":"ab","labels":[{"name":"x"}],"limit":null,"who":3,"code":"AB"}"#,
        r#"{}"#,
        r#"{"text":7}"#,
        r#"{"text":"a"}"#,
        r#"{"text":"ab","size":"huge"}"#,
        r#"{"text":"ab","labels":[{"name":"x"},{"name":null}]}"#,
        r#"{"text":"ab","labels":[{}]}"#,
        r#"{"text":"ab","labels":[{"name":"x","\u001b[31m":1}]}"#,
        r#"{"text":"ab","limit":9}"#,
        r#"{"text":"ab","who":[1,2]}"#,
        r#"{"text":"ab","code":"ab"}"#,
        "[1]",
    ]
    .iter()
    .map(|value| shown(&of, value))
    .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ok
    `text` should be there, found nothing
    `text` should be string, found 7
    `text` should be at least 2 characters long, found "a"
    `size` should be one of "small", "big", found "huge"
    `labels[1].name` should be string, found null
    `labels[0].name` should be there, found nothing
    `labels[0].�[31m` should be absent, found 1
    `limit` should be one of 2 alternatives, found 9
    `who` should be string or integer, found a list of 2
    `code` should be text that matches `^[A-Z]+$`, found "ab"
    it should be object, found a list of 1
    "#);
    let Err(SchemaFault::Mismatch(mismatch)) = check(&of, r#"{"text":"ab","labels":[{}]}"#) else {
        panic!("it matches");
    };
    assert_eq!(mismatch.member.as_deref(), Some("labels"));
}

#[test]
fn quick_and_thorough_checks_agree() {
    let schemas = [
        json!({}),
        json!(true),
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}),
        json!({"properties": {"a": {"type": "integer", "minimum": 2, "maximum": 3}}, "additionalProperties": false}),
        json!({"$defs": {"n": {"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["b"]}}, "$ref": "#/$defs/n"}),
        json!({"anyOf": [{"required": ["a"]}, {"maxItems": 1, "items": {"const": 1}}], "allOf": [{}]}),
        json!({"enum": [1, "x", {"a": [1]}]}),
        json!({"additionalProperties": {"type": "number"}, "properties": {"a": true}}),
        json!({"minLength": 2, "maxLength": 3, "minItems": 1}),
        json!({"items": {"type": "boolean"}}),
    ];
    let values = [
        "{}",
        r#"{"a":null}"#,
        r#"{"a":"x","b":1}"#,
        r#"{"a":2}"#,
        r#"{"a":2.0}"#,
        r#"{"a":4}"#,
        r#"{"a":{"b":1},"b":2}"#,
        r#"{"b":2,"a":{}}"#,
        "[]",
        "[1]",
        "[true,false]",
        "1",
        "1.0",
        r#""x""#,
        r#""éé""#,
        r#""abcd""#,
        r#"{"a":[1]}"#,
        r#"{"a":[1],"c":"x"}"#,
        "null",
    ];
    let mut plain = 0;
    for of in &schemas {
        for value in values {
            let thorough = thoroughly(of, value);
            let parsed: Value = serde_json::from_str(value).unwrap();
            assert!(
                !matches!(&thorough, Err(fault) if !matches!(fault, SchemaFault::Mismatch(_))),
                "{of}"
            );
            if plain::matches(of, &parsed) {
                plain += 1;
                assert_eq!(thorough, Ok(()), "{of} takes {value} at a glance");
            }
            assert_eq!(check(of, value).is_ok(), thorough.is_ok(), "{of} {value}");
        }
    }
    assert!(plain > 60, "a glance is enough for most: {plain}");
}

#[test]
fn a_null_argument_counts_as_absent_where_it_may_be() {
    let of = json!({"properties": {"a": {"type": "string"}, "b": {"type": ["null", "integer"]}}, "required": ["b"]});
    let arguments =
        |text: &str| schema(&of).unwrap().check_arguments(&Fragment::parse(text).unwrap()).is_ok();
    assert!(arguments(r#"{"a":null,"b":1}"#) && arguments(r#"{"a":null,"b":null}"#));
    assert!(!arguments(r#"{"a":null}"#) && !arguments(r#"{"a":1,"b":1}"#));
    assert!(check(&of, r#"{"a":null,"b":1}"#).is_err(), "a result is taken as it is");
}

#[test]
fn unsupported_dialect_is_error() {
    let known = [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema#",
    ];
    for dialect in known {
        let of = json!({"$schema": dialect, "type": "object", "not": {"required": ["a"]}});
        assert_eq!(check(&of, "{}"), Ok(()), "{dialect}");
        assert!(matches!(check(&of, r#"{"a":1}"#), Err(SchemaFault::Mismatch(_))), "{dialect}");
    }
    for dialect in
        [json!("http://json-schema.org/draft-03/schema#"), json!("https://example.com/x"), json!(7)]
    {
        let fault = check(&json!({"$schema": dialect}), "{}").unwrap_err();
        assert!(matches!(fault, SchemaFault::Dialect { .. }), "{dialect}: {fault}");
    }
}

#[test]
fn each_dialect_is_held_to_its_own_rules() {
    let seven = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
    assert!(check(&seven, "[1]").is_err() && check(&seven, r#"["a",1]"#).is_ok());
    let twelve = json!({"prefixItems": [{"type": "string"}], "items": false});
    assert!(check(&twelve, r#"["a"]"#).is_ok() && check(&twelve, r#"["a",1]"#).is_err());
    // Written for an older dialect without saying so.
    let four = json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true});
    assert!(check(&four, "2").is_ok() && check(&four, "1").is_err());
    let tuple = json!({"items": [{"type": "string"}]});
    assert!(check(&tuple, "[1]").is_err());
}

#[test]
fn no_ref_fetch() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/s.json", listener.local_addr().unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "{\"type\":\"string\"}").unwrap();
    for target in [url.clone(), format!("file://{}", file.path().display())] {
        for of in [
            json!({"properties": {"a": {"$ref": target}}}),
            json!({"properties": {"a": {"$id": "x", "$ref": target}}}),
        ] {
            let fault = check(&of, r#"{"a":1}"#).unwrap_err();
            assert!(matches!(fault, SchemaFault::Reference { .. }), "{fault}");
        }
    }
    let fault = check(&json!({"$schema": url}), "{}").unwrap_err();
    assert!(matches!(fault, SchemaFault::Dialect { .. }), "{fault}");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn unresolved_ref_rejected() {
    for target in
        ["#/$defs/none", "#none", "other.json", "https://example.com/x", "#/properties/a/0"]
    {
        let of = json!({"type": "object", "properties": {"a": {"$ref": target}}});
        // Also where the value has nothing to do with it.
        let fault = check(&of, r#"{"b":1}"#).unwrap_err();
        assert!(
            matches!(&fault, SchemaFault::Reference { target: found } if found == target),
            "{fault}"
        );
    }
    let of = json!({
        "$id": "https://example.com/root",
        "$defs": {"a/b": {"type": "string"}, "n": {"$anchor": "here", "type": "null"}},
        "properties": {
            "a": {"$ref": "#/$defs/a~1b"}, "b": {"$ref": "#here"}, "c": {"$ref": "#"},
            "d": {"$ref": "https://example.com/root#/$defs/n"},
            "e": {"const": {"$ref": "nowhere"}},
            "$ref": {"type": "string"},
        },
    });
    assert_eq!(check(&of, r#"{"a":"x","b":null,"c":{"a":"y"},"d":null,"$ref":"x"}"#), Ok(()));
    for wrong in [r#"{"a":1}"#, r#"{"b":1}"#, r#"{"c":{"a":1}}"#, r#"{"d":1}"#, r#"{"$ref":1}"#] {
        assert!(matches!(check(&of, wrong), Err(SchemaFault::Mismatch(_))), "{wrong}");
    }
}

/// Alternatives of alternatives by reference, `depth` levels of them.
fn doubling(word: &str, depth: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..depth {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        definitions.insert(format!("a{level}"), json!({word: [next, next]}));
    }
    definitions.insert(format!("a{depth}"), json!({"type": "string"}));
    json!({"$defs": definitions, "$ref": "#/$defs/a0"})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({"a": inner}))
}

#[test]
fn schema_bomb_bounded() {
    let begin = Instant::now();
    let chain = |length: usize| {
        let mut definitions = serde_json::Map::new();
        for level in 0..length {
            definitions
                .insert(format!("a{level}"), json!({"$ref": format!("#/$defs/a{}", level + 1)}));
        }
        definitions.insert(format!("a{length}"), json!({"type": "string"}));
        json!({"$defs": definitions, "$ref": "#/$defs/a0"})
    };
    let recursion = json!({"$defs": {"r": {"type": "object", "anyOf": [
        {"properties": {"a": {"$ref": "#/$defs/r"}}}, {"properties": {"a": {"$ref": "#/$defs/r"}}}]}},
        "$ref": "#/$defs/r"});
    let circles =
        json!({"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}], "allOf": [{"$ref": "#"}]});
    let many = |count: usize| Value::Array((0..count).map(|_| json!({"type": "string"})).collect());
    let patterns: Vec<Value> = (0..300).map(|n| json!({"pattern": format!("^{n}")})).collect();
    let bombs = [
        ("alternatives", doubling("anyOf", 40), "1".to_owned()),
        ("exclusive alternatives", doubling("oneOf", 40), "1".to_owned()),
        ("small alternatives", doubling("oneOf", 12), "1".to_owned()),
        ("conjunctions", doubling("allOf", 40), "1".to_owned()),
        ("chain", chain(1_000), "1".to_owned()),
        ("long chain", chain(3_900), "1".to_owned()),
        ("too many references", chain(5_000), "1".to_owned()),
        ("recursion", recursion, nested(100).to_string()),
        ("circles", circles, "1".to_owned()),
        ("too many subschemas", json!({"anyOf": many(25_000)}), "1".to_owned()),
        (
            "many subschemas and items",
            json!({"items": {"anyOf": many(2_000)}}),
            format!("[{}1]", "1,".repeat(2_000)),
        ),
        ("patterns", json!({"anyOf": patterns}), "\"x\"".to_owned()),
        ("pattern that explodes", json!({"pattern": "^(\\p{L}{500}){500}$"}), "\"x\"".to_owned()),
        (
            "pattern that backtracks",
            json!({"pattern": "^(a+)+$"}),
            format!("\"{}!\"", "a".repeat(50_000)),
        ),
        (
            "unevaluated",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {"$ref": "#"}},
            "unevaluatedProperties": {"$ref": "#"}}}}),
            nested(120).to_string(),
        ),
        ("deep schema", (0..300).fold(json!({}), |inner, _| json!({"not": inner})), "1".to_owned()),
        ("big schema", json!({"description": "x".repeat(MAX_SCHEMA_BYTES)}), "1".to_owned()),
    ];
    let mut verdicts = String::new();
    for (name, of, value) in bombs {
        let text = Fragment::parse(&of.to_string()).unwrap();
        let verdict = Schema::read(text.as_raw())
            .and_then(|of| of.check(Fragment::parse(&value).unwrap().as_raw()));
        let shown = verdict.map_or_else(|fault| fault.to_string(), |()| "ok".to_owned());
        let start: String = shown.chars().take(90).collect();
        verdicts.extend([name, ": ", &start, "\n"]);
    }
    insta::assert_snapshot!(verdicts, @r#"
    alternatives: checking it against the schema would take more than 1000000 steps
    exclusive alternatives: checking it against the schema would take more than 1000000 steps
    small alternatives: it should be what the schema says, which has too many alternatives to tell where, found 1
    conjunctions: checking it against the schema would take more than 1000000 steps
    chain: it should be string, found 1
    long chain: checking it against the schema would take more than 1500 levels
    too many references: the schema is over the limit of 4000 references
    recursion: checking it against the schema would take more than 1000000 steps
    circles: ok
    too many subschemas: the schema is over the limit of 20000 subschemas
    many subschemas and items: checking it against the schema would take more than 300000 steps
    patterns: the schema is over the limit of 256 patterns
    pattern that explodes: the schema is not valid at `pattern`: `^(\p{L}{500}){500}$` is no pattern, or has what pat
    pattern that backtracks: it should be text that matches `^(a+)+$`, found "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    unevaluated: checking it against the schema would take more than 1000000 steps
    deep schema: the schema is not valid: recursion limit exceeded at line 1 column 890
    big schema: the schema is over the limit of 1048576 bytes
    "#);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}
