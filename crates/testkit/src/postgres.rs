//! A real PostgreSQL: a cluster of a test's own, on a socket in its directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{ChildGuard, Deadline, Fixture, find_tool, is_root, requires};

const LONG: Duration = Duration::from_secs(60);

/// Ended and removed on drop.
#[derive(Debug)]
pub struct PostgresCluster {
    server: ChildGuard,
    fixture: Fixture,
}

impl PostgresCluster {
    /// A cluster that `answers` at its address. `None`, counted as skipped, where there is no PostgreSQL.
    #[must_use]
    pub fn start(answers: impl Fn(&str) -> bool) -> Option<Self> {
        let programs = programs();
        if !requires("PostgreSQL's initdb and postgres", programs.is_some()) {
            return None;
        }
        let (programs, fixture) = (programs?, Fixture::new());
        let place = fixture.directory("cluster");
        let data = fixture.join("cluster/data");
        if is_root() {
            let mut chown = Command::new("chown");
            let done = chown.arg("nobody:nogroup").arg(&place).status();
            assert!(done.expect("chown runs").success(), "the cluster is given away");
        }
        let mut initdb = command(programs.join("initdb"));
        initdb.args(["--username=plenipo", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
        let made = initdb.stdout(Stdio::null()).status().expect("initdb runs");
        assert!(made.success(), "a cluster is made");
        let mut server = command(programs.join("postgres"));
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"]);
        server.arg("-k").arg(&place).arg("-D").arg(&data);
        let log = fs::File::create(fixture.join("log")).expect("a log");
        let server = ChildGuard::new(server.stderr(log).spawn().expect("postgres starts"));
        let cluster = Self { server, fixture };
        let log = || cluster.fixture.read("log").unwrap_or_default();
        assert!(Deadline::poll_until(LONG, || answers(&cluster.address())), "{}", log());
        Some(cluster)
    }

    /// As a connection string.
    #[must_use]
    pub fn address(&self) -> String {
        let directory = self.fixture.join("cluster");
        format!("host={} user=plenipo dbname=postgres", directory.display())
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        // A kill would leave shared memory behind: an immediate shutdown does not.
        let mut quit = Command::new("kill");
        let told = quit.args(["-QUIT", &self.server.id().to_string()]).status();
        if told.is_ok_and(|status| status.success()) {
            self.server.wait().ok();
        }
    }
}

/// Debian keeps the programs of each version apart, and not on `PATH`.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|entry| entry.path().join("bin")).max();
    newest.or_else(|| Some(find_tool("initdb")?.parent()?.to_owned()))
}

/// PostgreSQL refuses to run as root, and wants a user with a name.
fn command(program: PathBuf) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
    command
}
