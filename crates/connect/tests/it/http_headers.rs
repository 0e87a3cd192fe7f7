use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plenipo_connect::catalog::Lookup;
use plenipo_connect::{ErrorKind, Fault};

use crate::support::{call, request};
use crate::web::{Answer, Seen, Web};

const JSON: &str = "Content-Type: application/json\r\n";

fn listing(seen: &Seen, tools: &[String]) -> Option<Answer> {
    let result = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    (seen.method()? == "tools/list").then(|| Answer::json(&seen.result(&result)))
}

fn tool(name: &str, properties: &str) -> String {
    format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{{properties}}}}}}}"#
    )
}

const NESTED: &str = r#"
    "region":{"type":"string","x-mcp-header":"Region"},
    "count":{"type":"integer","x-mcp-header":"Count"},
    "dry":{"type":"boolean","x-mcp-header":"Dry"},
    "query":{"type":"string"},
    "where":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}}"#;

/// The `Mcp-Param-…` headers of a request, sorted.
fn params(seen: &Seen) -> String {
    let mut lines: Vec<_> = seen
        .head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            name.strip_prefix("mcp-param-").map(|name| format!("{name}:{value}"))
        })
        .collect();
    lines.sort();
    lines.join(", ")
}

#[tokio::test]
async fn param_headers_nested_and_null() {
    let web = Web::modern(|seen| listing(seen, &[tool("hi", NESTED)])).await;
    let connection = web.connect().await.unwrap();
    for (arguments, expected) in [
        (
            r#"{"region":"eu","count":42.0,"dry":false,"query":"q","where":{"zone":"b"}}"#,
            "count: 42, dry: false, region: eu, zone: b",
        ),
        (r#"{"region":null,"where":null}"#, ""),
        (r#"{"where":{"zone":""}}"#, "zone: "),
        (r#"{"region":"\u00e9","query":" "}"#, "region: =?base64?w6k=?="),
    ] {
        call(&connection, "hi", arguments).await.unwrap();
        let sent = web.of("tools/call").pop().unwrap();
        assert_eq!(params(&sent), expected, "{arguments}");
    }
    let before = web.count("tools/call");
    let error = call(&connection, "hi", r#"{"count":9007199254740993}"#).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ArgumentHeader(_)), "{error}");
    assert_eq!((error.kind(), web.count("tools/call")), (ErrorKind::Usage, before));
}

#[tokio::test]
async fn a_legacy_server_gets_no_parameter_headers_and_keeps_its_oddly_annotated_tools() {
    let odd =
        r#""a":{"type":"number","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"B"}"#;
    let web = Web::legacy(move |seen| listing(seen, &[tool("hi", odd)])).await;
    let connection = web.connect().await.unwrap();
    call(&connection, "hi", r#"{"a":1.5,"b":"x"}"#).await.unwrap();
    assert_eq!(params(&web.of("tools/call")[0]), "");
}

#[tokio::test]
async fn bad_annotation_drops_only_that_tool() {
    let bad = r#""a":{"type":"string","x-mcp-header":"Two Words"}"#;
    let web = Web::modern(move |seen| {
        let stray = r#""a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#;
        listing(seen, &[tool("bad", bad), tool("good", NESTED), tool("stray", stray)])
    })
    .await;
    let connection = web.connect().await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    let names: Vec<_> = catalog.tools().map(plenipo_connect::Tool::name).collect();
    assert_eq!(names, ["good"]);
    let Lookup::Dropped(dropped) = catalog.find("bad") else { panic!("not dropped") };
    assert_eq!(dropped.reason, "`x-mcp-header` of `a` is not a header's name");
    let warnings = web.seen.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("`bad`"), "{warnings:?}");
    let error = call(&connection, "bad", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::NoSuchTool { dropped: Some(_), .. }), "{error}");
    call(&connection, "good", "{}").await.unwrap();
    assert_eq!(web.count("tools/call"), 1);
}

/// Wants the header `Zone`, of which its tool list tells after the first listing only.
fn changed(seen: &Seen, listings: &AtomicUsize) -> Option<Answer> {
    let body = seen.error(r#"{"code":-32020,"message":"Mcp-Param-Zone is missing"}"#);
    match seen.method().as_deref() {
        Some("tools/list") if listings.fetch_add(1, Ordering::SeqCst) == 0 => {
            listing(seen, &[tool("hi", "")])
        }
        Some("tools/list") => listing(seen, &[tool("hi", NESTED)]),
        Some("tools/call") if seen.header("mcp-param-zone").is_none() => {
            Some(Answer::new(400, JSON, &body))
        }
        _ => None,
    }
}

#[tokio::test]
async fn header_mismatch_refreshes_schema_then_retries_once() {
    let listings = AtomicUsize::new(0);
    let web = Web::modern(move |seen| changed(seen, &listings)).await;
    let connection = Arc::new(web.connect().await.unwrap());
    let zone = r#"{"where":{"zone":"b"}}"#;
    let (a, b) = tokio::join!(call(&connection, "hi", zone), call(&connection, "hi", zone));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    assert_eq!(web.count("tools/list"), 2, "once for everybody");
    let ids: HashSet<_> = web.of("tools/call").iter().map(Seen::id).collect();
    assert_eq!(ids.len(), web.count("tools/call"), "each attempt has its own id");
    let before = web.count("tools/call");
    call(&connection, "hi", zone).await.unwrap();
    assert_eq!(web.count("tools/call"), before + 1);

    // What was listed anew is the catalog from now on, and is not listed again for it.
    let catalog = connection.catalog_at_hand().await.unwrap();
    let Lookup::Found(tool) = catalog.find("hi") else { panic!("no tool") };
    assert!(tool.raw().as_str().contains("x-mcp-header"), "{}", tool.raw().as_str());
    assert!(catalog.revision() > 1, "{}", catalog.revision());

    // A server that is never content is asked twice.
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Peer(peer) if peer.code == -32020), "{error}");
    assert_eq!((web.count("tools/call"), web.count("tools/list")), (before + 3, 3));

    // A prepared call is not made with a tool that turns out to be another.
    let listings = AtomicUsize::new(0);
    let web = Web::modern(move |seen| changed(seen, &listings)).await;
    let connection = web.connect().await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    let Lookup::Found(prepared) = catalog.find("hi") else { panic!("no tool") };
    let mut asked = request(&connection, "hi", zone).await;
    asked.prepared = Some(prepared.clone());
    let error = connection.call(asked).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolChanged), "{error}");
    assert_eq!(web.count("tools/call"), 1);
}
