//! When the lease of an identity is held: another process looks at it during every request.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_enterprise::{BearerClient, Source};
use plenipo_testkit::{ChildGuard, Deadline, find_tool, requires};

use crate::parties::{Company, Instead, MCP};

const LONG: Duration = Duration::from_secs(60);

/// The lock files that there are: of the slot and of the entry.
fn locks(company: &Company) -> Vec<PathBuf> {
    let files = crate::flow::walk(company.directory.path());
    files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "lock")).collect()
}

/// Whether another process can have the lease now.
#[expect(clippy::disallowed_methods, reason = "the other process of the test")]
fn is_free(lock: &Path) -> bool {
    Command::new("flock").arg("--nonblock").arg(lock).arg("true").status().unwrap().success()
}

/// Another process that waits for the lease, and ends when it had it.
#[expect(clippy::disallowed_methods, reason = "the other process of the test")]
fn wait_for(lock: &Path) -> Child {
    Command::new("flock").arg(lock).arg("true").stdout(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ema_the_lease_is_held_while_the_identity_provider_is_asked_and_no_longer() {
    if !requires("util-linux's flock", find_tool("flock").is_some()) {
        return;
    }
    let company = Company::signed_in();
    let locks = locks(&company);
    assert_eq!(locks.len(), 2, "a slot and an entry");
    // Every rung: a refresh token that is not taken, an ID token that is refused, a refresh.
    company.parties.instead("exchange", Instead::Error(400, "invalid_request"));
    company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
    let seen: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let waiting: Arc<Mutex<Option<Child>>> = Arc::default();
    company.parties.hook({
        let (seen, waiting) = (Arc::clone(&seen), Arc::clone(&waiting));
        move |what| {
            let mut waiting = waiting.lock().unwrap();
            if let ("redeem", Some(child)) = (what, waiting.as_mut()) {
                // It gets the lease before anything is redeemed.
                let ended = || child.try_wait().unwrap().is_some_and(|status| status.success());
                assert!(Deadline::poll_until(LONG, ended), "the lease is held on");
            }
            let held = locks.iter().find(|lock| !is_free(lock));
            seen.lock().unwrap().push((what.to_owned(), held.is_some()));
            match (what, held, waiting.as_mut()) {
                ("exchange", Some(lock), None) => *waiting = Some(wait_for(lock)),
                ("exchange" | "refresh" | "keys", Some(_), Some(child)) => {
                    assert!(child.try_wait().unwrap().is_none(), "{what}: it got the lease");
                }
                _ => {}
            }
        }
    });
    let client = BearerClient::open(company.options(), None).unwrap();
    client.token(MCP).await.unwrap();
    let seen: Vec<_> = seen.lock().unwrap().clone();
    let seen: Vec<_> = seen.iter().map(|(what, held)| (what.as_str(), *held)).collect();
    let expected = [
        ("probe", false),
        ("resource", false),
        ("authorization", false),
        ("provider", false),
        ("exchange", true),
        ("exchange", true),
        ("refresh", true),
        ("keys", true),
        ("exchange", true),
        ("redeem", false),
    ];
    assert_eq!(seen, expected);
    assert!(waiting.lock().unwrap().take().is_some(), "somebody waited");
}

/// Another process that has the lease until it is killed.
#[expect(clippy::disallowed_methods, reason = "the other process of the test")]
fn hold(lock: &Path) -> ChildGuard {
    let mut command = Command::new("flock");
    command.args(["--no-fork", "--exclusive"]).arg(lock).args(["sleep", "600"]);
    ChildGuard::new(command.stdin(Stdio::null()).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ema_a_process_that_is_killed_gives_its_lease_back() {
    if !requires("util-linux's flock", find_tool("flock").is_some()) {
        return;
    }
    let company = Company::signed_in();
    let locks = locks(&company);
    let mut others: Vec<_> = locks.iter().map(|lock| hold(lock)).collect();
    assert!(Deadline::poll_until(LONG, || locks.iter().all(|lock| !is_free(lock))));
    let client = company.open().unwrap();
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.token(MCP).await.map(drop) }
    });
    // Everything that needs no identity is done, and the identity provider is not asked.
    let company = Arc::new(company);
    let log = || company.parties.log();
    assert!(Deadline::poll_until(LONG, || log().len() == 4));
    assert!(!asking.is_finished());
    assert_eq!(log(), crate::parties::DISCOVERY);
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    tokio::time::timeout(LONG, asking).await.unwrap().unwrap().unwrap();
    assert_eq!(log()[4..], ["exchange", "redeem"]);
}

#[tokio::test]
async fn ema_the_lease_is_given_back_after_a_failure() {
    let company = Company::signed_in();
    for instead in [Instead::Error(400, "access_denied"), Instead::Timeout, Instead::Redirect] {
        company.parties.instead("exchange", instead);
        company.token().await.unwrap_err();
    }
    company.sign_in(Source::Enterprise, company.grant());
    company.token().await.unwrap();
}
