//! Cancelling calls from outside.

use tokio::sync::watch;

/// Cancels every call that holds one of its [`Cancellation`]s.
#[derive(Debug)]
pub struct Canceller {
    reason: watch::Sender<Option<String>>,
}

/// Tells a call when it is cancelled. Clones share one [`Canceller`].
#[derive(Debug, Clone)]
pub struct Cancellation {
    reason: watch::Receiver<Option<String>>,
}

impl Canceller {
    /// A fresh one.
    #[must_use]
    pub fn new() -> Self {
        Self { reason: watch::Sender::new(None) }
    }

    /// What to put into a [`CallRequest`](super::CallRequest).
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        Cancellation { reason: self.reason.subscribe() }
    }

    /// Cancels; `reason` is sent to the server. The first reason stays.
    pub fn cancel(&self, reason: &str) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert_with(|| reason.to_owned());
            first
        });
    }
}

impl Default for Canceller {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancellation {
    /// Waits until cancelled; for ever when the [`Canceller`] is gone.
    pub(crate) async fn cancelled(&mut self) -> String {
        if let Ok(reason) = self.reason.wait_for(Option::is_some).await
            && let Some(reason) = reason.as_ref()
        {
            return reason.clone();
        }
        std::future::pending().await
    }
}
