//! The same against a real Secret Service: gnome-keyring on a bus of the test's own.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plenipo_credentials::{ErrorKind, KeyringStore, Store as _, StoreFault, StoreKind, Vault};
use plenipo_redact::Secret;
use plenipo_testkit::{ChildGuard, Deadline, Fixture, find_tool, requires};

use crate::issuer::Issuer;
use crate::processes::{answered, start_with};
use crate::support::{grant, key, keyring, sign_in};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);
const ISSUER: &str = "https://as.example";

/// A session bus, and maybe a keyring on it; ended and removed on drop.
struct Session {
    keyring: Option<ChildGuard>,
    _bus: ChildGuard,
    fixture: Fixture,
}

impl Session {
    /// A bus with nothing on it. `None`, counted as skipped, where a program is missing.
    fn bare() -> Option<Self> {
        let tools = ["dbus-daemon", "gnome-keyring-daemon"].map(find_tool);
        let there = tools.iter().all(Option::is_some);
        if !requires("dbus-daemon and gnome-keyring-daemon", there) {
            return None;
        }
        let fixture = Fixture::new();
        // Only what is started here is on the bus: nothing is activated.
        let configuration = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\"/><allow eavesdrop=\"true\"/>\
             <allow own=\"*\"/></policy></busconfig>",
            fixture.join("bus").display()
        );
        let configuration = fixture.file("bus.conf", configuration);
        let mut bus = Command::new("dbus-daemon");
        bus.arg("--config-file").arg(configuration).args(["--nofork", "--nopidfile"]);
        let bus = ChildGuard::new(bus.spawn().unwrap());
        assert!(Deadline::poll_until(LONG, || fixture.exists("bus")));
        for directory in ["home", "run"] {
            fixture.directory(directory);
            fixture.set_mode(directory, 0o700);
        }
        Some(Self { keyring: None, _bus: bus, fixture })
    }

    /// With a keyring that is open, on a bus of its own.
    fn start() -> Option<Self> {
        let mut session = Self::bare()?;
        session.start_keyring(Some("correct horse"));
        Some(session)
    }

    /// The daemon, which opens the keyring with `password`, making it if there is none.
    fn start_keyring(&mut self, password: Option<&str>) {
        self.keyring = None;
        let gone = || !self.is_there();
        assert!(Deadline::poll_until(LONG, gone));
        let mut daemon = Command::new("gnome-keyring-daemon");
        daemon.args(["--foreground", "--components=secrets"]);
        if password.is_some() {
            daemon.arg("--unlock");
        }
        daemon.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.fixture.join("home"));
        daemon.env("XDG_RUNTIME_DIR", self.fixture.join("run"));
        daemon.env("DBUS_SESSION_BUS_ADDRESS", self.address());
        let log = fs::File::create(self.fixture.join("log")).unwrap();
        let mut child =
            daemon.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(password.unwrap_or_default().as_bytes()).unwrap();
        drop(input);
        self.keyring = Some(ChildGuard::new(child));
        let log = || self.fixture.read("log").unwrap_or_default();
        assert!(Deadline::poll_until(LONG, || self.is_there()), "{}", log());
    }

    fn is_there(&self) -> bool {
        self.store().exists().unwrap()
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.fixture.join("bus").display())
    }

    fn store(&self) -> KeyringStore {
        KeyringStore::new(Some(self.address()), self.fixture.join("locks"))
    }

    fn vault(&self) -> Vault {
        keyring(&self.address())
    }

    /// As the example takes it.
    fn name(&self) -> std::path::PathBuf {
        Path::new("keyring").join(self.address())
    }
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

    let kept = session.fixture.join("home/.local/share/keyrings/login.keyring");
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
    session.start_keyring(None);
    assert!(session.is_there(), "it is locked, and no reason to use another place");
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
    session.start_keyring(Some("correct horse"));
    let record = vault.record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(record.grant.unwrap().refresh_token.unwrap().expose(), "refresh-0");
}

#[test]
fn no_keyring_is_told_from_one_that_fails() {
    let Some(session) = Session::bare() else { return };
    let locks = session.fixture.join("locks");
    let absent = session.fixture.join("absent");
    for store in [
        KeyringStore::new(None, &locks),
        KeyringStore::new(Some(format!("unix:path={}", absent.display())), &locks),
        session.store(),
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
