//! Arguments before they are sent, results after they came.

use plenipo_connect::{Connection, ErrorKind, Fault, SchemaFault};

use crate::support::{Fake, call, request, said, text};

async fn with_tools(tools: &str) -> (Fake, Connection) {
    let fake = Fake::new("schemas", &[("F_TOOLS", tools)]);
    let connection = fake.start().await.unwrap();
    (fake, connection)
}

#[tokio::test]
async fn arguments_that_do_not_match_are_not_sent() {
    let tools = r#"{"t": {"inputSchema": {"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}}}"#;
    let (fake, connection) = with_tools(tools).await;
    let error = call(&connection, "t", r#"{"a":[1,"2"]}"#).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    insta::assert_snapshot!(
        format!("{error}\n{}", error.hint().unwrap()),
        @r#"
    call tool `t` of server `fake`: the arguments do not match its schema: `a[1]` should be integer, found "2"
    correct the argument `a`
    "#
    );
    for wrong in ["{}", r#"{"a":[],"b":1}"#] {
        let error = call(&connection, "t", wrong).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Arguments(_)), "{error}");
    }
    let mut none = request(&connection, "t", "{}").await;
    none.arguments = None;
    let error = connection.call(none).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Arguments(_)), "no arguments are no way round: {error}");
    assert_eq!(fake.params("tools/call").len(), 0);
    assert_eq!(said(&connection, "t", r#"{"a":[1]}"#).await, "called");
    let mut unchecked = request(&connection, "t", r#"{"a":7}"#).await;
    unchecked.check_schemas = false;
    assert_eq!(text(&connection.call(unchecked).await.unwrap()), "called");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_said_and_one_that_is_broken_is_the_servers_affair() {
    let tools = r##"{
        "dialect": {"inputSchema": {"$schema": "https://example.com/mine"}},
        "remote": {"inputSchema": {"properties": {"a": {"$ref": "https://example.com/a.json"}}}},
        "broken": {"inputSchema": {"type": "object", "properties": {"a": {"type": "wat"}}}},
        "local": {"inputSchema": {"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"},
            "v": {"type": "integer"}}}}, "$ref": "#/$defs/n"}},
        "seven": {"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}}
    }"##;
    let (fake, connection) = with_tools(tools).await;
    for tool in ["dialect", "remote"] {
        let error = call(&connection, tool, r#"{"a":1}"#).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::InputSchema(_)), "{tool}: {error}");
        assert_eq!(error.kind(), ErrorKind::Protocol);
    }
    assert_eq!(fake.params("tools/call").len(), 0);
    assert_eq!(said(&connection, "broken", r#"{"a":1}"#).await, "called");
    assert_eq!(said(&connection, "broken", r#"{"a":2}"#).await, "called");
    let warnings = fake.seen.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("arguments of `broken` are not checked: the schema is not valid")
    );
    assert_eq!(said(&connection, "local", r#"{"next":{"next":{"v":1}}}"#).await, "called");
    let error = call(&connection, "local", r#"{"next":{"next":{"v":"x"}}}"#).await.unwrap_err();
    assert!(error.to_string().contains("`next.next.v` should be integer"), "{error}");
    assert_eq!(said(&connection, "seven", "{}").await, "called");
    connection.shut_down().await;
}

#[tokio::test]
async fn output_schema_violation_reported() {
    let fake = Fake::new("09", &[]);
    let connection = fake.start().await.unwrap();
    let mut seen = String::new();
    for tool in [
        "error_no_structured",
        "error_wrong_structured",
        "structured_only",
        "structured_null",
        "violates_schema",
        "unknown_block",
    ] {
        let outcome = call(&connection, tool, "{}").await.unwrap();
        let fault = outcome.output_fault().map_or("-".to_owned(), SchemaFault::to_string);
        seen.extend([tool, ": ", &fault, "\n"]);
    }
    insta::assert_snapshot!(seen, @r#"
    error_no_structured: -
    error_wrong_structured: -
    structured_only: -
    structured_null: it should be object, found null
    violates_schema: `n` should be integer, found "five"
    unknown_block: -
    "#);
    let lost = call(&connection, "violates_schema", "{}").await.unwrap();
    assert_eq!(text(&lost), "n=five", "the result stays a result");
    let mut unchecked = request(&connection, "violates_schema", "{}").await;
    unchecked.check_schemas = false;
    assert!(connection.call(unchecked).await.unwrap().output_fault().is_none());
    connection.shut_down().await;
}

#[tokio::test]
async fn any_json_value_may_be_structured_and_is_held_to_its_schema() {
    let tools = r#"{
        "array": {"inputSchema": {}, "outputSchema": {"type": "array"}, "result": {"structuredContent": [1]}},
        "null": {"inputSchema": {}, "outputSchema": {"type": "null"}, "result": {"structuredContent": null}},
        "number": {"inputSchema": {}, "outputSchema": {"type": "string"}, "result": {"structuredContent": 1.10}},
        "none": {"inputSchema": {}, "outputSchema": true, "result": {"content": []}},
        "dialect": {"inputSchema": {}, "outputSchema": {"$schema": "x:y"}, "result": {"structuredContent": {}}}
    }"#;
    let (_fake, connection) = with_tools(tools).await;
    let mut seen = String::new();
    for tool in ["array", "null", "number", "none", "dialect"] {
        let outcome = call(&connection, tool, "{}").await.unwrap();
        let fault = outcome.output_fault().map_or("-".to_owned(), SchemaFault::to_string);
        seen.extend([tool, ": ", &fault, "\n"]);
    }
    insta::assert_snapshot!(seen, @r#"
    array: -
    null: -
    number: it should be string, found 1.1
    none: it should be there, found nothing
    dialect: the schema's dialect `x:y` is not supported (2020-12, 2019-09, draft-07, -06, -04 are)
    "#);
    connection.shut_down().await;
}
