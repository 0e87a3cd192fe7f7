//! A session bus of a test's own, and a real keyring on it: gnome-keyring.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{ChildGuard, Deadline, Fixture, find_tool, requires};

const LONG: Duration = Duration::from_secs(60);
const PASSWORD: &str = "correct horse";

/// Ended and removed on drop.
#[derive(Debug)]
pub struct SecretService {
    daemon: Option<ChildGuard>,
    _bus: ChildGuard,
    fixture: Fixture,
}

impl SecretService {
    /// A bus with nothing on it. `None`, counted as skipped, where a program is missing.
    #[must_use]
    pub fn bare_bus() -> Option<Self> {
        let tools = ["dbus-daemon", "gnome-keyring-daemon"].map(find_tool);
        if !requires("dbus-daemon and gnome-keyring-daemon", tools.iter().all(Option::is_some)) {
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
        let bus = ChildGuard::new(bus.stderr(Stdio::null()).spawn().expect("a bus starts"));
        // The socket is there a moment before anybody listens on it.
        let listens = || UnixStream::connect(fixture.join("bus")).is_ok();
        assert!(Deadline::poll_until(LONG, listens), "a bus listens");
        for directory in ["home", "run"] {
            fixture.directory(directory);
            fixture.set_mode(directory, 0o700);
        }
        Some(Self { daemon: None, _bus: bus, fixture })
    }

    /// With a keyring that is open, which `is_there` can see.
    #[must_use]
    pub fn start(is_there: impl Fn(&Self) -> bool) -> Option<Self> {
        let mut service = Self::bare_bus()?;
        service.restart(true, is_there);
        Some(service)
    }

    /// Starts the daemon anew, with the keyring open or locked.
    pub fn restart(&mut self, open: bool, is_there: impl Fn(&Self) -> bool) {
        self.daemon = None;
        assert!(Deadline::poll_until(LONG, || !is_there(self)), "the keyring is gone");
        let mut daemon = Command::new("gnome-keyring-daemon");
        daemon.args(["--foreground", "--components=secrets"]);
        if open {
            daemon.arg("--unlock");
        }
        daemon.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.fixture.join("home"));
        daemon.env("XDG_RUNTIME_DIR", self.fixture.join("run"));
        daemon.env("DBUS_SESSION_BUS_ADDRESS", self.address());
        let log = fs::File::create(self.fixture.join("log")).expect("a log");
        let daemon = daemon.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        let mut daemon = daemon.expect("a keyring starts");
        let mut input = daemon.stdin.take().expect("an input");
        input.write_all(PASSWORD.as_bytes()).expect("a password is read");
        drop(input);
        self.daemon = Some(ChildGuard::new(daemon));
        let log = || self.fixture.read("log").unwrap_or_default();
        assert!(Deadline::poll_until(LONG, || is_there(self)), "{}", log());
    }

    /// Of the bus.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:path={}", self.fixture.join("bus").display())
    }

    /// Where everything is; the keyrings are in `home/.local/share/keyrings`.
    #[must_use]
    pub fn fixture(&self) -> &Fixture {
        &self.fixture
    }
}
