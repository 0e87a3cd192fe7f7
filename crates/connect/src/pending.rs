//! Calls that wait for their answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plenipo_wire::{LineTooLong, RawValue};
use tokio::sync::{oneshot, watch};

use crate::call::progress::ProgressSink;
use crate::error::{Fault, PeerError};
use crate::input::respond::Asker;

/// Why a connection ended, with what the server last wrote to stderr.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) fault: Fault,
    pub(crate) stderr_tail: Vec<String>,
}

/// What a waiting call is told.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Box<RawValue>),
    Error(PeerError),
    TooLong(LineTooLong),
    Closed(Arc<Closed>),
}

/// Request ids and who waits for them. Ids are never reused on a connection.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Table {
    next: i64,
    waiting: HashMap<i64, Waiting>,
    closed: Option<Arc<Closed>>,
}

#[derive(Debug)]
struct Waiting {
    sender: oneshot::Sender<Reply>,
    progress: Option<Arc<ProgressSink>>,
    attended: Option<Attended>,
}

/// A call that has somebody to answer the server's questions.
#[derive(Debug)]
struct Attended {
    asker: Asker,
    /// Goes with the entry, which tells those who answer that the call is over.
    alive: Option<watch::Sender<()>>,
}

impl Pending {
    /// A fresh id and where its answer will come.
    pub(crate) fn register(
        &self,
        progress: Option<Arc<ProgressSink>>,
    ) -> Result<(i64, oneshot::Receiver<Reply>), Arc<Closed>> {
        let mut table = self.lock();
        if let Some(closed) = &table.closed {
            return Err(Arc::clone(closed));
        }
        let id = table.next;
        table.next = id.saturating_add(1);
        let (sender, receiver) = oneshot::channel();
        table.waiting.insert(id, Waiting { sender, progress, attended: None });
        Ok((id, receiver))
    }

    /// Questions that come while `id` waits may be put to `asker`.
    pub(crate) fn attend(&self, id: i64, asker: Asker) {
        if let Some(waiting) = self.lock().waiting.get_mut(&id) {
            waiting.attended = Some(Attended { asker, alive: None });
        }
    }

    /// Who answers a question that came with the answer to `id`, or with no answer and there is only
    /// one call that it can belong to; and what ends when that call does.
    pub(crate) fn asker(&self, id: Option<i64>) -> Option<(Asker, watch::Receiver<()>)> {
        let mut table = self.lock();
        let attended = match id.filter(|id| table.waiting.contains_key(id)) {
            Some(id) => table.waiting.get_mut(&id)?.attended.as_mut()?,
            None => {
                let mut all = table.waiting.values_mut().filter_map(|w| w.attended.as_mut());
                let first = all.next()?;
                if all.next().is_some() {
                    return None;
                }
                first
            }
        };
        let alive = attended.alive.get_or_insert_with(|| watch::Sender::new(()));
        Some((attended.asker.clone(), alive.subscribe()))
    }

    /// Hands an answer over; false when nobody waits for it.
    pub(crate) fn complete(&self, id: i64, reply: Reply) -> bool {
        let Some(waiting) = self.lock().waiting.remove(&id) else { return false };
        // A caller that went away meanwhile no longer wants it.
        waiting.sender.send(reply).ok();
        true
    }

    /// Nobody waits any longer; true when somebody did.
    pub(crate) fn forget(&self, id: i64) -> bool {
        self.lock().waiting.remove(&id).is_some()
    }

    /// Whether `id` was given out on this connection.
    pub(crate) fn was_issued(&self, id: i64) -> bool {
        (0..self.lock().next).contains(&id)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    pub(crate) fn is_waiting(&self, id: i64) -> bool {
        self.lock().waiting.contains_key(&id)
    }

    /// The only waiting id, when there is exactly one.
    pub(crate) fn only_one(&self) -> Option<i64> {
        let table = self.lock();
        let mut ids = table.waiting.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    pub(crate) fn progress(&self, id: i64) -> Option<Arc<ProgressSink>> {
        self.lock().waiting.get(&id).and_then(|waiting| waiting.progress.clone())
    }

    /// Fails everybody who waits, and everybody after; the first reason stays.
    pub(crate) fn close(&self, closed: Closed) {
        let closed = Arc::new(closed);
        let waiting = {
            let mut table = self.lock();
            if table.closed.is_some() {
                return;
            }
            table.closed = Some(Arc::clone(&closed));
            std::mem::take(&mut table.waiting)
        };
        for waiting in waiting.into_values() {
            waiting.sender.send(Reply::Closed(Arc::clone(&closed))).ok();
        }
        self.ended.send_replace(true);
    }

    /// Waits until the connection has ended.
    pub(crate) async fn wait_for_end(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as this.
        ended.wait_for(|ended| *ended).await.ok();
    }

    pub(crate) fn closed(&self) -> Option<Arc<Closed>> {
        self.lock().closed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> Closed {
        Closed { fault: Fault::OutputClosed, stderr_tail: Vec::new() }
    }

    #[tokio::test]
    async fn the_end_reaches_everybody_and_ids_are_not_reused() {
        let pending = Pending::default();
        let (first, _answer) = pending.register(None).unwrap();
        let (second, told) = pending.register(None).unwrap();
        assert!(pending.forget(first) && !pending.forget(first));
        assert_ne!(first, second);
        assert_eq!(pending.only_one(), Some(second));
        assert!(pending.was_issued(first) && !pending.is_waiting(first));
        assert!(!pending.complete(first, Reply::Result(RawValue::NULL.to_owned())));
        pending.close(closed());
        pending.close(Closed { fault: Fault::ShutDown, stderr_tail: Vec::new() });
        let Reply::Closed(reason) = told.await.unwrap() else { panic!("another reply") };
        assert!(matches!(reason.fault, Fault::OutputClosed), "the first reason stays");
        assert!(pending.register(None).is_err());
    }
}
