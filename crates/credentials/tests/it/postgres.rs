//! The same against a real PostgreSQL: a cluster of the test's own, on a socket in its directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plenipo_credentials::{ErrorKind, PostgresStore, SealingKey, StoreFault, StoreKind, Vault};
use plenipo_redact::Secret;
use plenipo_testkit::{Deadline, PostgresCluster};

use crate::issuer::Issuer;
use crate::processes::{answered, start_with};
use crate::support::{KEY, grant, key, postgres, sign_in};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);
const ISSUER: &str = "https://as.example";

struct Cluster(PostgresCluster);

impl Cluster {
    fn start() -> Option<Self> {
        PostgresCluster::start(|address| postgres(address).records().is_ok()).map(Self)
    }

    fn address(&self) -> String {
        self.0.address()
    }

    fn vault(&self) -> Vault {
        postgres(&self.address())
    }
}

#[test]
fn rows_are_sealed_and_sign_ins_count() {
    let Some(cluster) = Cluster::start() else { return };
    let vault = cluster.vault();
    assert_eq!(vault.store().kind(), StoreKind::Postgres);
    assert!(vault.record(&key(ISSUER)).unwrap().is_none(), "before there is a table");
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, "https://other.example", grant(None));
    let record = cluster.vault().record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(record.generation, 2);
    assert_eq!(record.grant.unwrap().refresh_token.unwrap().expose(), "refresh-0");
    assert!(vault.sign_out(&key(ISSUER)).unwrap().is_some());
    assert_eq!(vault.records().unwrap().len(), 2);

    let mut plain = ::postgres::Client::connect(&cluster.address(), ::postgres::NoTls).unwrap();
    let rows = plain.query("select id, body from plenipo_credentials", &[]).unwrap();
    for row in &rows {
        let (id, body): (String, Vec<u8>) = (row.get(0), row.get(1));
        let text = format!("{id} {}", String::from_utf8_lossy(&body));
        assert!(!text.contains("example") && !text.contains("refresh"), "{text}");
    }
    // A row in another's place is noticed.
    plain
        .batch_execute(
            "update plenipo_credentials set body = (select body from plenipo_credentials b
             where b.id <> plenipo_credentials.id)",
        )
        .unwrap();
    let fault = vault.record(&key(ISSUER)).unwrap_err().fault;
    assert!(matches!(fault, StoreFault::WrongKey), "{fault:?}");
}

#[test]
fn a_lease_is_one_sessions_and_ends_with_it() {
    let Some(cluster) = Cluster::start() else { return };
    let vault = cluster.vault();
    let (store, id) = (vault.store(), key(ISSUER).id());
    let mut held = store.lease(&id, LONG).unwrap();
    let busy = cluster.vault().store().lease(&id, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(busy.fault, StoreFault::Busy { .. }), "{busy:?}");
    drop(store.lease(&key("https://other.example").id(), LONG).unwrap());

    // The session is cut off: the lease is another's, and the former holder cannot write any more.
    let mut plain = ::postgres::Client::connect(&cluster.address(), ::postgres::NoTls).unwrap();
    // The server notices in its own time that the lease of the other record was given back.
    let count = "select count(*) from pg_locks where locktype = 'advisory'";
    let mut held_locks = || plain.query_one(count, &[]).unwrap().get::<_, i64>(0);
    assert!(Deadline::poll_until(LONG, || held_locks() == 1));
    let cut = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'";
    assert_eq!(plain.execute(cut, &[]).unwrap(), 1);
    let mut other = cluster.vault().store().lease(&id, LONG).unwrap();
    other.save(&Secret::new(b"{}".to_vec())).unwrap();
    let error = held.save(&Secret::new(b"stale".to_vec())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient);
    let error = held.load().unwrap_err();
    assert!(matches!(error.fault, StoreFault::SessionLost), "{error:?}");
    assert_eq!(other.load().unwrap().unwrap().expose(), b"{}");
}

#[test]
fn processes_on_a_database_refresh_once_and_survive_a_kill() {
    let Some(cluster) = Cluster::start() else { return };
    let issuer = Issuer::start(HOUR);
    sign_in(&cluster.vault(), &issuer.url(), grant(Some(HOUR)));
    issuer.end_after_calls(100);
    let store = Path::new("postgres").join(cluster.address());
    let children: Vec<_> = (0..4).map(|_| start_with(&store, &issuer, 64, 4)).collect();
    for child in children {
        assert_eq!(answered(child), "256");
    }
    assert_eq!((issuer.refreshes(), issuer.refused()), (1, 0));

    issuer.end_after_calls(0);
    issuer.hold(true);
    let mut killed = start_with(&store, &issuer, 1, 1);
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 1));
    let other = start_with(&store, &issuer, 1, 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 2));
    issuer.hold(false);
    assert_eq!(answered(other), "1");
    assert_eq!((issuer.refreshes(), issuer.refused()), (2, 0));
}

#[test]
fn another_machine_is_spoken_to_with_tls_or_not_at_all() {
    let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A name, so that it counts as another machine; the address is given apart.
    let address = format!(
        "host=db.example hostaddr=127.0.0.2 port={port} user=u dbname=d sslmode=disable password=hunter2"
    );
    let asked = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"N").unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        (request, rest)
    });
    let error = postgres(&address).records().unwrap_err();
    assert!(matches!(error.fault, StoreFault::Database(_)), "{error:?}");
    assert_eq!(error.place, "database `d` at db.example");
    assert!(!format!("{error:?}").contains("hunter2"));
    let (request, rest) = asked.join().unwrap();
    assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47], "an SSLRequest");
    assert!(rest.is_empty(), "nothing follows a refusal");

    let tls = crate::support::tls();
    let sealing = || SealingKey::parse(&Secret::new(KEY.to_owned())).unwrap();
    for bad in ["", "hunter2", "user=ada password=hunter2", "postgres://[x/"] {
        let address = Secret::new(bad.to_owned());
        let error = PostgresStore::new(&address, sealing(), Arc::clone(&tls)).unwrap_err();
        assert!(matches!(error.fault, StoreFault::BadAddress), "{bad}");
        assert!(!format!("{error:?} {error}").contains("hunter2"));
    }
}
