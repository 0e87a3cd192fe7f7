//! One server, connected.

mod backing;
mod era;
mod extensions;
mod http;
mod logging;
mod recall;
mod start;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use plenipo_authority::{
    AuthorityParts, CapturedAuthority, CredentialPin, SandboxOptIn, SandboxState, ServerReach,
};
use plenipo_wire::{Fragment, object};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout};

use crate::approval::Approved;
use crate::call::LogLevel;
use crate::call::mirror::drop_badly_annotated;
use crate::catalog::{self, Catalog, ListLimits};
use crate::changes::List;
use crate::error::{ConnectError, Fault, Operation};
use crate::negotiate::{Agreement, Era, ModernMeta, ServerIdentity};
use crate::options::{ConnectOptions, ShutdownPolicy};
use crate::peer::{Peer, RequestFault, WarningKind};
use crate::server_name::ServerName;
use crate::text::shown;
use crate::transport::Endpoint;
use crate::transport::http::HttpEndpoint;
use crate::transport::stdio::{ShutdownReport, StdioCommand};
use backing::Backing;
use era::AgreedEra;

pub(crate) use era::EraStamp;

/// A server that runs, here or behind a URL, and what was agreed with it.
///
/// Calls may run at the same time. Dropping the connection kills a local server's process group at
/// once; [`shut_down`](Self::shut_down) lets it end by itself first, and gives a session back.
#[derive(Debug)]
pub struct Connection {
    pub(crate) peer: Arc<Peer>,
    pub(crate) options: ConnectOptions,
    agreed_era: AgreedEra,
    agreement: Agreement,
    opt_in: bool,
    pub(crate) approved: Approved,
    catalog: RwLock<Option<Listing>>,
    /// Whoever lists; others wait for what comes of it.
    listing: Mutex<()>,
    /// What an older server was asked to log from.
    log_level: Mutex<Option<LogLevel>>,
    backing: Backing,
}

#[derive(Debug)]
struct Listing {
    catalog: Arc<Catalog>,
    /// [`Peer::list_changes`] before it was listed.
    changes: u64,
    /// Until when it may be taken for current without a notice.
    end: Option<Instant>,
}

/// A peer before anything is agreed.
#[derive(Debug)]
struct Launched {
    peer: Arc<Peer>,
    backing: Backing,
}

impl Connection {
    /// Starts a server and agrees on a revision, all within `options.start_timeout`.
    ///
    /// With [`EraHint::Unknown`](crate::EraHint::Unknown) a server that dies of the probe is
    /// started a second time and initialized.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Start`]; nothing of the server is left running.
    pub async fn start(
        name: ServerName,
        command: &StdioCommand,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        start::start(name, command, options).await
    }

    /// Agrees on a revision with a server behind a URL, within `options.start_timeout`.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Start`]; of kind
    /// [`SignIn`](crate::ErrorKind::SignIn) when credentials are missing or refused.
    pub async fn connect(
        name: ServerName,
        endpoint: &HttpEndpoint,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        http::connect(name, endpoint, options).await
    }

    /// [`start`](Self::start) or [`connect`](Self::connect).
    ///
    /// # Errors
    /// As theirs.
    pub async fn open(
        name: ServerName,
        endpoint: &Endpoint,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        match endpoint {
            Endpoint::Stdio(command) => Self::start(name, command, options).await,
            Endpoint::Http(endpoint) => Self::connect(name, endpoint, options).await,
        }
    }

    fn agreed(
        launched: Launched,
        options: ConnectOptions,
        agreement: Agreement,
        modern: ModernMeta,
    ) -> Self {
        let Launched { peer, backing } = launched;
        let opt_in = SandboxOptIn::from_capabilities(agreement.capabilities.as_raw());
        if !opt_in.faults.is_empty() {
            let faults: Vec<_> = opt_in.faults.iter().map(ToString::to_string).collect();
            peer.warn_once(WarningKind::Capability, || shown(&faults.join("; ")));
        }
        let opt_in = opt_in.advertised;
        backing.agreed(opt_in);
        Self {
            agreed_era: AgreedEra::new(agreement.era.clone(), modern),
            peer,
            options,
            agreement,
            opt_in,
            approved: Approved::default(),
            catalog: RwLock::default(),
            listing: Mutex::default(),
            log_level: Mutex::default(),
            backing,
        }
    }

    /// Under which name the server is configured.
    #[must_use]
    pub fn name(&self) -> &ServerName {
        &self.peer.name
    }

    /// The revision agreed on. Its [`hint`](Era::hint) is what to remember for the next start.
    #[must_use]
    pub fn era(&self) -> Era {
        self.agreed_era.current()
    }

    /// The server's capabilities, raw.
    #[must_use]
    pub fn capabilities(&self) -> &Fragment {
        &self.agreement.capabilities
    }

    /// Whether the server's capabilities for `list` have `member` set.
    pub(crate) fn announces(&self, list: List, member: &str) -> bool {
        let name = match list {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::Resources => "resources",
        };
        let capability = object::member(self.agreement.capabilities.as_raw(), name);
        let announced = capability.and_then(|found| object::member(found, member));
        announced.and_then(object::boolean) == Some(true)
    }

    /// Waits until the connection has ended: the server is gone, or it was shut down.
    pub async fn ended(&self) {
        self.peer.pending.wait_for_end().await;
    }

    /// Who the server says it is; for display only.
    #[must_use]
    pub fn identity(&self) -> &ServerIdentity {
        &self.agreement.identity
    }

    /// What the server says about how to use it; untrusted text.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.agreement.instructions.as_deref()
    }

    /// Whether the server asked for the sandbox state.
    #[must_use]
    pub fn sandbox_opt_in(&self) -> bool {
        self.opt_in
    }

    /// The last lines the server wrote to stderr (at most 64 KiB), oldest first; none of a server behind
    /// a URL.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.backing.tail()
    }

    /// Captures the authority of one call on this connection: `state` as given, the connection's
    /// environment, opt-in and credential, and the launcher if a local server opted in and there is a usable one.
    /// An unusable launcher is left out, with one warning; a server behind a URL or in an environment other than
    /// `local` never gets one. `state` is the one of the connection's environment: where that is not selected for
    /// the host's turn, there is none.
    pub async fn capture(&self, state: Option<SandboxState>) -> CapturedAuthority {
        let environment = self.options.environment.clone();
        let reach = match environment.is_local() {
            true => self.backing.reach(),
            false => ServerReach::Remote,
        };
        let mut parts = AuthorityParts::new(environment, reach);
        parts.state = state;
        parts.opt_in = self.opt_in;
        parts.credential = self.credential();
        if self.opt_in && reach == ServerReach::LocalStdio {
            parts.launcher = match self.options.launcher.provide().await {
                Ok(launcher) => launcher,
                Err(error) => {
                    self.peer.warn_once(WarningKind::Launcher, || match error_source(&error) {
                        Some(why) => format!("no launcher is sent: {error}: {why}"),
                        None => format!("no launcher is sent: {error}"),
                    });
                    None
                }
            };
        }
        CapturedAuthority::capture(parts)
    }

    /// The credential that calls are made under, where an authorizer pins one.
    pub(crate) fn credential(&self) -> Option<CredentialPin> {
        self.backing.credential()
    }

    /// The tools as they are on this connection: listed on first use and again after `list_changed`. A server
    /// that does not advertise `tools` has none and is not asked.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::List`].
    pub async fn catalog(&self) -> Result<Arc<Catalog>, ConnectError> {
        let limit = self.options.start_timeout;
        let listed = self.catalog_after(self.overdue(), limit).await;
        listed.map_err(|fault| self.error(Operation::List, fault))
    }

    /// The revision of a listing that is past its time; calls go on with it, who lists does not.
    fn overdue(&self) -> u64 {
        let over = |listing: &&Listing| listing.end.is_some_and(|end| Instant::now() >= end);
        let listing = self.known_catalog();
        listing.as_ref().filter(over).map_or(0, |listing| listing.catalog.revision())
    }

    /// Ends a local server by the shutdown ladder, or the session of one behind a URL; takes at most
    /// the two steps of `options.grace` and the time the system needs. Waiting calls fail.
    pub async fn shut_down(&self) -> ShutdownReport {
        self.backing.end(&self.peer, self.options.grace, false).await
    }

    /// Ends the connection without waiting for the server: its stdin is closed, and who keeps it, if
    /// [`spawner`](ConnectOptions::spawner) gave it to somebody who outlives this program, ends it in the same steps.
    /// Without such a keeper, behind a URL, and where `options.shutdown` says so, this is
    /// [`shut_down`](Self::shut_down).
    pub async fn leave(&self) -> ShutdownReport {
        let leaves = self.options.shutdown == ShutdownPolicy::Background;
        self.backing.end(&self.peer, self.options.grace, leaves).await
    }

    /// Whether arguments may have to be repeated as headers.
    pub(crate) fn mirrors(&self) -> bool {
        self.backing.is_http() && self.modern().is_some()
    }

    /// The catalog that calls go by, if it need not be listed now.
    pub(crate) fn current_catalog(&self) -> Option<Arc<Catalog>> {
        let listing = self.known_catalog();
        let listing = listing.as_ref()?;
        self.peer.looks_at(List::Tools);
        let changes = self.peer.list_changes.load(Ordering::Acquire);
        let is_current = listing.changes == changes && !listing.catalog.is_remembered();
        is_current.then(|| Arc::clone(&listing.catalog))
    }

    fn known_catalog(&self) -> RwLockReadGuard<'_, Option<Listing>> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn know_catalog(&self, listing: Listing) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Some(listing);
    }

    /// Waits while somebody else lists.
    async fn turn_to_list(&self, limit: Duration) -> Result<MutexGuard<'_, ()>, RequestFault> {
        match self.listing.try_lock() {
            Ok(turn) => Ok(turn),
            // Only who has to wait takes a timer.
            Err(_) => {
                timeout(limit, self.listing.lock()).await.map_err(|_| catalog::silence(limit))
            }
        }
    }

    pub(crate) async fn catalog_within(
        &self,
        limit: Duration,
    ) -> Result<Arc<Catalog>, RequestFault> {
        self.catalog_after(0, limit).await
    }

    /// The current catalog, listed again unless its revision is over `stale`.
    pub(crate) async fn catalog_after(
        &self,
        stale: u64,
        limit: Duration,
    ) -> Result<Arc<Catalog>, RequestFault> {
        let _turn = self.turn_to_list(limit).await?;
        self.peer.looks_at(List::Tools);
        let changes = self.peer.list_changes.load(Ordering::Acquire);
        let is_current =
            |listing: &&Listing| listing.changes == changes && listing.catalog.revision() > stale;
        if let Some(current) = self.known_catalog().as_ref().filter(is_current) {
            return Ok(Arc::clone(&current.catalog));
        }
        let asked = Instant::now();
        let has_tools = object::member(self.agreement.capabilities.as_raw(), "tools").is_some();
        let mut listed = match has_tools {
            true => self.list(limit).await?,
            false => catalog::Listed::default(),
        };
        if self.mirrors() {
            drop_badly_annotated(&mut listed);
        }
        if let Some(first) = listed.dropped.first() {
            self.peer.warn_once(WarningKind::DroppedTools, || {
                let name = first.name.as_deref().map(shown).unwrap_or_default();
                let count = listed.dropped.len();
                format!("{count} of its tools cannot be used: `{name}`: {}", first.reason)
            });
        }
        self.remember(&listed).await;
        let revision =
            self.known_catalog().as_ref().map_or(0, |listing| listing.catalog.revision());
        let end = listed.lifetime.map(|lifetime| asked + lifetime);
        let filter = self.options.filter.clone();
        let catalog =
            Catalog::new(revision.saturating_add(1), listed.tools, listed.dropped, filter);
        let catalog = Arc::new(catalog);
        let listing = Listing { catalog: Arc::clone(&catalog), changes, end };
        self.know_catalog(listing);
        Ok(catalog)
    }

    async fn list(&self, limit: Duration) -> Result<catalog::Listed, RequestFault> {
        let end = Instant::now() + limit;
        let mut left = limit;
        let limits = |time| {
            let (tools, pages) = (self.options.max_tools, self.options.max_list_pages);
            ListLimits { time, tools, pages }
        };
        let mut delays = http::DELAYS.into_iter();
        loop {
            let sent = self.era_stamp();
            let fault = match catalog::list(&self.peer, self.modern(), limits(left)).await {
                Ok(listed) => return Ok(listed),
                Err(fault) => fault,
            };
            match (fault, delays.next()) {
                (fault, Some(_)) if self.is_of_another_era(sent, &fault) => {
                    self.renegotiate(sent, fault).await?;
                }
                (RequestFault::Fault(Fault::Http(fault)), Some(delay))
                    if fault.is_transient() && Instant::now() + delay < end =>
                {
                    sleep(delay).await;
                }
                (fault, _) => return Err(fault),
            }
            left = end.saturating_duration_since(Instant::now());
        }
    }

    /// Why it ended.
    pub(crate) fn end(&self) -> ConnectError {
        let fault = match self.peer.pending.closed() {
            Some(closed) => RequestFault::Closed(closed),
            None => RequestFault::Fault(Fault::ShutDown),
        };
        self.error(Operation::Start, fault)
    }

    pub(crate) fn error(&self, operation: Operation, fault: RequestFault) -> ConnectError {
        to_error(self.name(), operation, fault, &self.backing)
    }
}

fn to_error(
    name: &ServerName,
    operation: Operation,
    fault: RequestFault,
    backing: &Backing,
) -> ConnectError {
    let fault = match fault {
        RequestFault::Peer(error) => Fault::Peer(error),
        RequestFault::Fault(fault) => fault,
        RequestFault::Silence => Fault::ShutDown,
        RequestFault::Closed(closed) => {
            let lines = closed.stderr_tail.clone();
            return ConnectError::new(name, operation, closed.fault.repeat(), lines);
        }
    };
    let lines = if fault.concerns_process() { backing.tail() } else { Vec::new() };
    ConnectError::new(name, operation, fault, lines)
}

fn error_source(error: &dyn std::error::Error) -> Option<&dyn std::error::Error> {
    error.source()
}
