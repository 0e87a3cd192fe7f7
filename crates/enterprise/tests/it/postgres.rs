//! Sign-ins that several machines share: a real PostgreSQL, a cluster of the test's own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plenipo_credentials::{PostgresStore, SealingKey, Store};
use plenipo_enterprise::{BearerClient, EnterpriseError, Identities, Source};
use plenipo_redact::Secret;
use plenipo_testkit::{ChildGuard, Deadline, Fixture, find_tool, is_root, requires};

use crate::parties::{Company, MCP};

const LONG: Duration = Duration::from_secs(60);
const KEY: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";

/// Ended and removed on drop.
struct Cluster {
    server: ChildGuard,
    fixture: Fixture,
}

/// Debian keeps the programs of each version apart, and not on `PATH`.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|entry| entry.path().join("bin")).max();
    newest.or_else(|| Some(find_tool("initdb")?.parent()?.to_owned()))
}

/// PostgreSQL refuses to run as root, and wants a user with a name.
#[expect(clippy::disallowed_methods, reason = "the database of the test")]
fn command(program: PathBuf) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
    command
}

impl Cluster {
    /// `None`, counted as skipped, where there is no PostgreSQL.
    #[expect(clippy::disallowed_methods, reason = "the database of the test")]
    fn start() -> Option<Self> {
        let programs = programs();
        if !requires("PostgreSQL's initdb and postgres", programs.is_some()) {
            return None;
        }
        let (programs, fixture) = (programs?, Fixture::new());
        let data = fixture.join("cluster/data");
        fs::create_dir(fixture.join("cluster")).unwrap();
        if is_root() {
            let mut chown = Command::new("chown");
            chown.arg("nobody:nogroup").arg(fixture.join("cluster"));
            assert!(chown.status().unwrap().success());
        }
        let mut initdb = command(programs.join("initdb"));
        initdb.args(["--username=plenipo", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
        assert!(initdb.stdout(Stdio::null()).status().unwrap().success());
        let mut server = command(programs.join("postgres"));
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"]);
        server.arg("-k").arg(fixture.join("cluster")).arg("-D").arg(&data);
        let log = fs::File::create(fixture.join("log")).unwrap();
        let server = ChildGuard::new(server.stderr(log).spawn().unwrap());
        let cluster = Self { server, fixture };
        let store = cluster.store();
        assert!(Deadline::poll_until(LONG, || store.ids().is_ok()), "{:?}", store.ids());
        Some(cluster)
    }

    /// As another machine has it.
    fn store(&self) -> Arc<dyn Store> {
        let directory = self.fixture.join("cluster");
        let address = format!("host={} user=plenipo dbname=postgres", directory.display());
        let key = SealingKey::parse(&Secret::new(KEY.to_owned())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Arc::new(PostgresStore::new(&Secret::new(address), key, Arc::new(tls)).unwrap())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A kill would leave shared memory behind: an immediate shutdown does not.
        let pid = rustix::process::Pid::from_child(&self.server);
        if rustix::process::kill_process(pid, rustix::process::Signal::QUIT).is_ok() {
            self.server.wait().ok();
        }
    }
}

#[test]
fn ema_machines_that_share_a_database_share_sign_ins() {
    let Some(cluster) = Cluster::start() else { return };
    let company = Company::with_store(|_| cluster.store());
    company.sign_in(Source::Enterprise, company.grant());
    let runtime = tokio::runtime::Runtime::new().unwrap();

    // Four machines with five servers each, at once: the lease lets one after the other ask.
    let machines: Vec<_> = (0..4).map(|_| Identities::new(cluster.store())).collect();
    let mut clients = Vec::new();
    for machine in &machines {
        for _ in 0..5 {
            let mut options = company.options();
            options.identities = machine.clone();
            options.watch = Duration::from_millis(20);
            clients.push(BearerClient::open(options, None).unwrap());
        }
    }
    runtime.block_on(async {
        let calls: Vec<_> = clients
            .iter()
            .map(|client| {
                let client = client.clone();
                tokio::spawn(async move { client.token(MCP).await.map(drop) })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
    });
    let log = company.parties.log();
    let count = |what: &str| log.iter().filter(|entry| *entry == what).count();
    assert_eq!((count("exchange"), count("redeem")), (20, 20));

    // One machine signs out, and the connections of all end.
    machines[0].sign_out(&clients[0].pin().identity).unwrap();
    runtime.block_on(async {
        for client in &clients {
            tokio::time::timeout(LONG, client.withdrawn()).await.unwrap();
            assert!(matches!(client.token(MCP).await, Err(EnterpriseError::Withdrawn)));
        }
    });
    assert!(matches!(company.open(), Err(EnterpriseError::Unselected(_))));
}
