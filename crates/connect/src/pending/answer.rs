//! Where the answer to a request is waited for.

use std::collections::hash_map::Entry;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

use super::{Reply, Shared, Slot, alarm};

/// The answer to one request. Dropping it does not tell the server; see
/// [`InFlight`](crate::in_flight::InFlight).
#[derive(Debug)]
pub(crate) struct Answer {
    shared: Arc<Shared>,
    id: i64,
    is_over: bool,
    /// Where nobody keeps the alarm for it.
    timer: Option<Pin<Box<Sleep>>>,
}

/// What waiting came to.
#[derive(Debug)]
pub(crate) enum Landed {
    Answered(Reply),
    /// No answer at the time the request was registered for; told once.
    Due,
    /// The request was forgotten: no answer will come.
    Forgotten,
}

impl Answer {
    pub(super) fn new(shared: Arc<Shared>, id: i64) -> Self {
        Self { shared, id, is_over: false, timer: None }
    }

    /// Sees to its time alone.
    pub(super) fn watch(&mut self, due: Instant) {
        self.timer = Some(Box::pin(sleep_until(due)));
    }

    /// Waits for the answer or for the time it is due.
    pub(crate) async fn landed(&mut self) -> Landed {
        poll_fn(|context| self.poll_landed(context)).await
    }

    /// The answer, if it came.
    pub(crate) fn try_take(&mut self) -> Option<Reply> {
        let mut table = self.shared.lock();
        let is_full = |slot: &Slot| matches!(slot, Slot::Full(_));
        if !table.waiting.get(&self.id).is_some_and(|waiting| is_full(&waiting.slot)) {
            return None;
        }
        self.is_over = true;
        match table.waiting.remove(&self.id)?.slot {
            Slot::Full(reply) => Some(reply),
            _ => None,
        }
    }

    /// What there is, and until [`landed`](Self::landed) or the future is polled again nobody is woken for it: for who is
    /// about to bring the answer itself.
    pub(crate) fn look(&mut self) -> Option<Result<Reply, Gone>> {
        match self.shared.lock().waiting.get_mut(&self.id).map(|waiting| &mut waiting.slot) {
            Some(Slot::Open(waker)) => {
                *waker = None;
                return None;
            }
            Some(_) => {}
            None => return Some(Err(Gone)),
        }
        Some(self.try_take().ok_or(Gone))
    }

    fn poll_landed(&mut self, context: &mut Context<'_>) -> Poll<Landed> {
        loop {
            let is_ripe =
                self.timer.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready());
            if is_ripe {
                self.timer = None;
            }
            let unwatched = match self.poll_slot(is_ripe, context) {
                Ok(landed) => return Poll::Ready(landed),
                Err(unwatched) => unwatched.filter(|_| alarm::here().is_some()),
            };
            match unwatched {
                None => return Poll::Pending,
                // Who kept the alarm is gone with their runtime.
                Some(due) => self.watch(due),
            }
        }
    }

    /// Where there is nothing yet: when the time is that nobody sees to.
    fn poll_slot(
        &mut self,
        is_ripe: bool,
        context: &mut Context<'_>,
    ) -> Result<Landed, Option<Instant>> {
        let mut table = self.shared.lock();
        let is_watched = self.timer.is_some() || table.alarm.is_kept();
        let Entry::Occupied(mut entry) = table.waiting.entry(self.id) else {
            self.is_over = true;
            return Ok(Landed::Forgotten);
        };
        let waiting = entry.get_mut();
        if is_ripe && waiting.due.take().is_some() {
            waiting.is_due = true;
        }
        let unwatched = waiting.due.filter(|_| !is_watched);
        match &mut waiting.slot {
            Slot::Full(_) => {}
            Slot::Open(_) if std::mem::take(&mut waiting.is_due) => return Ok(Landed::Due),
            Slot::Open(Some(waker)) if waker.will_wake(context.waker()) => return Err(unwatched),
            slot => {
                *slot = Slot::Open(Some(context.waker().clone()));
                return Err(unwatched);
            }
        }
        self.is_over = true;
        let taken = entry.remove();
        drop(table);
        Ok(match taken.slot {
            Slot::Full(reply) => Landed::Answered(reply),
            _ => Landed::Forgotten,
        })
    }
}

impl Future for Answer {
    type Output = Result<Reply, Gone>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.poll_landed(context) {
                Poll::Ready(Landed::Answered(reply)) => return Poll::Ready(Ok(reply)),
                Poll::Ready(Landed::Forgotten) => return Poll::Ready(Err(Gone)),
                Poll::Ready(Landed::Due) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// No answer will come.
#[derive(Debug)]
pub(crate) struct Gone;

impl Drop for Answer {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut table = self.shared.lock();
        let Some(waiting) = table.waiting.get_mut(&self.id) else { return };
        let _dropped_later = match waiting.slot {
            Slot::Full(_) => table.waiting.remove(&self.id),
            _ => {
                waiting.slot = Slot::Abandoned;
                None
            }
        };
        drop(table);
    }
}
