//! Resources, in both eras.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_connect::{Canceller, ErrorKind, Fault, RequestOptions};
use plenipo_wire::{Fragment, object};

use crate::input::puppet::Puppet;
use crate::web::{Answer, Seen, Web, event};

const CAPABILITIES: &str = r#"{"resources":{"subscribe":true,"listChanged":true}}"#;

fn answer(seen: &Seen) -> Option<Answer> {
    let result = match seen.method()?.as_str() {
        "server/discover" if seen.header("mcp-method").is_some() => {
            format!(r#"{{"supportedVersions":["2026-07-28"],"capabilities":{CAPABILITIES}}}"#)
        }
        "resources/list" => {
            r#"{"resources":[{"uri":"file:///a b","name":"a","size":3,"later":1.10}]}"#.to_owned()
        }
        "resources/templates/list" => {
            r#"{"resourceTemplates":[{"uriTemplate":"file:///{path}","name":"t"}]}"#.to_owned()
        }
        "resources/read" => {
            r#"{"contents":[{"uri":"file:///a","text":"abc"},{"uri":"file:///b","blob":"AA=="}],"ttlMs":1,"z":1E2}"#
                .to_owned()
        }
        "resources/subscribe" | "resources/unsubscribe" => "{}".to_owned(),
        _ => return None,
    };
    Some(Answer::json(&seen.result(&result)))
}

/// A legacy server with resources.
async fn legacy() -> Web {
    Web::legacy(|seen| match seen.method()?.as_str() {
        "server/discover" => None,
        "initialize" => Some(Answer::json(&seen.result(&format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{CAPABILITIES},"serverInfo":{{"name":"w","version":"1"}}}}"#
        )))),
        _ => answer(seen),
    })
    .await
}

#[tokio::test]
async fn resources_are_listed_and_read_in_both_eras() {
    for (web, is_modern) in [(Web::modern(answer).await, true), (legacy().await, false)] {
        let connection = web.connect().await.unwrap();
        let options = RequestOptions::default();
        let listed = connection.resources(&options).await.unwrap();
        let resource = &listed.items[0];
        assert_eq!((resource.uri(), resource.view().unwrap().size), ("file:///a b", Some(3)));
        assert!(resource.raw().as_str().contains("1.10"));
        let templates = connection.resource_templates(&options).await.unwrap();
        assert_eq!(templates.items[0].uri_template(), "file:///{path}");
        let read = connection.read_resource(resource.uri(), &options).await.unwrap();
        let view = read.view().unwrap();
        assert_eq!(view.contents[0].text.as_deref(), Some("abc"));
        assert_eq!(view.contents[1].blob.as_deref(), Some("AA=="));
        assert_eq!(object::member(read.result(), "z").unwrap().get(), "1E2");

        let sent = &web.of("resources/read")[0];
        let expected = is_modern.then_some("file:///a b");
        assert_eq!(sent.header("mcp-name"), expected);
        let meta = object::member(&sent.params().unwrap(), "_meta").is_some();
        assert_eq!(meta, is_modern, "a legacy request has nothing to say there");
    }
}

#[tokio::test]
async fn a_missing_resource_is_told_in_both_codes() {
    for code in [-32602, -32002] {
        let web = Web::modern(move |seen| match seen.method()?.as_str() {
            "resources/read" => Some(Answer::json(
                &seen.error(&format!(r#"{{"code":{code},"message":"no such resource"}}"#)),
            )),
            _ => answer(seen),
        })
        .await;
        let connection = web.connect().await.unwrap();
        let read = connection.read_resource("file:///x", &RequestOptions::default()).await;
        let error = read.unwrap_err();
        assert!(error.to_string().starts_with("read resource `file:///x` of server `web`:"));
        let Fault::Peer(error) = error.fault() else { panic!("{error}") };
        assert!(error.is_resource_missing());
    }
}

#[tokio::test]
async fn progress_cancellation_and_limits_hold_for_every_request() {
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/read" => {
            let id = seen.id();
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
            );
            Some(Answer::stream(&event(&progress)).hold())
        }
        _ => answer(seen),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let canceller = Arc::new(Canceller::new());
    let mut options = RequestOptions::default();
    options.cancel = Some(canceller.cancellation());
    let steps = Arc::new(Mutex::new(0));
    options.progress = Some(Arc::new({
        let (steps, canceller) = (Arc::clone(&steps), Arc::clone(&canceller));
        move |_| {
            *steps.lock().unwrap() += 1;
            canceller.cancel("enough");
        }
    }));
    let error = connection.read_resource("a:", &options).await.unwrap_err();
    assert_eq!((error.kind(), *steps.lock().unwrap()), (ErrorKind::Cancelled, 1));

    let mut options = RequestOptions::default();
    options.timeout = Some(Duration::from_millis(20));
    let error = connection.read_resource("a:", &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn the_callers_meta_goes_along_and_cannot_forge_ours() {
    let web = Web::modern(answer).await;
    let connection = web.connect().await.unwrap();
    let mut options = RequestOptions::default();
    options.meta =
        Some(Fragment::parse(r#"{"com.example/a":1.10,"codex/sandbox-state":{}}"#).unwrap());
    connection.read_resource("a:", &options).await.unwrap();
    let params = web.of("resources/read")[0].params().unwrap();
    let meta = object::member(&params, "_meta").unwrap().get();
    assert!(meta.contains(r#""com.example/a":1.10"#), "{meta}");
    assert!(!meta.contains("codex/"), "sandbox state goes with tools/call only: {meta}");

    let forged = r#"{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}"#;
    options.meta = Some(Fragment::parse(forged).unwrap());
    let error = connection.read_resource("a:", &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(web.count("resources/read"), 1);
}

#[tokio::test]
async fn input_required_on_list_is_error() {
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/list" => Some(Answer::json(
            &seen.result(r#"{"resultType":"input_required","inputRequests":{}}"#),
        )),
        _ => answer(seen),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let error = connection.resources(&RequestOptions::default()).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ResultType { found } if found == "input_required"));
}

#[tokio::test]
async fn a_resource_may_ask_before_it_is_read() {
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/read" if object::member(&seen.params()?, "inputResponses").is_none() => {
            Some(Answer::json(&seen.result(
                r#"{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Read it?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}}}}"#,
            )))
        }
        _ => answer(seen),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let mut options = RequestOptions::default();
    assert!(connection.read_resource("a:", &options).await.is_err(), "nobody is there to ask");
    options.input = Some(Puppet::accepting(r#"{"ok":true}"#));
    let read = connection.read_resource("a:", &options).await.unwrap();
    assert_eq!(read.view().unwrap().contents.len(), 2);
    let sent = web.of("resources/read");
    let [first, retry] = &sent[1..] else { panic!("{sent:?}") };
    assert!(first.body.contains(r#""elicitation":{"form":{},"url":{}}"#));
    assert!(
        retry.body.contains(r#""inputResponses":{"q":{"action":"accept","content":{"ok":true}}}"#)
    );
    assert!(retry.body.contains(r#""requestState":"s""#));
    assert_ne!(first.id(), retry.id());
}

#[tokio::test]
async fn mrtr_result_not_cached() {
    // The server says that the answer is fresh for a minute; it was given to these answers only.
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/read" if object::member(&seen.params()?, "requestState").is_none() => Some(
            Answer::json(&seen.result(r#"{"resultType":"input_required","requestState":"s"}"#)),
        ),
        "resources/read" => Some(Answer::json(&seen.result(
            r#"{"contents":[{"uri":"a:","text":"x"}],"ttlMs":60000,"cacheScope":"public"}"#,
        ))),
        _ => answer(seen),
    })
    .await;
    let connection = web.connect().await.unwrap();
    for reads in 1..3 {
        connection.read_resource("a:", &RequestOptions::default()).await.unwrap();
        assert_eq!(web.count("resources/read"), 2 * reads, "both rounds, each time");
    }
}

#[tokio::test]
async fn questions_of_a_legacy_server_have_a_stream_before_anything_is_asked() {
    for has_stream in [true, false] {
        let mut web = Web::legacy(move |seen| match (seen.verb.as_str(), seen.method().as_deref()) {
            ("GET", _) if has_stream => Some(Answer::stream(": hello\n\n").hold()),
            ("GET", _) => Some(Answer::empty(405)),
            (_, Some("initialize")) => Some(Answer::json(&seen.result(&format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{CAPABILITIES},"serverInfo":{{"name":"w","version":"1"}}}}"#
            )))),
            (_, Some("server/discover")) => None,
            _ => answer(seen),
        })
        .await;
        web.options.input = Some(Puppet::accepting(r#"{"ok":true}"#));
        let connection = web.connect().await.unwrap();
        connection.read_resource("a:", &RequestOptions::default()).await.unwrap();
        let log = web.log();
        let at = |what: &str| log.iter().position(|entry| entry == what);
        assert!(at("GET").unwrap() < at("resources/read").unwrap(), "{log:?}");
    }
}
