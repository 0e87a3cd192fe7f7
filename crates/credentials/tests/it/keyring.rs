//! The same against a real Secret Service: gnome-keyring on a bus of the test's own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plenipo_credentials::{ErrorKind, KeyringStore, Store as _, StoreFault, StoreKind, Vault};
use plenipo_redact::Secret;
use plenipo_testkit::{Deadline, Fixture, SecretService};

use crate::issuer::Issuer;
use crate::processes::{answered, start_with};
use crate::support::{grant, key, keyring, sign_in};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);
const ISSUER: &str = "https://as.example";

struct Session(SecretService);

impl Session {
    fn start() -> Option<Self> {
        SecretService::start(is_there).map(Self)
    }

    fn vault(&self) -> Vault {
        keyring(&self.0.address())
    }

    /// As the example takes it.
    fn name(&self) -> std::path::PathBuf {
        Path::new("keyring").join(self.0.address())
    }
}

fn store(service: &SecretService) -> KeyringStore {
    KeyringStore::new(Some(service.address()), service.fixture().join("locks"))
}

fn is_there(service: &SecretService) -> bool {
    store(service).exists().unwrap()
}

#[test]
fn items_are_replaced_and_sign_ins_count() {
    let Some(session) = Session::start() else { return };
    let vault = session.vault();
    assert_eq!((vault.store().kind(), vault.store().is_encrypted()), (StoreKind::Keyring, true));
    assert!(vault.record(&key(ISSUER)).unwrap().is_none());
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, "https://other.example", grant(None));
    let record = session.vault().record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(record.generation, 2);
    assert_eq!(record.grant.unwrap().refresh_token.unwrap().expose(), "refresh-0");
    assert!(vault.sign_out(&key(ISSUER)).unwrap().is_some());
    assert_eq!(vault.records().unwrap().len(), 2, "one item each");
    assert!(vault.record(&key(ISSUER)).unwrap().unwrap().grant.is_none());

    let kept = session.0.fixture().join("home/.local/share/keyrings/login.keyring");
    let text = String::from_utf8_lossy(&fs::read(kept).unwrap()).into_owned();
    assert!(!text.contains("example") && !text.contains("refresh-0"));
}

#[test]
fn long_tokens_and_many_accounts_come_back_whole() {
    let Some(session) = Session::start() else { return };
    let vault = session.vault();
    let long = "x".repeat(100 * 1024);
    let mut kept = grant(Some(HOUR));
    kept.access_token = Secret::new(long.clone());
    sign_in(&vault, ISSUER, kept);
    for number in 0..40 {
        sign_in(&vault, &format!("https://as-{number}.example"), grant(Some(HOUR)));
    }
    let records = session.vault().records().unwrap();
    assert_eq!(records.len(), 41);
    assert!(records.iter().all(|record| record.grant.is_some()));
    let record = vault.record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(record.grant.unwrap().access_token.expose(), &long);
    let mut kept = grant(None);
    kept.access_token = Secret::new("x".repeat(200 * 1024));
    let error = vault.sign_in(&key(ISSUER), kept).unwrap_err();
    assert!(matches!(error.fault, StoreFault::TooLong), "{error:?}");
    assert!(vault.record(&key(ISSUER)).unwrap().unwrap().grant.is_some(), "the old one stays");
}

#[test]
fn a_locked_keyring_is_an_error_with_a_hint() {
    let Some(mut session) = Session::start() else { return };
    sign_in(&session.vault(), ISSUER, grant(None));
    session.0.restart(false, is_there);
    assert!(is_there(&session.0), "it is locked, and no reason to use another place");
    let vault = session.vault();
    for error in [
        vault.record(&key(ISSUER)).unwrap_err(),
        vault.survey().unwrap_err(),
        vault.sign_in(&key(ISSUER), grant(None)).unwrap_err(),
    ] {
        assert!(matches!(error.fault, StoreFault::Locked), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.hint().unwrap().contains("unlock it"), "{error:?}");
    }
    session.0.restart(true, is_there);
    let record = vault.record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(record.grant.unwrap().refresh_token.unwrap().expose(), "refresh-0");
}

#[test]
fn no_keyring_is_told_from_one_that_fails() {
    let Some(bus) = SecretService::bare_bus() else { return };
    let locks = bus.fixture().join("locks");
    let absent = bus.fixture().join("absent");
    for store in [
        KeyringStore::new(None, &locks),
        KeyringStore::new(Some(format!("unix:path={}", absent.display())), &locks),
        store(&bus),
    ] {
        assert!(!store.exists().unwrap(), "{store:?}");
        let error = store.load(&key(ISSUER).id()).unwrap_err();
        assert!(matches!(error.fault, StoreFault::NoKeyring { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("credentials_store"), "{error:?}");
    }
    // Something is there, and it is no bus.
    let listener = std::os::unix::net::UnixListener::bind(&absent).unwrap();
    let ended = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let broken = KeyringStore::new(Some(format!("unix:path={}", absent.display())), &locks);
    let error = broken.exists().unwrap_err();
    assert!(matches!(error.fault, StoreFault::Keyring(_)), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Transient);
    ended.join().unwrap();
}

#[test]
fn a_bus_that_never_answers_is_waited_for_only_so_long() {
    let fixture = Fixture::new();
    let (socket, locks) = (fixture.join("bus"), fixture.join("locks"));
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let store = KeyringStore::new(Some(format!("unix:path={}", socket.display())), &locks);
    let store = store.with_patience(Duration::from_millis(100));
    for error in [store.exists().unwrap_err(), store.ids().unwrap_err()] {
        assert!(matches!(error.fault, StoreFault::NoAnswer { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("credentials_store"), "{error:?}");
    }
}

#[test]
fn processes_on_a_keyring_refresh_once_and_survive_a_kill() {
    let Some(session) = Session::start() else { return };
    let issuer = Issuer::start(HOUR);
    sign_in(&session.vault(), &issuer.url(), grant(Some(HOUR)));
    for expiry in 1..=2 {
        issuer.end_after_calls(100);
        let children: Vec<_> =
            (0..4).map(|_| start_with(&session.name(), &issuer, 64, 4)).collect();
        for child in children {
            assert_eq!(answered(child), "256");
        }
        assert_eq!((issuer.refreshes(), issuer.refused()), (expiry, 0));
    }

    issuer.end_after_calls(0);
    issuer.hold(true);
    let mut killed = start_with(&session.name(), &issuer, 1, 1);
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 1));
    let other = start_with(&session.name(), &issuer, 1, 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(Deadline::poll_until(LONG, || issuer.waiting() == 2));
    issuer.hold(false);
    assert_eq!(answered(other), "1");
    assert_eq!((issuer.refreshes(), issuer.refused()), (3, 0));
}
