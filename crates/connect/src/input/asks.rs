//! Requests that a legacy server sends while it works: each is answered by a task of its own, so
//! that the reader never waits.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use plenipo_wire::protocol::error_code;
use plenipo_wire::{Fragment, RequestId, encode};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::respond::{Asker, Refused, cancelled};
use super::{InputHandler, InputOffer, InputRequest, PersonClock};
use crate::peer::Link;

/// Questions that are open on a connection at the same time.
const OPEN: usize = 32;
/// Ends of URL elicitations that are remembered.
const COMPLETED: usize = 64;

/// The questions of one server.
pub(crate) struct Asks {
    handler: Option<Arc<dyn InputHandler>>,
    clock: Arc<PersonClock>,
    open: Mutex<Open>,
    completed: watch::Sender<VecDeque<String>>,
}

#[derive(Debug, Default)]
struct Open {
    tasks: JoinSet<()>,
    /// Dropping or using a sender withdraws its question.
    withdrawals: Vec<(RequestId, oneshot::Sender<()>)>,
}

/// Tells when the server says that what it wanted done behind a URL is done.
#[derive(Debug, Clone)]
pub struct Completion {
    completed: watch::Receiver<VecDeque<String>>,
    ids: Vec<String>,
}

impl Completion {
    /// Waits for the server's notice, for ever if it sends none.
    pub async fn wait(mut self) {
        if self.ids.is_empty() {
            return std::future::pending().await;
        }
        let is_done = |seen: &VecDeque<String>| self.ids.iter().all(|id| seen.contains(id));
        if self.completed.wait_for(is_done).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Asks {
    pub(crate) fn new(handler: Option<Arc<dyn InputHandler>>) -> Self {
        Self {
            handler,
            clock: Arc::default(),
            open: Mutex::default(),
            completed: watch::Sender::new(VecDeque::new()),
        }
    }

    /// Of the whole connection.
    pub(crate) fn handler(&self) -> Option<&Arc<dyn InputHandler>> {
        self.handler.as_ref()
    }

    pub(crate) fn offers(&self) -> InputOffer {
        self.handler.as_ref().map(|handler| handler.offers()).unwrap_or_default()
    }

    pub(crate) fn clock(&self) -> &PersonClock {
        &self.clock
    }

    /// Lets a task answer question `id`, until `ended` says that the call it came with is over.
    pub(crate) fn answer(
        &self,
        link: &Link,
        id: &RequestId,
        asker: Asker,
        request: InputRequest,
        ended: Option<watch::Receiver<()>>,
    ) -> Result<(), Refused> {
        let busy = || Refused {
            code: error_code::INTERNAL_ERROR,
            reason: "too many questions are open".to_owned(),
            whose: super::respond::Whose::Server,
        };
        let runtime = Handle::try_current().map_err(|_| busy())?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while open.tasks.try_join_next().is_some() {}
        open.withdrawals.retain(|(_, withdrawal)| !withdrawal.is_closed());
        if open.tasks.len() >= OPEN {
            return Err(busy());
        }
        let (withdrawal, withdrawn) = oneshot::channel();
        open.withdrawals.push((id.clone(), withdrawal));
        let (link, clock, id) = (link.clone(), Arc::clone(&self.clock), id.clone());
        let task = async move {
            let asking = clock.ask();
            let answer = tokio::select! {
                biased;
                _ = withdrawn => None,
                () = end(ended) => Some(over(&request)),
                answer = asker.respond_whatever(&request) => Some(answer),
            };
            drop(asking);
            if let Some(answer) = answer {
                link.queue_answer(|out| write(out, &id, answer));
            }
        };
        open.tasks.spawn_on(task, &runtime);
        Ok(())
    }

    /// The server no longer wants the answer to `id`.
    pub(crate) fn withdraw(&self, id: &RequestId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.withdrawals.retain(|(other, _)| other != id);
    }

    /// Nobody is left to be answered.
    pub(crate) fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).tasks.abort_all();
    }

    /// `notifications/elicitation/complete`
    pub(crate) fn complete(&self, elicitation: &str) {
        self.completed.send_modify(|seen| {
            seen.push_back(elicitation.chars().take(1024).collect());
            if seen.len() > COMPLETED {
                seen.pop_front();
            }
        });
    }

    /// The end of the elicitations `ids`.
    pub(crate) fn completion(&self, ids: Vec<String>) -> Completion {
        Completion { completed: self.completed.subscribe(), ids }
    }
}

/// Resolves when the sender is gone: the call's entry was taken away.
async fn end(ended: Option<watch::Receiver<()>>) {
    match ended {
        Some(mut ended) => while ended.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

fn over(request: &InputRequest) -> Result<Fragment, Refused> {
    match request.kind {
        super::InputKind::Form { .. } | super::InputKind::Url { .. } => Ok(cancelled()),
        _ => Err(Refused {
            code: error_code::INTERNAL_ERROR,
            reason: "the call is over".to_owned(),
            whose: super::respond::Whose::Person,
        }),
    }
}

fn write(out: &mut Vec<u8>, id: &RequestId, answer: Result<Fragment, Refused>) {
    match answer {
        Ok(result) => encode::write_success(out, id, &result),
        Err(refused) => refused.write(out, id),
    }
}

impl Refused {
    /// The error answer to a request.
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: &RequestId) {
        let text = match self.code {
            error_code::METHOD_NOT_FOUND => "Method not found",
            _ => self.reason.as_str(),
        };
        encode::write_failure(out, Some(id), self.code, text, None);
    }
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asks").field("offers", &self.offers()).finish_non_exhaustive()
    }
}
