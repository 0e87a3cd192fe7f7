//! One refresh for everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plenipo_credentials::{ErrorKind, TokenError, refreshes_settled};
use plenipo_testkit::Deadline;

use crate::issuer::signed_in;
use crate::support::{calls, grant, key, sign_in, source};

const HOUR: Duration = Duration::from_secs(3600);
const SKEW: Duration = Duration::from_secs(30);
/// Every token is stale at once: an hour is less than this.
const ALWAYS_STALE: Duration = Duration::from_secs(7200);

#[tokio::test(flavor = "multi_thread")]
async fn n_concurrent_401_one_refresh() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), SKEW);
    let first = source.token().await.unwrap();
    assert_eq!((first.value.expose().as_str(), issuer.refreshes()), ("access-0", 0));

    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (source, serial) = (source.clone(), first.serial);
            tokio::spawn(async move { source.refused(serial).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().value.expose(), "access-1");
    }
    assert_eq!((issuer.refreshes(), issuer.refused()), (1, 0));
    // One who comes late with the old token.
    assert_eq!(source.refused(first.serial).await.unwrap().value.expose(), "access-1");
    assert_eq!(issuer.refreshes(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_during_a_thousand_calls_is_refreshed_once() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    issuer.end_after_calls(500);
    let source = source(&vault, &issuer.url(), SKEW);
    let address = issuer.address.to_string();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (source, address) = (source.clone(), address.clone());
            tokio::spawn(async move { calls(&source, &address, 16).await })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await.unwrap();
    }
    assert_eq!((done, issuer.refreshes(), issuer.refused()), (1024, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_ends_although_nobody_waits_for_it() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    issuer.hold(true);
    let task = tokio::spawn({
        let source = source.clone();
        async move { source.token().await }
    });
    assert!(Deadline::poll_until(Duration::from_secs(30), || issuer.waiting() == 1));
    task.abort();
    drop(task.await);
    issuer.hold(false);
    let stored = || vault.record(&key(&issuer.url())).unwrap().unwrap().grant.unwrap();
    assert!(Deadline::poll_until(Duration::from_secs(30), || {
        stored().access_token.expose() == "access-1"
    }));
    assert_eq!(stored().refresh_token.unwrap().expose(), "refresh-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_can_wait_for_its_refreshes_before_it_ends() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    assert!(refreshes_settled(Duration::ZERO).await, "there is none");
    issuer.hold(true);
    let task = tokio::spawn(async move { source.token().await });
    assert!(Deadline::poll_until(Duration::from_secs(30), || issuer.waiting() == 1));
    task.abort();
    drop(task.await);
    assert!(!refreshes_settled(Duration::from_millis(20)).await, "the issuer has not answered");
    issuer.hold(false);
    assert!(refreshes_settled(Duration::from_secs(30)).await);
    let stored = vault.record(&key(&issuer.url())).unwrap().unwrap().grant.unwrap();
    assert_eq!(stored.refresh_token.unwrap().expose(), "refresh-1", "it is written by then");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_refresh_token_is_tried_once_and_wants_a_sign_in() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), SKEW);
    let serial = source.token().await.unwrap().serial;
    issuer.revoke();
    let error = source.refused(serial).await.unwrap_err();
    assert!(matches!(error, TokenError::Refresh { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::SignIn);
    for _ in 0..3 {
        let error = source.refused(serial).await.unwrap_err();
        assert!(matches!(error, TokenError::NotAccepted { .. }), "its hour is not over: {error:?}");
    }
    assert_eq!(issuer.refused(), 1, "the issuer is not asked again");
    assert!(!format!("{error:?} {error}").contains("refresh-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_whose_time_is_over_has_expired() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    issuer.revoke();
    assert!(matches!(source.token().await.unwrap_err(), TokenError::Refresh { .. }));
    let error = source.token().await.unwrap_err();
    assert!(matches!(error, TokenError::Expired { .. }), "{error:?}");
    assert!(error.to_string().ends_with("has expired"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passing_failure_is_shared_and_passes() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), SKEW);
    let serial = source.token().await.unwrap().serial;
    issuer.fail_with(Some(503));
    issuer.hold(true);
    let asking = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (source, asking) = (source.clone(), Arc::clone(&asking));
            tokio::spawn(async move {
                asking.fetch_add(1, Ordering::SeqCst);
                source.refused(serial).await
            })
        })
        .collect();
    assert!(Deadline::poll_until(Duration::from_secs(30), || {
        issuer.waiting() == 1 && asking.load(Ordering::SeqCst) == 64
    }));
    issuer.hold(false);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap_err().kind(), ErrorKind::Transient);
    }
    // One who counted and had not asked yet begins another attempt; the rest join it.
    assert!((1..=4).contains(&issuer.failed()), "{} attempts", issuer.failed());
    issuer.fail_with(None);
    assert_eq!(source.refused(serial).await.unwrap().value.expose(), "access-1");
    assert_eq!((issuer.refreshes(), issuer.refused()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_its_last_seconds_bridges_a_passing_failure() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    issuer.fail_with(Some(503));
    assert_eq!(source.token().await.unwrap().value.expose(), "access-0");
    issuer.revoke();
    issuer.fail_with(None);
    assert_eq!(source.token().await.unwrap_err().kind(), ErrorKind::SignIn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_or_sign_out_meanwhile_is_never_swapped_in() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    sign_in(&vault, &issuer.url(), grant(Some(HOUR * 24)));
    let error = source.token().await.unwrap_err();
    assert!(matches!(error, TokenError::Changed { .. }), "{error:?}");

    let source = crate::support::source(&vault, &issuer.url(), SKEW);
    let serial = source.token().await.unwrap().serial;
    let revoked = vault.sign_out(&key(&issuer.url())).unwrap().unwrap();
    assert_eq!(revoked.refresh_token.unwrap().expose(), "refresh-0");
    let error = source.refused(serial).await.unwrap_err();
    assert!(matches!(error, TokenError::NotSignedIn { .. }), "{error:?}");
    assert_eq!(issuer.refreshes() + issuer.refused(), 0, "nothing was sent");
    assert!(vault.sign_out(&key(&issuer.url())).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_an_end_is_good_until_it_is_refused() {
    let (issuer, _directory, vault) = signed_in(HOUR);
    sign_in(&vault, &issuer.url(), grant(None));
    let source = source(&vault, &issuer.url(), ALWAYS_STALE);
    let token = source.token().await.unwrap();
    assert_eq!((token.value.expose().as_str(), issuer.refreshes()), ("access-0", 0));
    assert_eq!(source.refused(token.serial).await.unwrap().value.expose(), "access-1");
}
