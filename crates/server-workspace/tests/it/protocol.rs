//! Both eras, and lines that are no requests.

use serde_json::{Value, json};

use crate::harness::{Host, options, unsandboxed};

fn pretty(mut answer: Value) -> String {
    for path in ["/result/serverInfo", "/result/_meta/io.modelcontextprotocol~1serverInfo"] {
        if let Some(info) = answer.pointer_mut(path) {
            assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
            info["version"] = "[version]".into();
        }
    }
    serde_json::to_string_pretty(&answer).unwrap()
}

fn modern(version: &str) -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

#[tokio::test]
async fn initialize_is_answered_in_the_asked_version() {
    let mut host = Host::new(options());
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {}});
        let answer = host.request(1, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
    }
    for version in ["2023-01-01", "2026-07-28", ""] {
        let answer = host.request(2, "initialize", json!({"protocolVersion": version})).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }
    let answer = host.request(3, "initialize", json!({"protocolVersion": "2025-06-18"})).await;
    insta::assert_snapshot!("initialize", pretty(answer));
    host.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!(host.request(4, "ping", json!({})).await["result"], json!({}));
    let answer = host.request(5, "initialize", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    host.close().await.unwrap();
}

#[tokio::test]
async fn discover_is_answered_with_and_without_meta() {
    let mut host = Host::new(options());
    let answer = host.request(1, "server/discover", modern("2026-07-28")).await;
    let bare = host.request(1, "server/discover", json!({})).await;
    assert_eq!(answer, bare);
    insta::assert_snapshot!("discover", pretty(answer));
}

#[tokio::test]
async fn a_modern_request_of_another_revision_is_told_which_are_spoken() {
    let mut host = Host::new(options());
    let answer = host.request(1, "server/discover", modern("2030-01-01")).await;
    assert_eq!(answer["error"]["code"], -32022);
    let data = json!({"supported": ["2026-07-28"], "requested": "2030-01-01"});
    assert_eq!(answer["error"]["data"], data);
}

#[tokio::test]
async fn modern_requests_get_modern_results_and_no_legacy_methods() {
    let mut host = Host::new(unsandboxed());
    for method in ["initialize", "ping", "logging/setLevel"] {
        let answer = host.request(1, method, modern("2026-07-28")).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    let listed = host.request(2, "tools/list", modern("2026-07-28")).await;
    assert_eq!(listed["result"]["resultType"], "complete");
    assert_eq!(listed["result"]["cacheScope"], "public");
    let mut call = modern("2026-07-28");
    call["name"] = "run".into();
    call["arguments"] = json!({"command": "echo hi"});
    let called = host.request(3, "tools/call", call).await;
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(called["result"]["structuredContent"]["stdout"], "hi\n");
}

#[tokio::test]
async fn the_tool_list_has_one_page() {
    let mut host = Host::new(options());
    let answer = host.request(1, "tools/list", json!({})).await;
    insta::assert_snapshot!("tools_list", pretty(answer));
    let answer = host.request(2, "tools/list", json!({"cursor": ""})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn errors_name_what_is_wrong_and_the_connection_goes_on() {
    let mut options = options();
    options.max_message_bytes = 4096;
    let mut host = Host::new(options);
    let long =
        format!(r#"{{"jsonrpc":"2.0","id":"big","method":"ping","params":"{}"#, "x".repeat(9000));
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"walk"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"run","_meta":{},"_m\u0065ta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":[7],"method":"ping"}"#,
        r#"{"hello":"world"}"#,
        "[]",
        "hello",
        &long,
        "",
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":123}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#,
    ];
    for line in lines {
        host.send(line).await;
    }
    host.send_bytes(b"\xff\xfe\n").await;
    host.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    let mut said = Vec::new();
    loop {
        let line = host.next_line().await.unwrap();
        let last = line.contains("\"last\"");
        said.push(line);
        if last {
            break;
        }
    }
    insta::assert_snapshot!("errors", said.join("\n"));
}

#[tokio::test]
async fn ids_are_echoed_as_they_were_spelled() {
    let mut host = Host::new(options());
    for id in [r#""a\/b""#, "1.0", "-7", "12345678901234567890123"] {
        host.send(&format!(r#"{{"id":{id},"method":"ping"}}"#)).await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(host.next_line().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_last_request_without_a_line_end_is_answered() {
    let mut host = Host::new(options());
    host.send_bytes(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    host.close().await.unwrap();
    assert_eq!(host.next().await["id"], 1);
    assert_eq!(host.next_line().await, None);
}
