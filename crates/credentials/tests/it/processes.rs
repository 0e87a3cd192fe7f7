//! Several processes with one credential.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plenipo_testkit::Deadline;

use crate::issuer::{Issuer, signed_in};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);

/// The example `tokens`, which cargo builds along with the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    profile.join("examples/tokens")
}

/// Starts it with the store that `store` names.
pub(crate) fn start_with(store: &Path, issuer: &Issuer, tasks: u32, calls: u32) -> Child {
    let mut command = Command::new(program());
    command.arg(store).arg(issuer.url());
    command.args([tasks.to_string(), calls.to_string()]).stdout(Stdio::piped());
    command.spawn().expect("the example starts")
}

fn start(directory: &Path, issuer: &Issuer, tasks: u32, calls: u32) -> Child {
    start_with(&directory.join("credentials"), issuer, tasks, calls)
}

pub(crate) fn answered(child: Child) -> String {
    let output = child.wait_with_output().expect("the example ends");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn two_processes_one_refresh() {
    let (issuer, directory, _vault) = signed_in(HOUR);
    issuer.end_after_calls(100);
    let children: Vec<_> = (0..4).map(|_| start(directory.path(), &issuer, 64, 4)).collect();
    for child in children {
        assert_eq!(answered(child), "256");
    }
    assert_eq!((issuer.refreshes(), issuer.refused()), (1, 0));
}

#[test]
fn a_process_killed_during_a_refresh_leaves_the_credential_and_the_lease() {
    let (issuer, directory, _vault) = signed_in(HOUR);
    issuer.end_after_calls(0);
    issuer.hold(true);
    let mut killed = start(directory.path(), &issuer, 1, 1);
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 1));
    let other = start(directory.path(), &issuer, 1, 1);
    killed.kill().expect("a kill");
    killed.wait().expect("an end");
    // The other one has the lease now, and asks with the same refresh token.
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 2));
    issuer.hold(false);
    assert_eq!(answered(other), "1");
    assert_eq!((issuer.refreshes(), issuer.refused()), (1, 0));
}
