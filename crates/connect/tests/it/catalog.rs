use std::time::Duration;

use plenipo_connect::{ErrorKind, Fault, ListingFault, Tool, ToolFilter};

use crate::support::{Fake, call, request, said};

async fn listing_fault(list: &str) -> ListingFault {
    listing_fault_with(Fake::new("peer", &[("F_LIST", list)])).await
}

async fn listing_fault_with(fake: Fake) -> ListingFault {
    let connection = fake.start().await.unwrap();
    let error = connection.catalog().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    connection.shut_down().await;
    match error.fault() {
        Fault::Listing(fault) => fault.clone(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_page_is_listed_and_an_empty_cursor_is_a_cursor() {
    let fake = Fake::new("peer", &[("F_LIST", "three")]);
    let connection = fake.start().await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    assert_eq!(catalog.tools().map(Tool::name).collect::<Vec<_>>(), ["t0", "t1", "t2"]);
    connection.shut_down().await;
    assert_eq!(fake.params("tools/list"), ["{}", r#"{"cursor": ""}"#, r#"{"cursor": "1"}"#]);
}

#[tokio::test]
async fn listings_are_bounded() {
    assert_eq!(listing_fault("repeat").await, ListingFault::RepeatedCursor);
    assert_eq!(listing_fault("endless").await, ListingFault::TooManyPages { limit: 100 });
    assert_eq!(listing_fault("flood").await, ListingFault::TooManyTools { limit: 2048 });
    let long = ListingFault::CursorTooLong { bytes: 70_000, limit: 65_536 };
    assert_eq!(listing_fault("long").await, long);
}

#[tokio::test]
async fn the_bounds_of_listings_are_the_hosts_to_set() {
    let mut fake = Fake::new("peer", &[("F_LIST", "endless")]);
    fake.options.max_list_pages = 7;
    let fault = listing_fault_with(fake).await;
    assert_eq!(fault, ListingFault::TooManyPages { limit: 7 });
    assert_eq!(fault.to_string(), "more than 7 pages (`max_list_pages`)");
    let mut fake = Fake::new("peer", &[("F_LIST", "three")]);
    fake.options.max_tools = 2;
    let fault = listing_fault_with(fake).await;
    assert_eq!(fault, ListingFault::TooManyTools { limit: 2 });
    assert_eq!(fault.to_string(), "more than 2 tools (`max_tools`)");
    let mut fake = Fake::new("peer", &[("F_LIST", "three")]);
    (fake.options.max_tools, fake.options.max_list_pages) = (3, 3);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.catalog().await.unwrap().tools().count(), 3);
    connection.shut_down().await;
}

#[tokio::test]
async fn odd_tool_names_survive() {
    let fake = Fake::new("peer", &[("F_LIST", "odd")]);
    let connection = fake.start().await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    let names: Vec<_> = catalog.tools().map(Tool::name).collect();
    assert_eq!(names, ["ok", "bl ank/ünï.çode:x", "", "extra"]);
    let reasons: Vec<_> =
        catalog.dropped().iter().map(|tool| format!("{:?}: {}", tool.name, tool.reason)).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r#"
    Some("null_schema"): read tool: inputSchema should be an object, found null
    Some("no_schema"): read tool: inputSchema should be an object, found nothing
    None: read tool: tool should be an object, found number
    Some("ok"): its name is listed twice
    "#);
    let warnings = fake.seen.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("3 of its tools cannot be used: `null_schema`"),
        "{warnings:?}"
    );
    let error = call(&connection, "null_schema", "{}").await.unwrap_err();
    assert!(error.hint().unwrap().contains("inputSchema"), "{error:?}");
    let extra = catalog.tools().last().unwrap();
    assert!(extra.raw().as_str().contains(r#""x-vendor": {"n": 1}"#), "unknown members survive");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_change_notice_makes_the_next_use_list_again() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let before = connection.catalog().await.unwrap();
    assert!(call(&connection, "grown", "{}").await.is_err());
    said(&connection, "grow", "{}").await;
    let after = connection.catalog().await.unwrap();
    assert_eq!(after.revision(), before.revision() + 1);
    assert_eq!(after.tools().last().unwrap().name(), "grown");
    assert_eq!(connection.catalog().await.unwrap().revision(), after.revision());
    assert_eq!(fake.params("tools/list").len(), 2);
    connection.shut_down().await;
}

#[tokio::test]
async fn a_change_notice_during_a_listing_is_not_lost() {
    let fake = Fake::new("peer", &[("F_LIST", "twice")]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let catalog = connection.catalog().await.unwrap();
    assert_eq!(catalog.tools().last().unwrap().name(), "n2");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_call_goes_by_the_list_it_is_given_whatever_was_announced_since() {
    let fake = Fake::new("peer", &[("F_LIST", "twice")]);
    let connection = fake.start().await.unwrap();
    let listed = connection.catalog().await.unwrap();
    let mut given = request(&connection, "line", "{}").await;
    given.listed = Some(listed);
    connection.call(given).await.unwrap();
    assert_eq!(fake.params("tools/list").len(), 1);
    said(&connection, "line", "{}").await;
    assert_eq!(fake.params("tools/list").len(), 2, "another call goes by what is current");
    connection.shut_down().await;
}

#[tokio::test]
async fn no_list_gets_a_call_past_the_filter_of_its_connection() {
    let unfiltered = Fake::new("peer", &[]);
    let open = unfiltered.start().await.unwrap();
    let mut filtered = Fake::new("peer", &[]);
    filtered.options.filter = ToolFilter::new(None::<[String; 0]>, ["line".to_owned()]);
    let connection = filtered.start().await.unwrap();
    let mut given = request(&connection, "line", "{}").await;
    given.listed = Some(open.catalog().await.unwrap());
    let error = connection.call(given).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolDisabled), "{error}");
    open.shut_down().await;
    connection.shut_down().await;
    assert!(filtered.params("tools/call").is_empty());
}

#[tokio::test]
async fn a_tool_that_is_missing_disabled_or_changed_is_refused_and_nothing_sent() {
    let mut fake = Fake::new("peer", &[]);
    let disabled = ["silent".to_owned()];
    fake.options.filter = ToolFilter::new(None::<[String; 0]>, disabled);
    let connection = fake.start().await.unwrap();
    let error = call(&connection, "lines", "{}").await.unwrap_err();
    insta::assert_snapshot!(error, @"call tool `lines` of server `fake`: the server has no such tool");
    assert_eq!(error.hint().as_deref(), Some("did you mean `line`?"));
    assert_eq!(error.kind(), ErrorKind::Usage);
    let error = call(&connection, "silent", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolDisabled));
    assert_eq!(error.kind(), ErrorKind::Refused);

    let catalog = connection.catalog().await.unwrap();
    let mut prepared = request(&connection, "line", "{}").await;
    prepared.prepared = catalog.tools().find(|tool| tool.name() == "hold").cloned();
    let error = connection.call(prepared.clone()).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolChanged));
    prepared.prepared = catalog.tools().find(|tool| tool.name() == "line").cloned();
    connection.call(prepared).await.unwrap();
    connection.shut_down().await;
    assert_eq!(fake.params("tools/call").len(), 1);
}

#[tokio::test]
async fn only_what_was_advertised_is_used() {
    let fake = Fake::new("peer", &[("F_CAPS", r#"{"prompts":{}}"#)]);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.catalog().await.unwrap().tools().count(), 0);
    connection.shut_down().await;
    assert!(fake.params("tools/list").is_empty());
}

#[tokio::test]
async fn a_listing_that_is_nonsense_or_never_comes_is_an_error() {
    let fake = Fake::new("peer", &[("F_LIST", "nonsense")]);
    let connection = fake.start().await.unwrap();
    let error = connection.catalog().await.unwrap_err();
    insta::assert_snapshot!(error, @"list the tools of server `fake`: bad answer to `tools/list`");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "read tools/list result: tools should be an array, found string");
    connection.shut_down().await;

    let mut fake = Fake::new("peer", &[("F_LIST", "mute")]);
    fake.options.start_timeout = Duration::from_secs(2);
    let connection = fake.start().await.unwrap();
    let error = connection.catalog().await.unwrap_err();
    insta::assert_snapshot!(error, @"list the tools of server `fake`: no answer to `tools/list` within 2 s");
    connection.shut_down().await;
}
