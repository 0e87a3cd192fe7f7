//! Requests other than `tools/call`: what a host may say about each, and the one way they all go.
//!
//! They carry no authority: sandbox state and launcher go with `tools/call` only.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plenipo_authority::{AuthorityParts, CapturedAuthority, ServerReach};
use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::{extensions, meta, methods};
use plenipo_wire::views::ResultType;
use plenipo_wire::{Fragment, RawValue, RequestId, ViewError};
use tokio::time::Instant;

use crate::call::progress::ProgressSink;
use crate::call::rounds::{Attempt, Retry, Rounds};
use crate::call::{Cancellation, ProgressObserver};
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::in_flight::InFlight;
use crate::input::respond::Asker;
use crate::input::{InputHandler, InputOffer};
use crate::patience::Patience;
use crate::peer::{Outgoing, RequestFault};
use crate::pending::{Answer, Reply};
use crate::text::shown;

/// How a request is made. All defaults will do.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// How long silence may last; default: the connection's `start_timeout` for one page of a list,
    /// its `tool_timeout` for everything else. Progress starts it anew.
    pub timeout: Option<Duration>,
    /// How long it may take whatever its progress; default: four times the timeout.
    pub max_total: Option<Duration>,
    /// The caller's own `_meta`; keys that are the host's to set are refused.
    pub meta: Option<Fragment>,
    /// Asks the server for progress, and is told about it.
    pub progress: Option<ProgressObserver>,
    /// Answers what the server asks before it answers, instead of the connection's own handler.
    pub input: Option<Arc<dyn InputHandler>>,
    /// Cancels from outside. Dropping the future cancels too.
    pub cancel: Option<Cancellation>,
}

/// One request.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    /// What it is about: a URI, a name, an id.
    pub(crate) subject: Option<&'a str>,
    /// Writes the parameters, all but `_meta`.
    pub(crate) params: &'a (dyn Fn(&mut ObjectWriter<'_>) + Sync),
    pub(crate) options: &'a RequestOptions,
}

impl Ask<'_> {
    fn operation(&self) -> Operation {
        Operation::Request { method: self.method, subject: self.subject.map(str::to_owned) }
    }

    /// Whether a header repeats the subject (2026-07-28, "Standard Request Headers").
    fn is_named(&self) -> bool {
        matches!(
            self.method,
            methods::RESOURCES_READ
                | methods::PROMPTS_GET
                | methods::TASKS_GET
                | methods::TASKS_UPDATE
                | methods::TASKS_CANCEL
        )
    }

    /// The only ones beside `tools/call` that may be answered with questions.
    fn may_need_input(&self) -> bool {
        matches!(self.method, methods::RESOURCES_READ | methods::PROMPTS_GET)
    }

    /// What is declared for this request; `None` when that is what the connection declares.
    fn capabilities(&self, offer: Option<InputOffer>, declared: Option<&str>) -> Option<Fragment> {
        let extension = match self.method {
            methods::TASKS_GET | methods::TASKS_UPDATE | methods::TASKS_CANCEL => extensions::TASKS,
            methods::SKILLS_LIST | methods::SKILLS_GET | methods::DIRECTORY_READ => {
                extensions::SKILLS
            }
            _ => {
                let own = self.options.input.as_ref();
                return own.map(|input| input.offers().capabilities_with(declared));
            }
        };
        let offer = offer.unwrap_or(InputOffer::NOTHING);
        Some(offer.capabilities_with(declared.into_iter().chain([extension])))
    }

    fn is_list(&self) -> bool {
        self.method.ends_with("/list") || self.method == methods::DIRECTORY_READ
    }
}

impl Connection {
    /// Asks and reads the result, which has to be a final one.
    pub(crate) async fn ask<T>(
        &self,
        ask: Ask<'_>,
        read: impl FnOnce(Box<RawValue>) -> Result<T, ViewError>,
    ) -> Result<T, ConnectError> {
        let method = ask.method;
        let result = self.ask_raw(ask).await.and_then(|result| {
            let bad = |source| RequestFault::Fault(Fault::BadAnswer { method, source });
            read(result).map_err(bad)
        });
        result.map_err(|fault| self.error(ask.operation(), fault))
    }

    /// As [`ask`](Self::ask), for callers that go on after a fault.
    pub(crate) async fn ask_raw(&self, ask: Ask<'_>) -> Result<Box<RawValue>, RequestFault> {
        if let Some(kept) = self.kept(&ask) {
            return Ok(kept);
        }
        let attempt = RequestAttempt::new(self, &ask);
        let asked = Instant::now();
        let answered = self.ask_server(&ask, &attempt).await;
        match &answered {
            // What took questions to get is nobody else's answer.
            Ok(result) if attempt.sent.load(Ordering::Relaxed) == 1 => {
                self.keep(&ask, asked, result);
            }
            Ok(_) => {}
            Err(fault) => self.drop_if_refused(fault),
        }
        answered
    }

    async fn ask_server(
        &self,
        ask: &Ask<'_>,
        attempt: &RequestAttempt<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        let result = match ask.may_need_input() {
            false => attempt.send(&Retry::default()).await?,
            true => {
                let rounds = Rounds {
                    asks: &self.peer.asks,
                    asker: attempt.asker.as_ref(),
                    is_modern: self.modern().is_some(),
                    limit: self.options.max_input_rounds,
                    questions: self.options.max_questions,
                };
                rounds.run(attempt).await?
            }
        };
        let unfinished =
            |found: &str| Err(RequestFault::Fault(Fault::ResultType { found: shown(found) }));
        match ResultType::of(&result) {
            Some(ResultType::InputRequired) => unfinished("input_required"),
            Some(ResultType::Unknown(found)) => unfinished(&found),
            _ => Ok(result),
        }
    }
}

/// A request that can be sent again, in rounds.
struct RequestAttempt<'a> {
    connection: &'a Connection,
    ask: &'a Ask<'a>,
    asker: Option<Asker>,
    /// What the client can do for this request.
    capabilities: Option<Fragment>,
    patience: Patience<'a>,
    /// How often it went out.
    sent: AtomicU32,
}

impl<'a> RequestAttempt<'a> {
    fn new(connection: &'a Connection, ask: &'a Ask<'a>) -> Self {
        let options = ask.options;
        let usual = match ask.is_list() {
            true => connection.options.start_timeout,
            false => connection.options.tool_timeout,
        };
        let idle = options.timeout.unwrap_or(usual);
        let asks = &connection.peer.asks;
        let patience = Patience::new(asks.clock(), idle, options.max_total);
        let handler = options.input.as_ref().or(asks.handler());
        let asker = handler.map(|handler| Asker {
            handler: Arc::clone(handler),
            server: connection.name().clone(),
            during: Some(ask.operation()),
        });
        let offer = options.input.as_ref().map(|input| input.offers());
        let offer = offer.or(asks.handler().map(|own| own.offers()));
        let capabilities = ask.capabilities(offer, connection.peer.extension());
        Self { connection, ask, asker, capabilities, patience, sent: AtomicU32::new(0) }
    }

    async fn send_once(&self, retry: &Retry) -> Result<Box<RawValue>, RequestFault> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let peer = &*self.connection.peer;
        let sink = self.ask.options.progress.clone().map(ProgressSink::new).map(Arc::new);
        let (id, answer) = peer.pending.register(sink.clone()).map_err(RequestFault::Closed)?;
        let mut in_flight = InFlight { peer, id, armed: false };
        if let Some(asker) = self.asker.as_ref().filter(|_| self.connection.modern().is_none()) {
            peer.pending.attend(id, asker.clone());
        }
        let outgoing = match self.compose(id, retry) {
            Ok(outgoing) => outgoing,
            Err(fault) => {
                peer.pending.forget(id);
                return Err(RequestFault::Fault(fault));
            }
        };
        in_flight.armed = true;
        let landed = self.wait(outgoing, answer, sink.as_deref()).await;
        if let Some(sink) = &sink {
            sink.finish();
        }
        in_flight.armed = false;
        match landed {
            Ok(reply) => reply.into_result(),
            Err(RequestFault::Fault(fault)) => {
                in_flight.give_up(&fault).await;
                Err(RequestFault::Fault(fault))
            }
            Err(fault) => {
                peer.pending.forget(id);
                Err(fault)
            }
        }
    }

    fn compose(&self, id: i64, retry: &Retry) -> Result<Outgoing<'a>, Fault> {
        let ask = self.ask;
        let meta = self.meta(id)?;
        let mut outgoing = self.connection.peer.queue(id, ask.method, |params| {
            (ask.params)(params);
            retry.write(params);
            if let Some(meta) = &meta {
                params.fragment("_meta", meta);
            }
        })?;
        outgoing.name = ask.subject.filter(|_| ask.is_named());
        Ok(outgoing)
    }

    /// The caller's entries, then the era's and the progress token. Nothing of an authority.
    fn meta(&self, id: i64) -> Result<Option<Fragment>, Fault> {
        let options = self.ask.options;
        let modern = self.connection.modern();
        if options.meta.is_none() && options.progress.is_none() && modern.is_none() {
            return Ok(None);
        }
        let token = RequestId::Number(id).to_fragment();
        let mut extra: Vec<(&str, &RawValue)> = Vec::with_capacity(4);
        let capabilities = self.capabilities.as_ref();
        for (name, value) in modern.iter().flat_map(|modern| modern.entries(capabilities)) {
            extra.push((name, value.as_raw()));
        }
        if options.progress.is_some() {
            extra.push((meta::PROGRESS_TOKEN, token.as_raw()));
        }
        let environment = self.connection.options.environment.clone();
        let nothing = AuthorityParts::new(environment, ServerReach::Remote);
        let caller = options.meta.as_ref().map(Fragment::as_raw);
        let attached = CapturedAuthority::capture(nothing).attach(caller, &extra);
        attached.map(|meta| Some(Fragment::from(meta))).map_err(Fault::Attach)
    }

    /// Waits for the answer, the end of patience or a cancellation.
    async fn wait(
        &self,
        outgoing: Outgoing<'_>,
        answer: Answer,
        sink: Option<&ProgressSink>,
    ) -> Result<Reply, RequestFault> {
        let mut exchange = pin!(self.connection.peer.answer(outgoing, answer));
        let sent = self.patience.sent();
        tokio::select! {
            biased;
            reply = &mut exchange => reply,
            fault = self.cancelled() => Err(RequestFault::Fault(fault)),
            fault = self.patience.run_out(&sent, sink) => Err(RequestFault::Fault(fault)),
        }
    }
}

impl Attempt for RequestAttempt<'_> {
    async fn send(&self, retry: &Retry) -> Result<Box<RawValue>, RequestFault> {
        let sent = self.connection.era_stamp();
        match self.send_once(retry).await {
            Err(fault) if self.connection.is_of_another_era(sent, &fault) => {
                self.connection.renegotiate(sent, fault).await?;
                self.send_once(retry).await
            }
            landed => landed,
        }
    }

    async fn cancelled(&self) -> Fault {
        match self.ask.options.cancel.clone() {
            Some(mut cancellation) => {
                Fault::Cancelled { reason: Some(cancellation.cancelled().await) }
            }
            None => std::future::pending().await,
        }
    }

    fn spent_asking(&self, time: Duration) {
        self.patience.spent_asking(time);
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("max_total", &self.max_total)
            .finish_non_exhaustive()
    }
}
