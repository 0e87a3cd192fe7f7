//! Lists in pages.

use plenipo_connect::{Fault, ListingFault, RequestOptions, Resource};
use plenipo_wire::object;

use crate::support::member;
use crate::web::{Answer, Seen, Web};

fn capable(seen: &Seen, capabilities: &str) -> Option<Answer> {
    (seen.method()? == "server/discover").then(|| {
        Answer::json(&seen.result(&format!(
            r#"{{"supportedVersions":["2026-07-28"],"capabilities":{capabilities}}}"#
        )))
    })
}

/// The cursor of a request for a page.
fn cursor(seen: &Seen) -> Option<String> {
    member(&seen.params()?, "cursor")
}

fn page(seen: &Seen, uri: &str, next: &str) -> Option<Answer> {
    let next = if next.is_empty() { String::new() } else { format!(r#","nextCursor":{next}"#) };
    Some(Answer::json(&seen.result(&format!(r#"{{"resources":[{{"uri":"{uri}"}}]{next}}}"#))))
}

fn asked(web: &Web) -> Vec<Option<String>> {
    web.of("resources/list").iter().map(cursor).collect()
}

async fn listed(web: &Web) -> Result<Vec<String>, plenipo_connect::ConnectError> {
    let connection = web.connect().await.unwrap();
    let listed = connection.resources(&RequestOptions::default()).await?;
    Ok(listed.items.iter().map(|resource| resource.uri().to_owned()).collect())
}

#[tokio::test]
async fn cursor_rules() {
    let text = |text: &str| Some(text.to_owned());
    // An empty cursor is one, and every cursor goes back as it came.
    let web = Web::modern(|seen| match (seen.method()?.as_str(), cursor(seen).as_deref()) {
        ("resources/list", None) => page(seen, "a:1", r#""""#),
        ("resources/list", Some("")) => page(seen, "a:2", r#""a\" \u00e9""#),
        ("resources/list", Some("a\" \u{e9}")) => page(seen, "a:3", "null"),
        _ => capable(seen, r#"{"resources":{}}"#),
    })
    .await;
    assert_eq!(listed(&web).await.unwrap(), ["a:1", "a:2", "a:3"]);
    assert_eq!(asked(&web), [None, text(""), text("a\" \u{e9}")]);

    // A cursor that the server no longer knows: all over again, and nothing twice.
    let gone = std::sync::atomic::AtomicBool::new(true);
    let web = Web::modern(move |seen| match (seen.method()?.as_str(), cursor(seen).as_deref()) {
        ("resources/list", None) => page(seen, "a:1", r#""x""#),
        ("resources/list", Some("x")) if gone.swap(false, std::sync::atomic::Ordering::AcqRel) => {
            Some(Answer::json(&seen.error(r#"{"code":-32602,"message":"unknown cursor"}"#)))
        }
        ("resources/list", Some("x")) => page(seen, "a:2", ""),
        _ => capable(seen, r#"{"resources":{}}"#),
    })
    .await;
    assert_eq!(listed(&web).await.unwrap(), ["a:1", "a:2"]);
    assert_eq!(asked(&web), [None, text("x"), None, text("x")]);

    // The tools are a list like any other.
    let gone = std::sync::atomic::AtomicBool::new(true);
    let web = Web::modern(move |seen| match (seen.method()?.as_str(), cursor(seen).as_deref()) {
        ("tools/list", None) => tools(seen, "one", r#","nextCursor":"""#),
        ("tools/list", Some("")) if gone.swap(false, std::sync::atomic::Ordering::AcqRel) => {
            Some(Answer::json(&seen.error(r#"{"code":-32602,"message":"unknown cursor"}"#)))
        }
        ("tools/list", Some("")) => tools(seen, "two", ""),
        _ => None,
    })
    .await;
    let catalog = web.connect().await.unwrap().catalog().await.unwrap();
    let names: Vec<_> = catalog.tools().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(web.count("tools/list"), 4);
}

fn tools(seen: &Seen, name: &str, next: &str) -> Option<Answer> {
    let tool = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    Some(Answer::json(&seen.result(&format!(r#"{{"tools":[{tool}]{next}}}"#))))
}

#[tokio::test]
async fn a_list_without_end_is_an_error() {
    let fault = async |next: &'static str| {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let web = Web::modern(move |seen| match seen.method()?.as_str() {
            "resources/list" => {
                let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                page(seen, "a:", &next.replace('#', &number.to_string()))
            }
            _ => capable(seen, r#"{"resources":{}}"#),
        })
        .await;
        let error = listed(&web).await.unwrap_err();
        match error.fault() {
            Fault::Listing(fault) => (fault.clone(), asked(&web).len()),
            other => panic!("{other}"),
        }
    };
    assert_eq!(fault(r#""same""#).await, (ListingFault::RepeatedCursor, 2));
    assert_eq!(fault(r##""#""##).await, (ListingFault::TooManyPages { limit: 100 }, 100));
    // A cursor that is refused twice.
    let web = Web::modern(|seen| match (seen.method()?.as_str(), cursor(seen)) {
        ("resources/list", None) => page(seen, "a:1", r#""x""#),
        ("resources/list", Some(_)) => {
            Some(Answer::json(&seen.error(r#"{"code":-32602,"message":"unknown cursor"}"#)))
        }
        _ => capable(seen, r#"{"resources":{}}"#),
    })
    .await;
    let error = listed(&web).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Listing(ListingFault::CursorRefused)), "{error}");
    assert_eq!(asked(&web).len(), 4);
}

#[tokio::test]
async fn the_number_of_items_is_the_hosts_to_bound() {
    let mut web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/list" => Some(Answer::json(
            &seen.result(r#"{"resources":[{"uri":"a:"},{"uri":"b:"},{"name":"no uri"}]}"#),
        )),
        _ => capable(seen, r#"{"resources":{}}"#),
    })
    .await;
    web.options.max_list_items = 2;
    let error = listed(&web).await.unwrap_err();
    assert!(
        matches!(error.fault(), Fault::Listing(ListingFault::TooManyItems { limit: 2 })),
        "{error}"
    );
    assert!(error.to_string().contains("`max_list_items`"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("raise `max_list_items`"));
    web.options.max_list_items = 3;
    assert_eq!(listed(&web).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_single_page_keeps_everything_of_it() {
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/list" => Some(Answer::json(&seen.result(
            r#"{"resources":[{"uri":"a:","new":1.10},{"name":"no uri"}],"ttlMs":7,"nextCursor":"n","x":[1]}"#,
        ))),
        _ => capable(seen, r#"{"resources":{}}"#),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let page = connection.page::<Resource>(Some("c"), &RequestOptions::default()).await.unwrap();
    assert_eq!((page.items.len(), page.next_cursor.as_deref()), (1, Some("n")));
    assert!(page.items[0].raw().as_str().contains("1.10"));
    assert_eq!(page.dropped[0].to_string(), "read resource: uri should be a string, found nothing");
    assert_eq!(object::member(page.result.as_raw(), "x").unwrap().get(), "[1]");
    assert_eq!(asked(&web), [Some("c".to_owned())]);
}

#[tokio::test]
async fn extension_absent_reverts_to_core() {
    // Neither the capability nor the extension: nothing is asked, there is nothing, and what core
    // offers works all the same.
    let web = Web::modern(|seen| match seen.method()?.as_str() {
        "resources/read" => Some(Answer::json(
            &seen.result(r#"{"contents":[{"uri":"skill://a/SKILL.md","text":"x"}]}"#),
        )),
        _ => capable(seen, r#"{"extensions":{"com.example/other":{}},"tools":{}}"#),
    })
    .await;
    let connection = web.connect().await.unwrap();
    let options = RequestOptions::default();
    assert!(connection.skills(&options).await.unwrap().items.is_empty());
    assert!(connection.resources(&options).await.unwrap().items.is_empty());
    let error = connection.skill("skill://a/SKILL.md", &options).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "look up skill `skill://a/SKILL.md` of server `web`: the server does not offer \
         `io.modelcontextprotocol/skills`"
    );
    assert!(connection.directory("skill://a", &options).await.is_err());
    assert_eq!(web.log(), ["server/discover"]);
    assert!(connection.read_resource("skill://a/SKILL.md", &options).await.is_ok());
}
