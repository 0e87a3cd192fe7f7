//! The server on the other end: its messages in, requests out.

mod notices;
mod receive;
mod warnings;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use plenipo_http::Secrets;
use plenipo_wire::encode::{self, ObjectWriter};
use plenipo_wire::{Fragment, RawValue, RequestId};
use tokio::time::timeout;

pub(crate) use receive::read;
use warnings::Warnings;

use crate::call::mirror::Mirrored;
use crate::changes::Changes;
use crate::error::{Fault, PeerError};
use crate::input::InputHandler;
use crate::input::asks::Asks;
use crate::negotiate::Era;
use crate::observer::{Event, Observer, tell};
use crate::outbox::{Full, Outbox, WriteHalf};
use crate::pending::{Answer, Closed, Pending, Reply};
use crate::server_name::ServerName;
use crate::subscription::Sinks;
use crate::transport::http::{HttpLink, Protocol, Question};

/// One peer, shared by the reading task and the callers.
pub(crate) struct Peer {
    pub(crate) name: ServerName,
    /// Which connection this is, among all of this process.
    pub(crate) number: u64,
    pub(crate) pending: Pending,
    pub(crate) link: Link,
    /// Of the process of a local server; what goes to a URL is the link's.
    own_secrets: Secrets,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) warnings: Warnings,
    /// Counts `list_changed`; a catalog listed at an older count is stale.
    pub(crate) list_changes: AtomicU64,
    pub(crate) asks: Asks,
    /// The same for hosts, and of the other lists.
    pub(crate) changes: Changes,
    /// Lists whose change the observer knows of and that nobody listed since.
    told: AtomicU8,
    pub(crate) sinks: Sinks,
    questions: Mutex<Questions>,
}

/// How messages get to the peer.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    /// Frames, written by whoever comes first.
    Stdio(Arc<Outbox>),
    /// A POST for each message.
    Http(Arc<HttpLink>),
}

/// A request on its way: queued for a pipe, or a body to be posted.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) id: i64,
    pub(crate) method: &'a str,
    /// What the request is about, if that has a name.
    pub(crate) name: Option<&'a str>,
    /// Arguments that are headers, too.
    pub(crate) mirrored: Mirrored,
    body: Option<Bytes>,
}

/// What becomes of the server's own requests: a modern peer gets no responses, so while the era is
/// unknown they are kept, up to a bound.
#[derive(Debug)]
enum Questions {
    Kept(Vec<KeptQuestion>),
    Answered,
    Rejected,
}

#[derive(Debug)]
struct KeptQuestion {
    id: RequestId,
    method: String,
    params: Option<Fragment>,
}

/// From this many requests on, frames are gathered before they are written.
const CROWD: usize = 8;
const KEPT_QUESTIONS: usize = 64;
/// Parameters above this are not kept.
const KEPT_BYTES: usize = 64 * 1024;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum RequestFault {
    Peer(PeerError),
    Fault(Fault),
    Closed(Arc<Closed>),
    /// No answer within the limit.
    Silence,
}

impl Peer {
    pub(crate) fn new(name: ServerName, stdin: WriteHalf, observer: Arc<dyn Observer>) -> Self {
        Self::over(name, Link::Stdio(Arc::new(Outbox::new(stdin))), observer)
    }

    pub(crate) fn over(name: ServerName, link: Link, observer: Arc<dyn Observer>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            pending: Pending::default(),
            link,
            own_secrets: Secrets::default(),
            observer,
            warnings: Warnings::default(),
            list_changes: AtomicU64::new(0),
            asks: Asks::new(None),
            changes: Changes::default(),
            told: AtomicU8::new(0),
            sinks: Sinks::default(),
            questions: Mutex::new(Questions::Kept(Vec::new())),
        }
    }

    /// With the credentials that the server's process was given.
    pub(crate) fn knowing(self, own_secrets: Secrets) -> Self {
        Self { own_secrets, ..self }
    }

    /// What every request declares because of its credentials.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        match &self.link {
            Link::Http(link) => link.extension(),
            Link::Stdio(_) => None,
        }
    }

    /// With somebody to answer what the server asks.
    pub(crate) fn answering(mut self, handler: Option<Arc<dyn InputHandler>>) -> Self {
        self.asks = Asks::new(handler);
        self
    }

    /// Registers and queues a request; [`answer`](Self::answer) sends it.
    pub(crate) fn enqueue<'a>(
        &self,
        method: &'a str,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<(Outgoing<'a>, Answer), RequestFault> {
        let (id, answer) = self.pending.register(None).map_err(RequestFault::Closed)?;
        match self.queue(id, method, params) {
            Ok(outgoing) => Ok((outgoing, answer)),
            Err(fault) => {
                self.pending.forget(id);
                Err(RequestFault::Fault(fault))
            }
        }
    }

    /// Queues a request that is registered.
    pub(crate) fn queue<'a>(
        &self,
        id: i64,
        method: &'a str,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<Outgoing<'a>, Fault> {
        let write = |out: &mut Vec<u8>| {
            encode::write_request_with(out, &RequestId::Number(id), method, params);
        };
        let body = match &self.link {
            Link::Stdio(outbox) => {
                let queued = outbox.push(write);
                queued.map_err(|Full { waiting }| Fault::NotReading { waiting })?;
                None
            }
            Link::Http(_) => Some(body(write)),
        };
        Ok(Outgoing { id, method, name: None, mirrored: Mirrored::new(), body })
    }

    /// Sends what was queued and waits for the answer.
    pub(crate) async fn answer(
        &self,
        outgoing: Outgoing<'_>,
        answer: Answer,
    ) -> Result<Reply, RequestFault> {
        if let (Link::Http(http), Some(question)) = (&self.link, outgoing.into_question()) {
            return http.exchange(self, question, answer).await;
        }
        self.send()?;
        answer.await.map_err(|_| RequestFault::Fault(Fault::ShutDown))
    }

    /// Sends a request and waits for its result, at most `limit`.
    pub(crate) async fn request(
        &self,
        method: &str,
        limit: Duration,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<Box<RawValue>, RequestFault> {
        let (outgoing, answer) = self.enqueue(method, params)?;
        let _forget = Forget { peer: self, id: outgoing.id };
        let exchange = async { self.answer(outgoing, answer).await?.into_result() };
        timeout(limit, exchange).await.unwrap_or(Err(RequestFault::Silence))
    }

    /// Sends a notification and waits until it is written or taken.
    pub(crate) async fn notify(&self, method: &str) -> Result<(), RequestFault> {
        let write = |out: &mut Vec<u8>| encode::write_notification(out, method, None);
        match &self.link {
            Link::Http(http) => http.notify(method, body(write)).await,
            Link::Stdio(outbox) => match outbox.push(write) {
                Ok(()) => self.flush().await,
                Err(Full { waiting }) => Err(RequestFault::Fault(Fault::NotReading { waiting })),
            },
        }
    }

    /// Queues a notification that nobody waits for; a modern server behind a URL gets none.
    pub(crate) fn queue_notification(&self, method: &str, params: &Fragment) -> bool {
        let write = |out: &mut Vec<u8>| encode::write_notification(out, method, Some(params));
        match &self.link {
            Link::Stdio(outbox) => outbox.push(write).is_ok(),
            Link::Http(http) => http.post_later(body(write)),
        }
    }

    /// Writes what is queued, or has it written soon: at once when the pipe takes it, and together with
    /// what others are about to queue when many wait. A broken pipe is not an answer: the process's end
    /// will tell more.
    pub(crate) fn send(&self) -> Result<(), RequestFault> {
        let Link::Stdio(outbox) = &self.link else { return Ok(()) };
        if self.pending.len() >= CROWD {
            outbox.schedule_flush();
            return Ok(());
        }
        match outbox.flush_at_once() {
            Ok(true) => Ok(()),
            Ok(false) => {
                outbox.schedule_flush();
                Ok(())
            }
            Err(_) if self.pending.closed().is_none() => Ok(()),
            Err(error) => Err(self.closed_or(Fault::Pipe(error))),
        }
    }

    /// As [`send`](Self::send), and waits for it.
    pub(crate) async fn flush(&self) -> Result<(), RequestFault> {
        let Link::Stdio(outbox) = &self.link else { return Ok(()) };
        match outbox.flush().await {
            Err(_) if self.pending.closed().is_none() => Ok(()),
            Err(error) => Err(self.closed_or(Fault::Pipe(error))),
            Ok(()) => Ok(()),
        }
    }

    /// Lets a task of its own write what is queued.
    pub(crate) fn schedule_flush(&self) {
        if let Link::Stdio(outbox) = &self.link {
            outbox.schedule_flush();
        }
    }

    /// Closes the server's stdin.
    pub(crate) async fn close_input(&self) {
        if let Link::Stdio(outbox) = &self.link {
            outbox.close().await;
        }
    }

    /// The revision is known: over HTTP it goes into each request's head.
    pub(crate) fn settle_protocol(&self, era: &Era) {
        if let Link::Http(http) = &self.link {
            http.settle(match era {
                Era::Modern => Protocol::Modern,
                Era::Legacy { version } => Protocol::Legacy(version.clone()),
            });
        }
    }

    /// A peer's text without our own credentials, which a server may echo.
    pub(crate) fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.link {
            Link::Stdio(_) => self.own_secrets.scrub(text),
            Link::Http(http) => http.secrets().scrub(text),
        }
    }

    /// The same of a text that may end in the middle of one.
    pub(crate) fn scrub_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.link {
            Link::Stdio(_) => self.own_secrets.scrub_cut(text),
            Link::Http(http) => http.secrets().scrub_cut(text),
        }
    }

    /// [`scrub`](Self::scrub) for JSON; `None` when there is nothing to take out.
    fn scrub_json(&self, raw: &RawValue) -> Option<Fragment> {
        match &self.link {
            Link::Stdio(_) => self.own_secrets.scrub_json(raw),
            Link::Http(http) => http.secrets().scrub_json(raw),
        }
    }

    /// Fails every waiting call, and every later one.
    pub(crate) fn close(&self, closed: Closed) {
        self.pending.close(closed);
        self.asks.close();
    }

    pub(crate) fn warn_once(&self, kind: warnings::Kind, text: impl FnOnce() -> String) {
        if self.warnings.is_first(kind) {
            let text = text();
            let text = self.scrub(&text);
            tell(&*self.observer, &Event::Warning { server: &self.name, text: &text });
        }
    }

    /// The era is known: questions that came before are answered or rejected now.
    pub(crate) fn settle_era(&self, modern: bool) {
        let settled = if modern { Questions::Rejected } else { Questions::Answered };
        let before = std::mem::replace(&mut *self.lock_questions(), settled);
        if let Questions::Kept(kept) = before {
            for KeptQuestion { id, method, params } in kept {
                self.receive_request(None, &id, &method, params.as_ref().map(Fragment::as_raw));
            }
        }
    }

    fn lock_questions(&self) -> MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed_or(&self, fault: Fault) -> RequestFault {
        self.pending.closed().map_or(RequestFault::Fault(fault), RequestFault::Closed)
    }
}

impl<'a> Outgoing<'a> {
    /// What is to be posted, if it is not queued for a pipe.
    pub(crate) fn into_question(self) -> Option<Question<'a>> {
        let Self { id, method, name, mirrored, body } = self;
        Some(Question { id, method, name, mirrored, body: body? })
    }
}

impl Link {
    /// Queues an answer to the server and lets a task of its own send it.
    pub(crate) fn queue_answer(&self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        match self {
            Self::Stdio(outbox) => {
                let queued = outbox.push_answer(write).is_ok();
                if queued {
                    outbox.schedule_flush();
                }
                queued
            }
            Self::Http(http) => http.post_later(body(write)),
        }
    }
}

/// One message without the line end that pipes want.
fn body(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(256);
    write(&mut out);
    out.truncate(out.trim_ascii_end().len());
    Bytes::from(out)
}

/// Stops waiting when the request's future ends, however it ends.
struct Forget<'a> {
    peer: &'a Peer,
    id: i64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.peer.pending.forget(self.id);
    }
}

impl Reply {
    pub(crate) fn into_result(self) -> Result<Box<RawValue>, RequestFault> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(error) => Err(RequestFault::Peer(error)),
            Self::TooLong(fault) => Err(RequestFault::Fault(Fault::TooLong(fault))),
            Self::Closed(closed) => Err(RequestFault::Closed(closed)),
        }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("name", &self.name).finish_non_exhaustive()
    }
}

pub(crate) use warnings::Kind as WarningKind;
