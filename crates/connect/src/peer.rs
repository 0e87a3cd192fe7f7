//! The server on the other end: its messages in, requests out.

mod receive;
mod warnings;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plenipo_wire::encode::{self, ObjectWriter};
use plenipo_wire::{RawValue, RequestId};
use tokio::sync::oneshot;
use tokio::time::timeout;

pub(crate) use receive::read;
use warnings::Warnings;

use crate::error::{Fault, PeerError};
use crate::observer::{Event, Observer};
use crate::outbox::{Full, Outbox, WriteHalf};
use crate::pending::{Closed, Pending, Reply};
use crate::server_name::ServerName;

/// One peer, shared by the reading task and the callers.
pub(crate) struct Peer {
    pub(crate) name: ServerName,
    pub(crate) pending: Pending,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) warnings: Warnings,
    /// Counts `list_changed`; a catalog listed at an older count is stale.
    pub(crate) list_changes: AtomicU64,
    questions: Mutex<Questions>,
}

/// What becomes of the server's own requests: a modern peer gets no responses, so while the era is
/// unknown they are kept, up to a bound.
#[derive(Debug)]
enum Questions {
    Kept(Vec<(RequestId, String)>),
    Answered,
    Rejected,
}

const KEPT_QUESTIONS: usize = 64;

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
        Self {
            name,
            pending: Pending::default(),
            outbox: Arc::new(Outbox::new(stdin)),
            observer,
            warnings: Warnings::default(),
            list_changes: AtomicU64::new(0),
            questions: Mutex::new(Questions::Kept(Vec::new())),
        }
    }

    /// Registers and queues a request; [`Outbox::flush`] sends it.
    pub(crate) fn enqueue(
        &self,
        method: &str,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<(i64, oneshot::Receiver<Reply>), RequestFault> {
        let (id, receiver) = self.pending.register(None).map_err(RequestFault::Closed)?;
        let queued = self.outbox.push(|out| {
            encode::write_request_with(out, &RequestId::Number(id), method, params);
        });
        if let Err(Full { waiting }) = queued {
            self.pending.forget(id);
            return Err(RequestFault::Fault(Fault::NotReading { waiting }));
        }
        Ok((id, receiver))
    }

    /// Sends a request and waits for its result, at most `limit`.
    pub(crate) async fn request(
        &self,
        method: &str,
        limit: Duration,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Result<Box<RawValue>, RequestFault> {
        let (id, receiver) = self.enqueue(method, params)?;
        let _forget = Forget { peer: self, id };
        let exchange = async {
            self.flush().await?;
            receiver.await.map_err(|_| RequestFault::Fault(Fault::ShutDown))?.into_result()
        };
        timeout(limit, exchange).await.unwrap_or(Err(RequestFault::Silence))
    }

    /// Writes what is queued. A broken pipe is not an answer: the process's end will tell more.
    pub(crate) async fn flush(&self) -> Result<(), RequestFault> {
        match self.outbox.flush().await {
            Err(_) if self.pending.closed().is_none() => Ok(()),
            Err(error) => Err(self.closed_or(Fault::Pipe(error))),
            Ok(()) => Ok(()),
        }
    }

    /// Closes the server's stdin.
    pub(crate) async fn close_input(&self) {
        self.outbox.close().await;
    }

    /// Fails every waiting call, and every later one.
    pub(crate) fn close(&self, closed: Closed) {
        self.pending.close(closed);
    }

    pub(crate) fn warn_once(&self, kind: warnings::Kind, text: impl FnOnce() -> String) {
        if self.warnings.is_first(kind) {
            self.observer.event(&Event::Warning { server: &self.name, text: &text() });
        }
    }

    /// The era is known: questions that came before are answered or rejected now.
    pub(crate) fn settle_era(&self, modern: bool) {
        let settled = if modern { Questions::Rejected } else { Questions::Answered };
        let before = std::mem::replace(&mut *self.lock_questions(), settled);
        if let Questions::Kept(kept) = before {
            for (id, method) in kept {
                self.receive_request(&id, &method);
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
