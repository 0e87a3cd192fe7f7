//! One sleeping task for all requests of a connection that are made on one runtime. Requests of another one have timers
//! of their own: who keeps the alarm may stand still while they wait.

use std::sync::Arc;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, sleep_until};

use super::{Shared, Slot};

/// When the next request is due.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    at: Option<Instant>,
    /// Where a task sleeps to that time.
    kept_on: Option<Id>,
    is_over: bool,
}

impl Alarm {
    pub(super) fn is_kept(&self) -> bool {
        self.kept_on.is_some()
    }

    /// Sets it for a request of `runtime`.
    pub(super) fn set(&mut self, due: Instant, runtime: Option<Id>) -> Set {
        match self.kept_on {
            // Outside of a runtime nothing can be waited for.
            _ if runtime.is_none() => Set::Done,
            None => {
                (self.at, self.kept_on) = (Some(due), runtime);
                Set::Unkept
            }
            Some(_) if self.kept_on != runtime => Set::Elsewhere,
            Some(_) if self.at.is_some_and(|at| at <= due) => Set::Done,
            Some(_) => {
                self.at = Some(due);
                Set::Earlier
            }
        }
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

/// What setting the alarm comes to.
pub(super) enum Set {
    Done,
    /// The task that keeps it has to hear of an earlier time.
    Earlier,
    /// A task has to keep it from now on.
    Unkept,
    /// It is kept by another runtime.
    Elsewhere,
}

/// The runtime that the caller is on.
pub(super) fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// Lets a task keep the alarm.
pub(super) fn start(shared: &Arc<Shared>) {
    let kept = Kept(Arc::clone(shared));
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(keep(kept));
    }
}

/// Says so when the task goes away with its runtime: who still waits has to see to their time alone.
struct Kept(Arc<Shared>);

impl Drop for Kept {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        (table.alarm.at, table.alarm.kept_on) = (None, None);
        let mut wakers = Vec::new();
        for waiting in table.waiting.values_mut() {
            if let (Some(_), Slot::Open(waker)) = (waiting.due, &mut waiting.slot) {
                wakers.extend(waker.take());
            }
        }
        drop(table);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

async fn keep(kept: Kept) {
    let shared = &*kept.0;
    loop {
        let at = {
            let table = shared.lock();
            if table.alarm.is_over || table.closed.is_some() {
                return;
            }
            table.alarm.at
        };
        let Some(at) = at else {
            shared.alarm_set.notified().await;
            continue;
        };
        tokio::select! {
            biased;
            () = shared.alarm_set.notified() => {}
            () = sleep_until(at) => shared.ring(Instant::now()),
        }
    }
}

impl Shared {
    /// Wakes everybody who is due, and sets the alarm to the next.
    fn ring(&self, now: Instant) {
        let mut wakers = Vec::new();
        let mut next: Option<Instant> = None;
        let mut table = self.lock();
        for waiting in table.waiting.values_mut() {
            let (Some(due), Slot::Open(waker)) = (waiting.due, &mut waiting.slot) else { continue };
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            (waiting.due, waiting.is_due) = (None, true);
            wakers.extend(waker.take());
        }
        table.alarm.at = next;
        drop(table);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}
