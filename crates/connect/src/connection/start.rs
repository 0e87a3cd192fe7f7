//! From a command to an agreement: launch, probe, initialize, and once more where the probe killed.

use std::sync::Arc;
use std::time::Duration;

use plenipo_http::Secrets;
use plenipo_process::{Running, StdioCommand};
use tokio::time::{Instant, timeout_at};

use super::backing::Backing;
use super::{Connection, Launched, to_error};
use crate::error::{ConnectError, Operation};
use crate::memory::MemoryKey;
use crate::negotiate::{self, Agreement, EraHint, LateProbe, ModernMeta, Probe};
use crate::options::ConnectOptions;
use crate::peer::{self, Peer, RequestFault};
use crate::server_name::ServerName;
use crate::transport::stdio::{Monitor, ShutdownReport, Tail, read_stderr};

struct Start<'a> {
    name: ServerName,
    command: &'a StdioCommand,
    options: ConnectOptions,
    modern: ModernMeta,
    deadline: Instant,
}

pub(super) async fn start(
    name: ServerName,
    command: &StdioCommand,
    options: ConnectOptions,
) -> Result<Connection, ConnectError> {
    let modern = ModernMeta::new(&options.client, options.offers(), None);
    let deadline = Instant::now() + options.start_timeout;
    let start = Start { name, command, options, modern, deadline };
    let key = MemoryKey::of_command(command);
    let hint = start.options.remembered_era(&key);
    let options = start.options.clone();
    let connection = start.connect(hint).await?;
    options.remember_era(&key, &connection.era());
    Ok(connection)
}

impl Start<'_> {
    async fn connect(self, hint: EraHint) -> Result<Connection, ConnectError> {
        let launched = self.launch().await?;
        if hint != EraHint::Legacy {
            return self.probe(launched).await;
        }
        match self.initialize(&launched).await {
            Ok(agreement) => Ok(Connection::agreed(launched, self.options, agreement, self.modern)),
            // It was a legacy server once; servers are replaced.
            Err(RequestFault::Peer(error)) => {
                let limit = self.probe_limit();
                match negotiate::probe(&launched.peer, &self.modern, limit).await {
                    Probe::Modern(agreement) => Ok(self.modern(launched, agreement)),
                    _ => Err(self.error(RequestFault::Peer(error), &launched).await),
                }
            }
            Err(fault) => Err(self.error(fault, &launched).await),
        }
    }

    fn probe_limit(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.options.probe_timeout.min(self.options.start_timeout / 3).min(left)
    }

    async fn probe(self, launched: Launched) -> Result<Connection, ConnectError> {
        match negotiate::probe(&launched.peer, &self.modern, self.probe_limit()).await {
            Probe::Modern(agreement) => Ok(self.modern(launched, agreement)),
            Probe::Legacy => self.legacy(launched).await,
            Probe::Silent(late) => self.after_silence(launched, late).await,
            Probe::Died => self.legacy_again(launched).await,
            Probe::Refused(fault) => Err(self.error(RequestFault::Fault(fault), &launched).await),
            Probe::Again(error) => Err(self.error(RequestFault::Peer(error), &launched).await),
        }
    }

    async fn launch(&self) -> Result<Launched, ConnectError> {
        let error = |fault| ConnectError::new(&self.name, Operation::Start, fault, Vec::new());
        let spawner = &*self.options.spawner;
        let running = timeout_at(self.deadline, self.command.spawn(spawner)).await;
        let running = running.unwrap_or_else(|_| Err(self.command.not_started_in_time()));
        let running = running.map_err(|fault| error(fault.into()))?;
        let Running { stdin, stdout, stderr, process, .. } = running;
        let observer = Arc::clone(&self.options.observer);
        let peer = Peer::new(self.name.clone(), Box::pin(stdin), observer);
        let peer = peer.knowing(Secrets::of_variables(self.command.variables()));
        let peer = Arc::new(peer.answering(self.options.input.clone()));
        let tail = Arc::new(Tail::default());
        let limit = self.options.max_message_bytes;
        let outputs = [stdout.clone(), stderr.clone()];
        let reader = tokio::spawn({
            let peer = Arc::clone(&peer);
            async move { peer::read(&peer, stdout, limit).await }
        });
        let stderr = tokio::spawn({
            let (peer, tail) = (Arc::clone(&peer), Arc::clone(&tail));
            async move { read_stderr(stderr, &tail, &peer).await }
        });
        let (watched, said) = (Arc::clone(&peer), Arc::clone(&tail));
        let monitor = Monitor { process, peer: watched, tail: said, outputs, reader, stderr };
        let monitor = monitor.start();
        Ok(Launched { peer, backing: Backing::Process { tail, monitor } })
    }

    fn modern(self, launched: Launched, agreement: Agreement) -> Connection {
        launched.peer.settle_era(true);
        Connection::agreed(launched, self.options, agreement, self.modern)
    }

    async fn legacy(self, launched: Launched) -> Result<Connection, ConnectError> {
        match self.initialize(&launched).await {
            Ok(agreement) => Ok(Connection::agreed(launched, self.options, agreement, self.modern)),
            Err(fault) => Err(self.error(fault, &launched).await),
        }
    }

    /// The probe killed the process: another one, without a probe.
    async fn legacy_again(self, dead: Launched) -> Result<Connection, ConnectError> {
        self.end(&dead).await;
        let launched = self.launch().await?;
        self.legacy(launched).await
    }

    /// A server that starts slowly meets the probe only after we stopped waiting for it: it may
    /// still turn out to be modern, or die of the probe.
    async fn after_silence(
        self,
        launched: Launched,
        mut late: LateProbe,
    ) -> Result<Connection, ConnectError> {
        let initialized = self.initialize(&launched).await;
        launched.peer.pending.forget(late.id);
        match initialized {
            Ok(agreement) => Ok(Connection::agreed(launched, self.options, agreement, self.modern)),
            Err(RequestFault::Closed(_)) => self.legacy_again(launched).await,
            Err(fault) => match late.modern() {
                Some(agreement) => Ok(self.modern(launched, agreement)),
                None => Err(self.error(fault, &launched).await),
            },
        }
    }

    async fn initialize(&self, launched: &Launched) -> Result<Agreement, RequestFault> {
        let peer = &launched.peer;
        peer.settle_era(false);
        let limit = self.options.start_timeout;
        negotiate::initialize(peer, &self.options.client, self.deadline, limit).await
    }

    /// Ends the server, whose last words may come only then, and says why it could not be used.
    async fn error(&self, fault: RequestFault, launched: &Launched) -> ConnectError {
        self.end(launched).await;
        to_error(&self.name, Operation::Start, fault, &launched.backing)
    }

    async fn end(&self, launched: &Launched) -> ShutdownReport {
        launched.backing.end(&launched.peer, self.options.grace, false).await
    }
}
