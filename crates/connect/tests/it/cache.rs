//! What a server allows to be kept, over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plenipo_connect::{ChangeFilter, Connection, ErrorKind, RequestOptions, Resource, ResultCache};
use plenipo_redact::Secret;
use plenipo_wire::object;

use crate::support::{call, member};
use crate::web::{Answer, Seen, Web, event};

const HOUR: u64 = 3_600_000;

/// Resources and tools whose texts count how often they were asked for, kept for `ttl` ms.
async fn counting(ttl: u64, scope: &'static str) -> Web {
    let asked = Arc::new(AtomicUsize::new(0));
    Web::modern(move |seen| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let kept = format!(r#""ttlMs":{ttl},"cacheScope":"{scope}""#);
        let params = seen.params();
        let text = |name: &str| params.as_ref().and_then(|params| member(params, name));
        Some(Answer::json(&seen.result(&match seen.method()?.as_str() {
            "server/discover" => r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}}"#.to_owned(),
            "resources/read" => {
                let uri = text("uri")?;
                format!(r#"{{"contents":[{{"uri":"{uri}","text":"{uri} {number}"}}],{kept}}}"#)
            }
            "resources/list" => {
                let next = match text("cursor").as_deref() {
                    None => r#","nextCursor":"""#,
                    Some("") => r#","nextCursor":"2""#,
                    _ => "",
                };
                format!(r#"{{"resources":[{{"uri":"file:///{number}","name":"n"}}]{next},{kept}}}"#)
            }
            "tools/list" => format!(
                r#"{{"tools":[{{"name":"t{number}","inputSchema":{{"type":"object"}}}}],{kept}}}"#
            ),
            "tools/call" => r#"{"content":[]}"#.to_owned(),
            _ => return None,
        })))
    })
    .await
}

async fn read(connection: &Connection, uri: &str) -> String {
    let read = connection.read_resource(uri, &RequestOptions::default()).await.unwrap();
    read.result().get().to_owned()
}

#[tokio::test]
async fn cache_key_isolation() {
    let web = counting(HOUR, "private").await;
    let connection = web.connect().await.unwrap();
    let (a, b) = (read(&connection, "file:///a").await, read(&connection, "file:///b").await);
    assert_ne!(a, b);
    assert_eq!(read(&connection, "file:///a").await, a);
    assert_eq!(read(&connection, "file:///b").await, b);
    assert_eq!(web.count("resources/read"), 2);
    let mut own = RequestOptions::default();
    own.meta = Some(plenipo_wire::Fragment::parse(r#"{"example.com/as":"me"}"#).unwrap());
    connection.read_resource("file:///a", &own).await.unwrap();
    assert_eq!(web.count("resources/read"), 3, "what the caller adds may matter");

    let options = RequestOptions::default();
    let pages = [None, Some(""), Some("2")];
    let mut seen = Vec::new();
    for _ in 0..2 {
        for cursor in pages {
            let page = connection.page::<Resource>(cursor, &options).await.unwrap();
            seen.push(page.items[0].uri().to_owned());
        }
    }
    assert_eq!(seen[..3], seen[3..]);
    assert_eq!(seen.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    assert_eq!(connection.resources(&options).await.unwrap().items.len(), 3);
    assert_eq!(web.count("resources/list"), 3, "each page is kept by itself");
}

#[tokio::test]
async fn private_cache_never_crosses_principal() {
    for (scope, asked) in [("private", 2), ("public", 1)] {
        let mut web = counting(HOUR, scope).await;
        web.options.cache = Arc::new(ResultCache::new());
        let mut connections = Vec::new();
        for token in ["alice", "bob"] {
            let mut endpoint = web.endpoint();
            endpoint.bearer(&Secret::new(token.to_owned())).unwrap();
            connections.push(web.connect_to(&endpoint).await.unwrap());
        }
        let (alice, bob) =
            (read(&connections[0], "file:///a").await, read(&connections[1], "file:///a").await);
        assert_eq!(alice == bob, scope == "public");
        assert_eq!(web.count("resources/read"), asked, "{scope}");
        let shown = format!("{:?}", web.options.cache);
        assert!(shown.contains("results: ") && !shown.contains("file:"), "{shown}");
    }
}

#[tokio::test]
async fn no_background_poll_by_default() {
    let web = counting(1, "private").await;
    let connection = web.connect().await.unwrap();
    let first = read(&connection, "file:///a").await;
    let before = connection.catalog().await.unwrap();
    let idle = tokio::time::timeout(Duration::from_millis(150), connection.ended());
    assert!(idle.await.is_err());
    assert_eq!((web.count("resources/read"), web.count("tools/list")), (1, 1), "nobody asked");
    call(&connection, before.tools().next().unwrap().name(), "{}").await.unwrap();
    assert_eq!(web.count("tools/list"), 1, "a call goes on with what is known");
    assert_ne!(read(&connection, "file:///a").await, first);
    let after = connection.catalog().await.unwrap();
    assert!(after.revision() > before.revision(), "who lists after its time lists anew");
    assert_eq!((web.count("resources/read"), web.count("tools/list")), (2, 2));
}

#[tokio::test]
async fn revoked_token_never_served_stale() {
    let revoked = Arc::new(AtomicBool::new(false));
    let web = Web::modern({
        let revoked = Arc::clone(&revoked);
        move |seen| {
            let method = seen.method()?;
            if method == "server/discover" {
                return None;
            }
            if revoked.load(Ordering::Relaxed) {
                return Some(Answer::empty(if method == "resources/list" { 401 } else { 403 }));
            }
            (method == "resources/read").then(|| {
                let contents =
                    r#"{"contents":[{"uri":"file:///a","text":"secret"}],"ttlMs":3600000}"#;
                Answer::json(&seen.result(contents))
            })
        }
    })
    .await;
    let connection = web.connect().await.unwrap();
    let options = RequestOptions::default();
    read(&connection, "file:///a").await;
    read(&connection, "file:///a").await;
    assert_eq!(web.count("resources/read"), 1, "it is kept");
    revoked.store(true, Ordering::Relaxed);
    // A refusal of anything is a refusal of whoever was let in before.
    let error = connection.page::<Resource>(None, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn, "{error}");
    let error = connection.read_resource("file:///a", &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn, "{error}");
    assert_eq!(web.count("resources/read"), 2);
}

#[tokio::test]
async fn a_list_that_does_not_say_how_long_it_is_good_is_listed_each_time() {
    for (era, listings) in [("modern", 3), ("legacy", 1)] {
        let fake = crate::support::Fake::new("peer", &[("F_ERA", era)]);
        let connection = fake.start().await.unwrap();
        for _ in 0..3 {
            connection.catalog().await.unwrap();
        }
        connection.shut_down().await;
        assert_eq!(fake.params("tools/list").len(), listings, "{era}");
    }
    let fake = crate::support::Fake::new("peer", &[("F_ERA", "modern"), ("F_TTL", "60000")]);
    let connection = fake.start().await.unwrap();
    for _ in 0..3 {
        connection.catalog().await.unwrap();
    }
    connection.shut_down().await;
    assert_eq!(fake.params("tools/list").len(), 1, "the control");
}

#[tokio::test]
async fn a_notice_about_a_resource_beats_its_time() {
    let web = Web::modern(|seen: &Seen| match seen.method()?.as_str() {
        "subscriptions/listen" => {
            let id = seen.id();
            let notice = |method: &str, more: &str| {
                event(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},{more}}}}}"#
                ))
            };
            let granted = r#""notifications":{"resourceSubscriptions":["file:///a"]}"#;
            let events = notice("subscriptions/acknowledged", granted)
                + &notice("resources/updated", r#""uri":"file:///a""#);
            Some(Answer::stream(&events).hold())
        }
        "resources/read" => {
            let params = seen.params()?;
            let uri = object::member(&params, "uri")?.get();
            Some(Answer::json(&seen.result(&format!(
                r#"{{"contents":[{{"uri":{uri},"text":"x"}}],"ttlMs":3600000}}"#
            ))))
        }
        _ => None,
    })
    .await;
    let connection = web.connect().await.unwrap();
    for uri in ["file:///a", "file:///b", "file:///a", "file:///b"] {
        read(&connection, uri).await;
    }
    assert_eq!(web.count("resources/read"), 2);
    let filter = ChangeFilter::default().with_uris(["file:///a".to_owned()]);
    let mut subscription = connection.subscribe(filter).await.unwrap();
    assert!(subscription.next().await.is_some());
    read(&connection, "file:///a").await;
    read(&connection, "file:///b").await;
    assert_eq!(web.count("resources/read"), 3, "the other one is as it was");
}
