//! One sleeping task for all requests of a connection.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::{Shared, Slot};

/// When the next request is due.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    at: Option<Instant>,
    /// A task sleeps to that time.
    is_kept: bool,
    is_over: bool,
}

impl Alarm {
    /// Whether the task has to hear of it.
    pub(super) fn set(&mut self, due: Instant) -> bool {
        let is_earlier = self.at.is_none_or(|at| due < at);
        if is_earlier {
            self.at = Some(due);
        }
        is_earlier || !self.is_kept
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

/// Tells the task of an earlier time; starts it if there is none.
pub(super) fn wake(shared: &Arc<Shared>) {
    let is_kept = std::mem::replace(&mut shared.lock().alarm.is_kept, true);
    if is_kept {
        return shared.alarm_set.notify_one();
    }
    let kept = Kept(Arc::clone(shared));
    // Outside of a runtime nothing can be waited for either.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(keep(kept));
    }
}

/// Says so when the task goes away with its runtime.
struct Kept(Arc<Shared>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.lock().alarm.is_kept = false;
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
