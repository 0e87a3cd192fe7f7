//! Progress of one call: to the observer, and into its deadline.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use plenipo_wire::views::Progress;
use tokio::time::Instant;

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

/// Is told about progress, on the task that reads from the server: return quickly, never block.
pub type ProgressObserver = Arc<dyn Fn(&ProgressUpdate) + Send + Sync>;

/// Where the reader puts progress of one request.
pub(crate) struct ProgressSink {
    observer: ProgressObserver,
    last: Mutex<Last>,
}

struct Last {
    progress: f64,
    at: Option<Instant>,
}

impl ProgressSink {
    pub(crate) fn new(observer: ProgressObserver) -> Self {
        Self { observer, last: Mutex::new(Last { progress: f64::NEG_INFINITY, at: None }) }
    }

    /// Progress has to grow; what does not is not passed on and extends nothing.
    pub(crate) fn take(&self, progress: &Progress<'_>) {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if progress.progress <= last.progress {
                return;
            }
            *last = Last { progress: progress.progress, at: Some(Instant::now()) };
        }
        (self.observer)(&ProgressUpdate {
            progress: progress.progress,
            total: progress.total,
            message: progress.message.clone().map(Into::into),
        });
    }

    /// When progress last grew.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).at
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressSink").finish_non_exhaustive()
    }
}
