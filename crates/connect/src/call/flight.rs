//! A call on the wire: sent, waited for, and cleaned up after.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plenipo_wire::protocol::{meta, methods};
use plenipo_wire::{Fragment, RawValue, RequestId};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::CallRequest;
use super::progress::ProgressSink;
use super::rounds::Retry;
use crate::catalog::{Catalog, Tool};
use crate::connection::Connection;
use crate::error::{Fault, Operation};
use crate::input::respond::Asker;
use crate::peer::{Outgoing, Peer, RequestFault};
use crate::pending::Reply;

/// How long the notice of a cancellation may take to be written.
const NOTICE: Duration = Duration::from_millis(250);
const DEFAULT_TOTAL: u32 = 4;
/// From this many calls in flight on, frames are gathered before they are written.
const CROWD: usize = 8;

pub(super) struct Flight<'a> {
    connection: &'a Connection,
    request: &'a CallRequest,
    start: Instant,
    idle: Duration,
    total: Duration,
    asker: Option<Asker>,
    /// What the client can do for this call, when that is not what it can do for all.
    capabilities: Option<Fragment>,
    waits: Waits,
}

/// What of the time does not count.
#[derive(Debug, Default)]
struct Waits {
    /// In which a person was asked between two rounds.
    between_rounds: Mutex<Duration>,
    /// In which the connection's questions were open before the call began.
    before: Duration,
}

/// A request in flight. Dropped while armed, it tells the server that nobody waits any longer.
struct InFlight<'a> {
    peer: &'a Peer,
    id: i64,
    armed: bool,
}

impl<'a> Flight<'a> {
    pub(super) fn new(connection: &'a Connection, request: &'a CallRequest) -> Self {
        let idle = request.timeout.unwrap_or(connection.options.tool_timeout);
        let total = request.max_total.unwrap_or(idle.saturating_mul(DEFAULT_TOTAL));
        let asks = &connection.peer.asks;
        let asker = request.input.as_ref().or(asks.handler()).map(|handler| Asker {
            handler: Arc::clone(handler),
            server: connection.name().clone(),
            during: Some(Operation::Call { tool: request.tool.clone() }),
        });
        let capabilities = request.input.as_ref().map(|input| input.offers().capabilities());
        let waits = Waits { before: asks.clock().spent(), ..Waits::default() };
        let start = Instant::now();
        Self { connection, request, start, idle, total, asker, capabilities, waits }
    }

    /// Who answers what the server asks during this call.
    pub(super) fn asker(&self) -> Option<&Asker> {
        self.asker.as_ref()
    }

    /// The catalog, listed if need be; under the call's own limits.
    pub(super) async fn catalog(&self) -> Result<Arc<Catalog>, RequestFault> {
        self.catalog_after(0).await
    }

    /// A catalog that is newer than `revision`.
    pub(super) async fn catalog_after(&self, revision: u64) -> Result<Arc<Catalog>, RequestFault> {
        let limit = self.connection.options.start_timeout.min(self.idle).min(self.total);
        tokio::select! {
            biased;
            catalog = self.connection.catalog_after(revision, limit) => catalog,
            reason = self.cancelled() => {
                Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }))
            }
        }
    }

    /// Waits for the caller to cancel; for ever when it cannot.
    pub(super) async fn cancelled(&self) -> String {
        match self.request.cancel.clone() {
            Some(mut cancellation) => cancellation.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn fly(
        &self,
        tool: &Tool,
        retry: &Retry,
    ) -> Result<Box<RawValue>, RequestFault> {
        let peer = &*self.connection.peer;
        let mirrored = self.connection.mirrored(tool, self.request.arguments.as_ref());
        let mirrored = mirrored.map_err(RequestFault::Fault)?;
        let sink = self.request.progress.clone().map(ProgressSink::new).map(Arc::new);
        let (id, receiver) = peer.pending.register(sink.clone()).map_err(RequestFault::Closed)?;
        let mut in_flight = InFlight { peer, id, armed: false };
        if let Some(asker) = self.asker.as_ref().filter(|_| self.connection.modern().is_none()) {
            peer.pending.attend(id, asker.clone());
        }
        let queued = self.meta(id).and_then(|meta| self.queue(id, meta.as_ref(), retry));
        let mut outgoing = match queued {
            Ok(outgoing) => outgoing,
            Err(fault) => {
                peer.pending.forget(id);
                return Err(RequestFault::Fault(fault));
            }
        };
        outgoing.mirrored = mirrored;
        in_flight.armed = true;
        let landed = self.wait(outgoing, receiver, sink.as_deref()).await;
        match landed {
            Ok(reply) => {
                in_flight.armed = false;
                reply.into_result()
            }
            Err(RequestFault::Fault(fault)) => {
                in_flight.armed = false;
                in_flight.give_up(&fault).await;
                Err(RequestFault::Fault(fault))
            }
            Err(fault) => {
                in_flight.armed = false;
                peer.pending.forget(id);
                Err(fault)
            }
        }
    }

    /// `_meta`: the caller's entries, then the era's, the progress token, the authority's.
    fn meta(&self, id: i64) -> Result<Option<Fragment>, Fault> {
        let request = self.request;
        let authority = &request.authority;
        let sends_state = authority.opt_in() && authority.state().is_some();
        let modern = self.connection.modern();
        if request.meta.is_none() && request.progress.is_none() && modern.is_none() && !sends_state
        {
            return Ok(None);
        }
        let token = RequestId::Number(id).to_fragment();
        let mut extra: Vec<(&str, &RawValue)> = Vec::with_capacity(4);
        let capabilities = self.capabilities.as_ref();
        for (name, value) in modern.iter().flat_map(|modern| modern.entries(capabilities)) {
            extra.push((name, value.as_raw()));
        }
        if request.progress.is_some() {
            extra.push((meta::PROGRESS_TOKEN, token.as_raw()));
        }
        let caller = request.meta.as_ref().map(Fragment::as_raw);
        let attached = authority.attach(caller, &extra).map_err(Fault::Attach)?;
        Ok(Some(Fragment::from(attached)))
    }

    fn queue(
        &self,
        id: i64,
        meta: Option<&Fragment>,
        retry: &Retry,
    ) -> Result<Outgoing<'a>, Fault> {
        let request = self.request;
        let mut outgoing = self.connection.peer.queue(id, methods::TOOLS_CALL, |params| {
            params.string("name", &request.tool);
            if let Some(arguments) = &request.arguments {
                params.fragment("arguments", arguments);
            }
            retry.write(params);
            if let Some(meta) = meta {
                params.fragment("_meta", meta);
            }
        })?;
        outgoing.name = Some(&request.tool);
        Ok(outgoing)
    }

    /// Waits for the answer, the end of patience or a cancellation.
    async fn wait(
        &self,
        outgoing: Outgoing<'_>,
        receiver: oneshot::Receiver<Reply>,
        sink: Option<&ProgressSink>,
    ) -> Result<Reply, RequestFault> {
        let peer = &*self.connection.peer;
        let mut exchange = pin!(async {
            if peer.pending.len() >= CROWD {
                // Others are about to send too: one write then carries all their frames.
                tokio::task::yield_now().await;
            }
            peer.answer(outgoing, receiver).await
        });
        tokio::select! {
            biased;
            reply = &mut exchange => reply,
            reason = self.cancelled() => {
                Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }))
            }
            fault = self.patience(sink) => Err(RequestFault::Fault(fault)),
        }
    }

    /// Waits until the server took too long. While a person is asked, no time passes.
    async fn patience(&self, sink: Option<&ProgressSink>) -> Fault {
        let clock = self.connection.peer.asks.clock();
        let sent = Sent { at: Instant::now(), asked: clock.spent() };
        loop {
            let end = self.end_of_patience(&sent, sink.and_then(ProgressSink::last));
            if end <= Instant::now() {
                return self.timed_out();
            }
            sleep_until(end).await;
            clock.idle().await;
        }
    }

    fn end_of_patience(&self, sent: &Sent, last_progress: Option<Instant>) -> Instant {
        let spent = self.connection.peer.asks.clock().spent();
        let idle = last_progress.unwrap_or(sent.at) + self.idle + (spent - sent.asked);
        idle.min(self.start + self.total + self.asked(spent))
    }

    /// A person was asked for so long between two rounds.
    pub(super) fn spent_asking(&self, time: Duration) {
        let between = &self.waits.between_rounds;
        *between.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }

    /// How long people were asked since the call began.
    fn asked(&self, spent: Duration) -> Duration {
        let between = *self.waits.between_rounds.lock().unwrap_or_else(PoisonError::into_inner);
        between + spent.saturating_sub(self.waits.before)
    }

    fn timed_out(&self) -> Fault {
        let asked = self.asked(self.connection.peer.asks.clock().spent());
        let total = self.start.elapsed() >= self.total + asked && self.total > self.idle;
        Fault::TimedOut { limit: if total { self.total } else { self.idle }, total }
    }
}

/// When a request went out, and how long people had been asked by then.
struct Sent {
    at: Instant,
    asked: Duration,
}

impl InFlight<'_> {
    /// Tells the server, within a short time.
    async fn give_up(&self, fault: &Fault) {
        if self.cancel(&fault.to_string()) {
            timeout(NOTICE, self.peer.flush()).await.ok();
        }
    }

    /// Queues the notice unless the answer came meanwhile.
    fn cancel(&self, reason: &str) -> bool {
        if !self.peer.pending.forget(self.id) {
            return false;
        }
        let params = Fragment::object(|object| {
            object.integer("requestId", self.id);
            object.string("reason", reason);
        });
        self.peer.queue_notification(methods::CANCELLED, &params)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.armed && self.cancel("the caller went away") {
            self.peer.schedule_flush();
        }
    }
}
