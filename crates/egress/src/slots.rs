//! How many connections there are, and whether what the command sent is on its way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections, counted.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    uploading: usize,
}

/// One connection's place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    uploading: AtomicBool,
}

impl Slots {
    pub(crate) fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, once there is one.
    pub(crate) fn take(self: &Arc<Self>) -> Slot {
        let mut state = self.state();
        while state.open >= self.most {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.open += 1;
        state.uploading += 1;
        Slot { slots: Arc::clone(self), uploading: AtomicBool::new(true) }
    }

    /// Waits until nothing is left to send on, or for so long.
    pub(crate) fn drained(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let mut state = self.state();
        while state.uploading > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Slot {
    /// All that the client will send has been passed on.
    pub(crate) fn uploaded(&self) {
        if self.uploading.swap(false, Ordering::Relaxed) {
            self.slots.state().uploading -= 1;
            self.slots.changed.notify_all();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.uploaded();
        self.slots.state().open -= 1;
        self.slots.changed.notify_all();
    }
}
