//! One session of the database.

use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plenipo_redact::Secret;
use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::{Client, Config, Error};

use super::tls::Tls;
use crate::error::{StoreError, StoreFault};

/// To reach the server and sign in there.
const CONNECT: Duration = Duration::from_secs(10);
/// A session that died without a word is noticed by the server within half a minute, one that hangs
/// within five: nobody keeps a lease for longer.
const SETTINGS: &str = "set statement_timeout = '60s'; set idle_session_timeout = '300s'; \
    set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3";

/// Where the database is.
pub(super) struct Target {
    config: Config,
    tls: Arc<rustls::ClientConfig>,
}

/// A session, used and closed away from any runtime: its client blocks.
pub(super) struct Session(Option<Client>);

impl Target {
    pub(super) fn parse(
        address: &Secret<String>,
        tls: Arc<rustls::ClientConfig>,
    ) -> Result<Self, StoreError> {
        let bad = || StoreError::new("open", "the credentials database", StoreFault::BadAddress);
        let mut config = Config::from_str(address.expose()).map_err(|_| bad())?;
        if config.get_hosts().is_empty() {
            return Err(bad());
        }
        if !config.get_hosts().iter().all(is_here) {
            config.ssl_mode(SslMode::Require);
        }
        config.connect_timeout(CONNECT).application_name("plenipo");
        Ok(Self { config, tls })
    }

    pub(super) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        };
        let name = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("database `{name}` at {host}")
    }
}

impl Session {
    pub(super) fn open(target: &Arc<Target>) -> Result<Self, StoreFault> {
        let target = Arc::clone(target);
        let client = apart(move || {
            let mut client = target.config.connect(Tls::new(&target.tls))?;
            client.batch_execute(SETTINGS)?;
            Ok(client)
        });
        client.map(|client| Self(Some(client)))
    }

    /// Runs statements in this session. After a failure it is closed, and with it the lock.
    pub(super) fn run<T: Send>(
        &mut self,
        work: impl FnOnce(&mut Client) -> Result<T, Error> + Send,
    ) -> Result<T, StoreFault> {
        let mut client = self.0.take().ok_or(StoreFault::SessionLost)?;
        let (client, output) = apart(move || {
            let output = work(&mut client)?;
            Ok((client, output))
        })?;
        self.0 = Some(client);
        Ok(output)
    }

    /// Takes an advisory lock for the session's life.
    pub(super) fn lock(&mut self, number: i64, patience: Duration) -> Result<(), StoreFault> {
        // Zero would be for ever.
        let limit = patience.as_millis().max(1);
        let locked = self.run(move |client| {
            client
                .batch_execute(&format!("set statement_timeout = 0; set lock_timeout = {limit}"))?;
            client.execute("select pg_advisory_lock($1)", &[&number])?;
            client.batch_execute("set lock_timeout = 0; set statement_timeout = '60s'")
        });
        match locked {
            Err(StoreFault::Database(error))
                if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) =>
            {
                Err(StoreFault::Busy { waited: patience })
            }
            locked => locked,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // Closing fails only for a session that is gone already.
            drop(apart(move || client.close()));
        }
    }
}

/// Runs on a thread of its own: the client has a runtime inside, which must not be entered from
/// within another one.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, StoreFault> {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.map_err(|_| StoreFault::Interrupted)?.map_err(StoreFault::from)
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let is_loopback = IpAddr::from_str(name).is_ok_and(|address| address.is_loopback());
            name == "localhost" || is_loopback
        }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.place())
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Session(open)" } else { "Session(closed)" })
    }
}
