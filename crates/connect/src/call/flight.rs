//! A call on the wire: sent, waited for, and cleaned up after.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plenipo_wire::protocol::{meta, methods};
use plenipo_wire::{Fragment, RawValue, RequestId};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::CallRequest;
use super::progress::ProgressSink;
use crate::catalog::{Catalog, Tool};
use crate::connection::Connection;
use crate::error::Fault;
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
        Self { connection, request, start: Instant::now(), idle, total }
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
    async fn cancelled(&self) -> String {
        match self.request.cancel.clone() {
            Some(mut cancellation) => cancellation.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn fly(&self, tool: &Tool) -> Result<Box<RawValue>, RequestFault> {
        let peer = &*self.connection.peer;
        let mirrored = self.connection.mirrored(tool, self.request.arguments.as_ref());
        let mirrored = mirrored.map_err(RequestFault::Fault)?;
        let sink = self.request.progress.clone().map(ProgressSink::new).map(Arc::new);
        let (id, receiver) = peer.pending.register(sink.clone()).map_err(RequestFault::Closed)?;
        let mut in_flight = InFlight { peer, id, armed: false };
        let queued = self.meta(id).and_then(|meta| self.queue(id, meta.as_ref()));
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
        for (name, value) in modern.iter().flat_map(|modern| modern.entries()) {
            extra.push((name, value.as_raw()));
        }
        if request.progress.is_some() {
            extra.push((meta::PROGRESS_TOKEN, token.as_raw()));
        }
        let caller = request.meta.as_ref().map(Fragment::as_raw);
        let attached = authority.attach(caller, &extra).map_err(Fault::Attach)?;
        Ok(Some(Fragment::from(attached)))
    }

    fn queue(&self, id: i64, meta: Option<&Fragment>) -> Result<Outgoing<'a>, Fault> {
        let request = self.request;
        let mut outgoing = self.connection.peer.queue(id, methods::TOOLS_CALL, |params| {
            params.string("name", &request.tool);
            if let Some(arguments) = &request.arguments {
                params.fragment("arguments", arguments);
            }
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
        let mut patience = pin!(sleep_until(self.end_of_patience(None)));
        let mut cancelled = pin!(self.cancelled());
        loop {
            tokio::select! {
                biased;
                reply = &mut exchange => return reply,
                reason = &mut cancelled => {
                    return Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }));
                }
                () = &mut patience => {
                    let end = self.end_of_patience(sink.and_then(ProgressSink::last));
                    if end <= Instant::now() {
                        return Err(RequestFault::Fault(self.timed_out()));
                    }
                    patience.as_mut().reset(end);
                }
            }
        }
    }

    fn end_of_patience(&self, last_progress: Option<Instant>) -> Instant {
        let idle = last_progress.unwrap_or(self.start) + self.idle;
        idle.min(self.start + self.total)
    }

    fn timed_out(&self) -> Fault {
        let total = self.start.elapsed() >= self.total && self.total > self.idle;
        Fault::TimedOut { limit: if total { self.total } else { self.idle }, total }
    }
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
