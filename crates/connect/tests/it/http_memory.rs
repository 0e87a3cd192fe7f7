use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plenipo_connect::memory::{Memory, MemoryKey};
use plenipo_connect::{ErrorKind, Fault};
use plenipo_redact::Secret;

use crate::support::{Fake, call, request, said};
use crate::web::{Answer, Seen, Web};

/// What a host keeps between its connections.
#[derive(Debug, Default)]
struct Shelf(Mutex<HashMap<String, String>>);

impl Memory for Shelf {
    fn recall(&self, key: &MemoryKey) -> Option<String> {
        self.0.lock().unwrap().get(key.as_str()).cloned()
    }

    fn keep(&self, key: &MemoryKey, text: &str) {
        self.0.lock().unwrap().insert(key.as_str().to_owned(), text.to_owned());
    }
}

/// A modern server whose list is good for `ttl` milliseconds.
async fn listing(ttl: &'static str, count: &Arc<AtomicUsize>, shelf: &Arc<Shelf>) -> Web {
    let count = Arc::clone(count);
    let mut web = Web::modern(move |seen| {
        if seen.method()? != "tools/list" {
            return None;
        }
        let more = if count.fetch_add(1, Ordering::SeqCst) == 0 { "" } else { MORE };
        let result = format!(
            r#"{{"tools":[{{"name":"hi","inputSchema":{{"type":"object","properties":{{"zone":{{"type":"string","x-mcp-header":"Zone"}}}}}}}}{more}],"ttlMs":{ttl},"cacheScope":"private"}}"#
        );
        Some(Answer::json(&seen.result(&result)))
    })
    .await;
    web.options.memory = Some(Arc::clone(shelf) as Arc<dyn Memory>);
    web
}

const MORE: &str = r#",{"name":"new","inputSchema":{"type":"object"}}"#;
const ZONE: &str = r#"{"zone":"b"}"#;

fn zones(web: &Web) -> Vec<String> {
    let zone = |seen: &Seen| seen.header("mcp-param-zone").unwrap_or("-").to_owned();
    web.of("tools/call").iter().map(zone).collect()
}

#[tokio::test]
async fn cold_connection_call_sends_param_headers() {
    let (count, shelf) = (Arc::default(), Arc::default());
    let web = listing("60000", &count, &shelf).await;
    web.connect().await.unwrap().catalog().await.unwrap();

    let cold = web.connect().await.unwrap();
    call(&cold, "hi", ZONE).await.unwrap();
    assert_eq!(web.count("tools/list"), 1, "the list is still fresh");
    assert_eq!(zones(&web), ["b"]);
    assert!(cold.catalog_at_hand().await.unwrap().is_remembered());

    // What the remembered list does not have is looked for in a new one.
    call(&cold, "new", "{}").await.unwrap();
    assert_eq!(web.count("tools/list"), 2);
    let catalog = cold.catalog().await.unwrap();
    assert!(!catalog.is_remembered());
    assert_eq!(web.count("tools/list"), 2);

    // A call that was prepared with another tool than the remembered one as well.
    let other = web.connect().await.unwrap();
    let mut asked = request(&other, "hi", ZONE).await;
    asked.prepared = catalog.tools().last().cloned();
    let error = other.call(asked).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolChanged), "{error}");
    assert_eq!(web.count("tools/list"), 3);
}

#[tokio::test]
async fn a_remembered_list_is_not_used_once_it_is_stale_or_without_a_lifetime() {
    for ttl in ["0", "-5", "999", "\"60000\"", "null"] {
        let (count, shelf) = (Arc::default(), Arc::default());
        let web = listing(ttl, &count, &shelf).await;
        web.connect().await.unwrap().catalog().await.unwrap();
        call(&web.connect().await.unwrap(), "hi", ZONE).await.unwrap();
        assert_eq!(web.count("tools/list"), 2, "{ttl}");
        assert_eq!(zones(&web), ["b"]);
    }
}

#[tokio::test]
async fn a_remembered_list_never_crosses_servers_or_principals() {
    let (count, shelf) = (Arc::default(), Arc::default());
    let web = listing("60000", &count, &shelf).await;
    let as_whom = |token: &str| {
        let mut endpoint = web.endpoint();
        endpoint.bearer(&Secret::new(token.to_owned())).unwrap();
        endpoint
    };
    let mine = web.connect_to(&as_whom("token-of-one")).await.unwrap();
    mine.catalog().await.unwrap();
    for (who, lists) in [("token-of-one", 1), ("token-of-another", 2), ("token-of-another", 2)] {
        let connection = web.connect_to(&as_whom(who)).await.unwrap();
        call(&connection, "hi", ZONE).await.unwrap();
        assert_eq!(web.count("tools/list"), lists, "{who}");
    }
    let anonymous = web.connect().await.unwrap();
    call(&anonymous, "hi", ZONE).await.unwrap();
    assert_eq!(web.count("tools/list"), 3);
    let other = listing("60000", &count, &shelf).await;
    call(
        &other
            .connect_to(&{
                let mut endpoint = other.endpoint();
                endpoint.bearer(&Secret::new("token-of-one".to_owned())).unwrap();
                endpoint
            })
            .await
            .unwrap(),
        "hi",
        ZONE,
    )
    .await
    .unwrap();
    assert_eq!(other.count("tools/list"), 1);
    let kept = format!("{shelf:?}");
    assert!(!kept.contains("token-of"), "{kept}");
    assert!(!kept.contains("127.0.0.1"), "{kept}");
}

#[tokio::test]
async fn what_a_memory_gives_back_is_not_trusted() {
    #[derive(Debug)]
    struct Garbage(&'static str);
    impl Memory for Garbage {
        fn recall(&self, _: &MemoryKey) -> Option<String> {
            Some(self.0.to_owned())
        }
        fn keep(&self, _: &MemoryKey, _: &str) {}
    }
    for text in [
        "",
        "{",
        r#"{"era":"modern","at":99999999999,"ttl":60,"tools":[]}"#,
        r#"{"era":"x","at":1,"ttl":99999999999,"tools":{}}"#,
        r#"{"at":-1,"ttl":-1,"tools":[{"name":7}]}"#,
    ] {
        let mut web = Web::modern(|_| None).await;
        web.options.memory = Some(Arc::new(Garbage(text)));
        let connection = web.connect().await.unwrap();
        assert_eq!(said(&connection, "hi", "{}").await, "hi", "{text}");
        assert_eq!(web.log(), ["server/discover", "tools/list", "tools/call"], "{text}");
    }
}

#[tokio::test]
async fn an_era_is_remembered_and_mended_in_both_directions() {
    let shelf: Arc<Shelf> = Arc::default();
    let modern = Arc::new(AtomicUsize::new(0));
    let mut web = Web::start({
        let modern = Arc::clone(&modern);
        move |seen| {
            Some(match modern.load(Ordering::SeqCst) {
                0 => crate::web::legacy(seen),
                _ => crate::web::modern(seen),
            })
        }
    })
    .await;
    web.options.memory = Some(Arc::clone(&shelf) as Arc<dyn Memory>);
    let mut before = 0;
    for (is_modern, log) in [
        (0, "server/discover initialize notifications/initialized"),
        (0, "initialize notifications/initialized"),
        (1, "initialize server/discover"),
        (1, "server/discover"),
        (0, "server/discover initialize notifications/initialized"),
        (0, "initialize notifications/initialized"),
    ] {
        modern.store(is_modern, Ordering::SeqCst);
        web.connect().await.unwrap();
        let all = web.log();
        assert_eq!(all.get(before..).unwrap().join(" "), log);
        before = all.len();
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_probed_once() {
    let shelf: Arc<Shelf> = Arc::default();
    let mut fake = Fake::new("peer", &[("F_ERA", "killer")]);
    fake.options.memory = Some(shelf as Arc<dyn Memory>);
    for probes in [1, 1, 1] {
        let connection = fake.start().await.unwrap();
        connection.shut_down().await;
        assert_eq!(fake.params("server/discover").len(), probes);
    }
    assert_eq!(fake.params("initialize").len(), 3);
}

#[tokio::test]
async fn a_local_server_that_was_replaced_by_a_modern_one_is_probed_after_all() {
    let mut fake = Fake::new("peer", &[("F_ERA", "modern")]);
    fake.options.era = plenipo_connect::EraHint::Legacy;
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.era().version(), "2026-07-28");
    connection.shut_down().await;
    assert_eq!(fake.methods(), ["initialize", "server/discover"]);
    let mut broken = Fake::new("peer", &[("F_VERSION", "only 1999-01-01")]);
    broken.options.era = plenipo_connect::EraHint::Legacy;
    assert_eq!(broken.start().await.unwrap_err().kind(), ErrorKind::Protocol);
}
