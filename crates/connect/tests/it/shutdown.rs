use std::time::{Duration, Instant};

use plenipo_connect::Fault;
use plenipo_testkit::Deadline;

use crate::support::{Fake, call, request, until};

const MANY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn shutdown_ladder_reaps_grandchildren() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1")]);
    let connection = fake.start().await.unwrap();
    assert_eq!(fake.processes(), 2, "the server and its child");
    let report = connection.shut_down().await;
    assert_eq!(report.exit.unwrap().code(), Some(0), "closing stdin was enough for the server");
    assert!(report.terminated, "but not for what it left");
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[tokio::test]
async fn a_polite_server_needs_no_signal() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let report = connection.shut_down().await;
    assert!(!report.terminated && !report.killed, "{report:?}");
    assert_eq!(fake.log("stdin_eof").len(), 1);
    assert_eq!(connection.shut_down().await, report, "again: the same end");
    let error = call(&connection, "line", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ShutDown), "{error}");
}

#[tokio::test]
async fn a_stubborn_server_and_its_child_are_killed() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1"), ("F_STUBBORN", "1")]);
    let connection = fake.start().await.unwrap();
    let begin = Instant::now();
    let report = connection.shut_down().await;
    assert!(report.terminated && report.killed, "{report:?}");
    assert!(begin.elapsed() < MANY);
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[tokio::test]
async fn dropping_a_connection_kills_the_group_at_once() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1"), ("F_STUBBORN", "1")]);
    let connection = fake.start().await.unwrap();
    assert_eq!(fake.processes(), 2);
    drop(connection);
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[test]
fn a_runtime_that_ends_first_leaves_nothing() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1"), ("F_STUBBORN", "1")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connection = runtime.block_on(fake.start()).unwrap();
    drop(runtime);
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
    drop(connection);
}

#[tokio::test]
async fn what_a_crashed_server_leaves_is_ended_too() {
    let fake = Fake::new("peer", &[("F_GRANDCHILD", "1")]);
    let connection = fake.start().await.unwrap();
    let begin = Instant::now();
    let error = call(&connection, "die", r#"{"code":9}"#).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Exited { how } if how.code() == Some(9)), "{error}");
    assert!(begin.elapsed() < MANY, "a child that holds the pipes does not delay it");
    let report = connection.shut_down().await;
    assert_eq!(report.exit.unwrap().code(), Some(9));
    assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
}

#[tokio::test]
async fn calls_that_wait_fail_when_the_connection_is_shut_down() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let silent = request(&connection, "silent", "{}").await;
    let (waiting, ()) = tokio::join!(connection.call(silent), async {
        until(|| !fake.params("tools/call").is_empty()).await;
        connection.shut_down().await;
    });
    let error = waiting.unwrap_err();
    assert!(matches!(error.fault(), Fault::ShutDown), "{error}");
}
