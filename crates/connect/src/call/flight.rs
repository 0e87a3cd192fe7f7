//! A call on the wire: sent, waited for, and cleaned up after.

use std::future::{Future, poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plenipo_authority::{Attachment, EntryName};
use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::{extensions, meta, methods};
use plenipo_wire::{Fragment, RawValue};

use super::CallRequest;
use super::progress::ProgressSink;
use super::rounds::Retry;
use crate::catalog::{Catalog, Tool};
use crate::connection::Connection;
use crate::error::{Fault, Operation};
use crate::in_flight::InFlight;
use crate::input::InputOffer;
use crate::input::respond::Asker;
use crate::patience::{Patience, Sent};
use crate::peer::{Link, Outgoing, RequestFault};
use crate::pending::{Answer, Landed, Reply};

pub(super) struct Flight<'a> {
    connection: &'a Connection,
    request: &'a CallRequest,
    patience: Patience<'a>,
    asker: Option<Asker>,
    /// What the client can do for this call, when that is not what it can do for all.
    capabilities: Option<Fragment>,
}

impl<'a> Flight<'a> {
    pub(super) fn new(connection: &'a Connection, request: &'a CallRequest) -> Self {
        let idle = request.timeout.unwrap_or_else(|| connection.options.timeout_of(&request.tool));
        let asks = &connection.peer.asks;
        let asker = request.input.as_ref().or(asks.handler()).map(|handler| Asker {
            handler: Arc::clone(handler),
            server: connection.name().clone(),
            during: Some(Operation::Call { tool: request.tool.clone() }),
        });
        let own = request.input.as_ref().map(|input| input.offers());
        let declared = connection.peer.extension();
        let capabilities = match request.takes_task && connection.offers(extensions::TASKS) {
            false => own.map(|own| own.capabilities_with(declared)),
            true => {
                let offer = own.or(asks.handler().map(|handler| handler.offers()));
                Some(
                    offer
                        .unwrap_or(InputOffer::NOTHING)
                        .capabilities_with(declared.into_iter().chain([extensions::TASKS])),
                )
            }
        };
        let patience = Patience::new(
            asks.clock(),
            idle,
            request.max_total.or(connection.options.tool_total_timeout),
        );
        Self { connection, request, patience, asker, capabilities }
    }

    /// Who answers what the server asks during this call.
    pub(super) fn asker(&self) -> Option<&Asker> {
        self.asker.as_ref()
    }

    /// The catalog, if it need not be listed.
    pub(super) fn catalog_at_hand(&self) -> Option<Arc<Catalog>> {
        self.connection.current_catalog()
    }

    /// The catalog, listed if need be; under the call's own limits.
    pub(super) async fn catalog(&self) -> Result<Arc<Catalog>, RequestFault> {
        let limit = self.listing_limit();
        self.listed(self.connection.catalog_at_hand_within(limit)).await
    }

    /// A catalog that is newer than `revision`.
    pub(super) async fn catalog_after(&self, revision: u64) -> Result<Arc<Catalog>, RequestFault> {
        self.listed(self.connection.catalog_after(revision, self.listing_limit())).await
    }

    fn listing_limit(&self) -> Duration {
        self.connection.options.start_timeout.min(self.patience.shortest())
    }

    async fn listed(
        &self,
        listing: impl Future<Output = Result<Arc<Catalog>, RequestFault>>,
    ) -> Result<Arc<Catalog>, RequestFault> {
        tokio::select! {
            biased;
            catalog = listing => catalog,
            reason = self.cancelled() => {
                Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }))
            }
        }
    }

    /// Does something before the call is sent, at most as long as the call may take.
    pub(super) async fn limited(&self, work: impl Future<Output = ()>) -> Result<(), RequestFault> {
        tokio::select! {
            biased;
            () = work => Ok(()),
            reason = self.cancelled() => {
                Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }))
            }
            fault = async { self.patience.run_out(&self.patience.sent(), None).await } => {
                Err(RequestFault::Fault(fault))
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
        let sent = self.patience.sent();
        let registered = peer.pending.register_until(sink.clone(), Some(self.patience.due(&sent)));
        let (id, answer) = registered.map_err(RequestFault::Closed)?;
        let mut in_flight = InFlight { peer, id, armed: false };
        if let Some(asker) = self.asker.as_ref().filter(|_| self.connection.modern().is_none()) {
            peer.pending.attend(id, asker.clone());
        }
        let mut outgoing = match self.queue(id, tool, retry) {
            Ok(outgoing) => outgoing,
            Err(fault) => {
                peer.pending.forget(id);
                return Err(RequestFault::Fault(fault));
            }
        };
        outgoing.mirrored = mirrored;
        in_flight.armed = true;
        let landed = self.wait(outgoing, answer, (&sent, sink.as_deref())).await;
        if let Some(sink) = &sink {
            sink.finish();
        }
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

    fn queue(&self, id: i64, tool: &Tool, retry: &Retry) -> Result<Outgoing<'a>, Fault> {
        let request = self.request;
        let token = request.progress.is_some().then(|| Fragment::integer(id));
        let level = request.log_level.map(|level| Fragment::string(level.as_str()));
        let extra = self.host_entries(token.as_ref(), level.as_ref());
        let caller = request.meta.as_ref().map(Fragment::as_raw);
        let meta = request.authority.attachment(caller, &extra).map_err(Fault::Attach)?;
        let has_meta = caller.is_some() || !meta.is_empty();
        let asks_for_task = request.takes_task && self.connection.has_legacy_tasks(tool);
        let mut outgoing = self.connection.peer.queue(id, methods::TOOLS_CALL, |params| {
            params.string("name", &request.tool);
            if let Some(arguments) = &request.arguments {
                params.fragment("arguments", arguments);
            }
            retry.write(params);
            if asks_for_task {
                params.object("task", |_| {});
            }
            if has_meta {
                params.object("_meta", |object| write_entries(object, &meta));
            }
        })?;
        outgoing.name = Some(&request.tool);
        Ok(outgoing)
    }

    /// The host's own entries of `_meta`: the era's and the progress token.
    fn host_entries<'e>(
        &'e self,
        token: Option<&'e Fragment>,
        level: Option<&'e Fragment>,
    ) -> Vec<(&'e str, &'e RawValue)> {
        let modern = self.connection.modern();
        let mut entries: Vec<(&str, &RawValue)> = Vec::new();
        let capabilities = self.capabilities.as_ref();
        for (name, value) in modern.into_iter().flat_map(|modern| modern.entries(capabilities)) {
            entries.push((name, value.as_raw()));
        }
        if let Some(token) = token {
            entries.push((meta::PROGRESS_TOKEN, token.as_raw()));
        }
        // An older server was told before.
        if let Some(level) = level.filter(|_| modern.is_some()) {
            entries.push((meta::LOG_LEVEL, level.as_raw()));
        }
        entries
    }

    /// Waits for the answer, the end of patience or a cancellation.
    async fn wait(
        &self,
        outgoing: Outgoing<'_>,
        mut answer: Answer,
        (sent, sink): (&Sent, Option<&ProgressSink>),
    ) -> Result<Reply, RequestFault> {
        let peer = &*self.connection.peer;
        let id = outgoing.id;
        if let (Link::Http(http), Some(question)) = (&peer.link, outgoing.into_question()) {
            let exchange = http.exchange(peer, question, answer);
            // Waiting for the answer is being woken at that time: one that comes before takes no timer.
            let due = poll_fn(|_| match peer.pending.is_due(id) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
            return self.wait_for(exchange, due, (sent, sink)).await;
        }
        peer.send()?;
        let landed = match &self.request.cancel {
            None => answer.landed().await,
            Some(cancellation) => {
                let mut cancellation = cancellation.clone();
                tokio::select! {
                    biased;
                    landed = answer.landed() => landed,
                    reason = cancellation.cancelled() => {
                        return Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }));
                    }
                }
            }
        };
        let gone = || RequestFault::Fault(Fault::ShutDown);
        match landed {
            Landed::Answered(reply) => Ok(reply),
            Landed::Forgotten => Err(gone()),
            // Seldom: it is out of time unless there was progress, or somebody was asked.
            Landed::Due => {
                let answer = Box::pin(async { answer.await.map_err(|_| gone()) });
                Box::pin(self.wait_for(answer, ready(()), (sent, sink))).await
            }
        }
    }

    async fn wait_for(
        &self,
        mut reply: impl Future<Output = Result<Reply, RequestFault>> + Unpin,
        due: impl Future<Output = ()>,
        (sent, sink): (&Sent, Option<&ProgressSink>),
    ) -> Result<Reply, RequestFault> {
        let run_out = async {
            due.await;
            self.patience.run_out(sent, sink).await
        };
        tokio::select! {
            biased;
            reply = &mut reply => reply,
            reason = self.cancelled() => {
                Err(RequestFault::Fault(Fault::Cancelled { reason: Some(reason) }))
            }
            fault = run_out => Err(RequestFault::Fault(fault)),
        }
    }

    /// A person was asked for so long between two rounds.
    pub(super) fn spent_asking(&self, time: Duration) {
        self.patience.spent_asking(time);
    }
}

fn write_entries(object: &mut ObjectWriter<'_>, meta: &Attachment<'_>) {
    for (name, value) in meta.entries() {
        match name {
            EntryName::Written(name) => object.raw_spelled(name, value),
            EntryName::Plain(name) => object.raw(name, value),
        }
    }
}
