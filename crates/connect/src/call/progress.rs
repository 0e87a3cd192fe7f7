//! Progress of one call: to the observer, and into its deadline.
//!
//! A server may send as much of it as it likes: beyond 20 updates a second the observer gets the
//! newest only, at the latest when the call ends.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plenipo_wire::views::Progress;
use tokio::time::Instant;

use crate::observer::call_back;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProgressUpdate {
    /// Grows with every update; no unit.
    pub progress: f64,
    /// What `progress` grows to, when the server knows.
    pub total: Option<f64>,
    /// For people; untrusted text.
    pub message: Option<String>,
}

impl ProgressUpdate {
    /// Without a total and a message.
    #[must_use]
    pub fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }
}

/// Is told about progress, on the task that reads from the server: return quickly, never block. A panic
/// in it is caught.
pub type ProgressObserver = Arc<dyn Fn(&ProgressUpdate) + Send + Sync>;

/// Where the reader puts progress of one request.
pub(crate) struct ProgressSink {
    observer: ProgressObserver,
    last: Mutex<Last>,
}

struct Last {
    progress: f64,
    at: Option<Instant>,
    /// Since when updates are counted, and how many were passed on.
    window: Option<(Instant, u32)>,
    /// The newest one that was not.
    held: Option<ProgressUpdate>,
}

const WINDOW: Duration = Duration::from_secs(1);
const MOST_UPDATES: u32 = 20;

impl ProgressSink {
    pub(crate) fn new(observer: ProgressObserver) -> Self {
        Self { observer, last: Mutex::new(Last::new()) }
    }

    /// Progress has to grow; what does not is not passed on and extends nothing.
    pub(crate) fn take(&self, progress: &Progress<'_>) {
        let update = ProgressUpdate {
            progress: progress.progress,
            total: progress.total,
            message: progress.message.clone().map(Into::into),
        };
        let passed = self.lock().take(update, Instant::now());
        if let Some(update) = passed {
            call_back(|| (self.observer)(&update));
        }
    }

    /// The call ended: what was held back is the last news.
    pub(crate) fn finish(&self) {
        let held = self.lock().held.take();
        if let Some(update) = held {
            call_back(|| (self.observer)(&update));
        }
    }

    /// When progress last grew.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.lock().at
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    fn new() -> Self {
        Self { progress: f64::NEG_INFINITY, at: None, window: None, held: None }
    }

    /// Notes an update; gives back what the observer gets now.
    fn take(&mut self, update: ProgressUpdate, now: Instant) -> Option<ProgressUpdate> {
        if update.progress.is_nan() || update.progress <= self.progress {
            return None;
        }
        (self.progress, self.at) = (update.progress, Some(now));
        let (since, passed) = match self.window {
            Some((since, passed)) if now.duration_since(since) < WINDOW => (since, passed),
            _ => (now, 0),
        };
        if passed >= MOST_UPDATES {
            self.held = Some(update);
            return None;
        }
        self.window = Some((since, passed.saturating_add(1)));
        self.held = None;
        Some(update)
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressSink").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(progress: f64) -> ProgressUpdate {
        ProgressUpdate::new(progress)
    }

    #[test]
    fn a_flood_is_thinned_and_its_last_word_kept() {
        let mut last = Last::new();
        let start = Instant::now();
        let passed = (0..10_000_u32).filter_map(|n| last.take(update(n.into()), start)).count();
        assert_eq!(passed, 20);
        assert_eq!(last.held, Some(update(9_999.0)));
        let later = start + WINDOW;
        assert_eq!(last.take(update(10_000.0), later), Some(update(10_000.0)));
        assert_eq!(last.held, None);
        assert_eq!(last.at, Some(later), "every one of them extends the deadline");
    }

    #[test]
    fn progress_has_to_grow() {
        let mut last = Last::new();
        let now = Instant::now();
        assert!(last.take(update(1.0), now).is_some());
        for stuck in [1.0, 0.5, f64::NAN] {
            assert_eq!(last.take(update(stuck), now), None);
        }
    }
}
