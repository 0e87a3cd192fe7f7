//! A server that is kept: started again when it ends by itself.
//!
//! Each start makes a new connection, a *generation*. Calls end with the generation they were sent
//! on and are never sent again by themselves: whether the server had done them is not known. A call
//! whose authority was captured on an earlier generation is compared with what would be captured
//! now, and refused where they differ. Subscriptions go on. A configuration that changes makes a new
//! generation too, as [`Server::change`] says.

mod change;
mod subscribe;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plenipo_authority::{CapturedAuthority, SandboxState};
use tokio::sync::{RwLock, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::backoff::Backoff;
use crate::call::{CallOutcome, CallRequest};
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::observer::{Event, tell};
use crate::options::ConnectOptions;
use crate::server_name::ServerName;
use crate::transport::Endpoint;
use crate::transport::stdio::ShutdownReport;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Restarts that [`WINDOW`] may hold.
const MOST_RESTARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// What becomes of a local server that ends without being asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RestartPolicy {
    /// It is started again, at most 5 times a minute, with growing delays between attempts.
    #[default]
    OnFailure,
    /// It stays away.
    Never,
}

/// A server under a name, whichever connection it is on. Clones are the same server; when the last
/// is dropped, what runs is killed.
#[derive(Debug, Clone)]
pub struct Server {
    shared: Arc<Shared>,
    /// Restarts it; ends with the last clone.
    _keeper: Arc<Keeper>,
}

#[derive(Debug)]
struct Shared {
    name: ServerName,
    setup: Mutex<Arc<Setup>>,
    state: watch::Sender<State>,
    restarts: Mutex<VecDeque<Instant>>,
    /// One change after the other.
    changing: tokio::sync::Mutex<()>,
}

/// What is started.
#[derive(Debug)]
struct Setup {
    endpoint: Endpoint,
    options: ConnectOptions,
}

#[derive(Debug, Clone)]
enum State {
    Running {
        generation: u64,
        connection: Arc<Connection>,
        /// Held for reading by each call.
        calls: Arc<RwLock<()>>,
    },
    Restarting {
        generation: u64,
    },
    /// It ends too often, or never started again.
    Failed {
        generation: u64,
        fault: Arc<ConnectError>,
    },
    Stopped {
        generation: u64,
    },
}

#[derive(Debug)]
struct Keeper(Option<AbortHandle>);

/// Where nobody keeps it any longer, as when the runtime has ended, nobody waits for its next start.
struct Kept(Arc<Shared>);

impl Server {
    /// Opens the first connection, and keeps a local server according to `options.restart`. A server
    /// behind a URL has nothing to restart: its connection stays what it is.
    ///
    /// # Errors
    /// As for [`Connection::open`]; a first start that fails is not tried again.
    pub async fn open(
        name: ServerName,
        endpoint: Endpoint,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let connection = Connection::open(name, &endpoint, options).await?;
        Ok(Self::keep(connection, endpoint))
    }

    /// As [`open`](Self::open), of a connection that is open already, as a [`Fleet`](crate::Fleet) gives it;
    /// `endpoint` is what it was opened with. Its options hold on.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn keep(connection: Connection, endpoint: Endpoint) -> Self {
        let (name, options) = (connection.name().clone(), connection.options.clone());
        let (state, _) = watch::channel(State::running(1, Arc::new(connection)));
        let setup = Setup { endpoint, options };
        let is_kept = setup.is_kept();
        let setup = Mutex::new(Arc::new(setup));
        let (restarts, changing) = Default::default();
        let shared = Arc::new(Shared { name, setup, state, restarts, changing });
        let task = is_kept.then(|| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let _kept = Kept(Arc::clone(&shared));
                shared.keep().await;
            })
            .abort_handle()
        });
        Self { shared, _keeper: Arc::new(Keeper(task)) }
    }

    /// Under which name the server is configured.
    #[must_use]
    pub fn name(&self) -> &ServerName {
        &self.shared.name
    }

    /// Which connection is the current one, counted from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.state.borrow().generation()
    }

    /// The current connection; while the server is being started again, the one after it.
    ///
    /// # Errors
    /// [`ConnectError`]: it ended too often, or could not be started again. Asking later tries anew
    /// once the limit allows it.
    pub async fn connection(&self) -> Result<Arc<Connection>, ConnectError> {
        self.shared.current().await.map(|(_, connection, _)| connection)
    }

    /// Captures the authority of one call, on the current connection.
    ///
    /// # Errors
    /// As for [`connection`](Self::connection).
    pub async fn capture(
        &self,
        state: Option<SandboxState>,
    ) -> Result<CapturedAuthority, ConnectError> {
        Ok(self.connection().await?.capture(state).await)
    }

    /// Calls a tool on the current connection, once.
    ///
    /// # Errors
    /// As for [`Connection::call`]; [`Fault::AuthorityChanged`] when the authority was captured
    /// before a restart that changed it.
    pub async fn call(&self, request: CallRequest) -> Result<CallOutcome, ConnectError> {
        let (generation, connection, _sent) = loop {
            let (generation, connection, calls) = self.shared.current().await?;
            let sent = calls.read_owned().await;
            // Between the two the configuration may have changed, and the connection be on its way out.
            if generation == self.generation() || connection.peer.pending.closed().is_some() {
                break (generation, connection, sent);
            }
        };
        if generation > 1 {
            let state = request.authority.state().cloned();
            let now = connection.capture(state).await;
            if let Err(changed) = request.authority.ensure_same(&now) {
                let differing: Vec<_> = changed.parts.iter().map(ToString::to_string).collect();
                let fault = Fault::AuthorityChanged {
                    captured: "the server as it was before it was started again".to_owned(),
                    actual: format!("another {}", differing.join(", ")),
                };
                let operation = Operation::Call { tool: request.tool };
                return Err(ConnectError::new(self.name(), operation, fault, Vec::new()));
            }
        }
        connection.call(request).await
    }

    /// Ends the server for good.
    pub async fn shut_down(&self) -> ShutdownReport {
        let generation = self.generation();
        let last = self.shared.state.send_replace(State::Stopped { generation });
        match last {
            State::Running { connection, .. } => connection.shut_down().await,
            _ => ShutdownReport::default(),
        }
    }
}

impl State {
    fn running(generation: u64, connection: Arc<Connection>) -> Self {
        Self::Running { generation, connection, calls: Arc::default() }
    }

    fn generation(&self) -> u64 {
        match self {
            Self::Running { generation, .. }
            | Self::Restarting { generation }
            | Self::Failed { generation, .. }
            | Self::Stopped { generation } => *generation,
        }
    }
}

/// A generation with its connection, and what its calls hold.
type Current = (u64, Arc<Connection>, Arc<RwLock<()>>);

impl Setup {
    fn is_kept(&self) -> bool {
        self.options.restart == RestartPolicy::OnFailure
            && matches!(self.endpoint, Endpoint::Stdio(_))
    }
}

impl Shared {
    fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn current(&self) -> Result<Current, ConnectError> {
        let mut state = self.state.subscribe();
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                State::Running { generation, connection, calls } => {
                    // Its end was noticed and is about to be handled, unless nobody handles it.
                    let has_ended = connection.peer.pending.closed().is_some();
                    if !has_ended || !self.is_kept() {
                        return Ok((generation, connection, calls));
                    }
                }
                State::Restarting { .. } => {}
                State::Failed { generation, fault } => {
                    if !self.may_restart() {
                        return Err(self.failed(&fault));
                    }
                    self.change(State::Restarting { generation });
                }
                State::Stopped { .. } => {
                    let fault = Fault::ShutDown;
                    return Err(ConnectError::new(&self.name, Operation::Start, fault, Vec::new()));
                }
            }
            if state.changed().await.is_err() {
                let fault = Fault::ShutDown;
                return Err(ConnectError::new(&self.name, Operation::Start, fault, Vec::new()));
            }
        }
    }

    fn is_kept(&self) -> bool {
        self.setup().is_kept()
    }

    fn failed(&self, last: &ConnectError) -> ConnectError {
        let fault = Fault::EndsTooOften {
            restarts: MOST_RESTARTS,
            window: WINDOW,
            last: last.fault().to_string(),
        };
        let lines = last.stderr_tail().to_vec();
        ConnectError::new(&self.name, Operation::Start, fault, lines)
    }

    /// Changes the state unless the server was stopped, or its configuration changed, meanwhile; true when it was
    /// changed.
    fn change(&self, next: State) -> bool {
        self.state.send_if_modified(|state| {
            let newer = match next {
                State::Running { generation, .. } => state.generation() >= generation,
                _ => state.generation() > next.generation(),
            };
            let goes_on = !newer && !matches!(state, State::Stopped { .. });
            if goes_on {
                *state = next;
            }
            goes_on
        })
    }

    /// Watches one generation after the other.
    async fn keep(&self) {
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        let mut states = self.state.subscribe();
        loop {
            let now = states.borrow_and_update().clone();
            match now {
                State::Running { generation, connection, .. } => {
                    let begin = Instant::now();
                    tokio::select! {
                        () = connection.ended() => {}
                        changed = states.changed() => match changed {
                            Ok(()) => continue,
                            Err(_) => return,
                        },
                    }
                    if begin.elapsed() > WINDOW {
                        backoff.reset();
                    }
                    let fault = Arc::new(connection.end());
                    // All of the old one is gone before there is a new one.
                    connection.shut_down().await;
                    drop(connection);
                    if !self.change(State::Restarting { generation }) {
                        continue;
                    }
                    self.restart(generation, fault, &mut backoff).await;
                }
                State::Restarting { generation } => {
                    let fault = Fault::ShutDown;
                    let fault = ConnectError::new(&self.name, Operation::Start, fault, Vec::new());
                    self.restart(generation, Arc::new(fault), &mut backoff).await;
                }
                State::Failed { .. } => {
                    if states.changed().await.is_err() {
                        return;
                    }
                }
                State::Stopped { .. } => return,
            }
        }
    }

    /// Starts the next generation, or gives up for now.
    async fn restart(&self, last: u64, mut fault: Arc<ConnectError>, backoff: &mut Backoff) {
        while self.take_restart() {
            sleep(backoff.next()).await;
            if matches!(*self.state.borrow(), State::Stopped { .. }) {
                return;
            }
            let setup = self.setup();
            let opened =
                Connection::open(self.name.clone(), &setup.endpoint, setup.options.clone());
            match opened.await {
                Ok(connection) => {
                    let generation = last.saturating_add(1);
                    let connection = Arc::new(connection);
                    if self.change(State::running(generation, Arc::clone(&connection))) {
                        let server = &self.name;
                        let event = Event::Restarted { server, generation };
                        tell(&*setup.options.observer, &event);
                    } else {
                        connection.shut_down().await;
                    }
                    return;
                }
                Err(error) => fault = Arc::new(error),
            }
        }
        self.change(State::Failed { generation: last, fault });
    }

    fn may_restart(&self) -> bool {
        self.recent(|restarts| restarts.len() < MOST_RESTARTS)
    }

    /// Counts one more start, if the limit allows it.
    fn take_restart(&self) -> bool {
        self.recent(|restarts| {
            let may = restarts.len() < MOST_RESTARTS;
            if may {
                restarts.push_back(Instant::now());
            }
            may
        })
    }

    fn recent<T>(&self, look: impl FnOnce(&mut VecDeque<Instant>) -> T) -> T {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        while restarts.front().is_some_and(|start| start.elapsed() >= WINDOW) {
            restarts.pop_front();
        }
        look(&mut restarts)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Self(shared) = self;
        let generation = shared.state.borrow().generation();
        shared.change(State::Stopped { generation });
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
