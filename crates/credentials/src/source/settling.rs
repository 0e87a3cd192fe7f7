//! Refreshes of this process that have begun and are not written yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

static UNSETTLED: AtomicUsize = AtomicUsize::new(0);
static SETTLED: Notify = Notify::const_new();

/// One of them, until it is dropped.
pub(super) struct Unsettled(());

/// Waits until no refresh of this process is between its question to the issuer and the store; at most
/// for `patience`, and then this is `false`. Who ends the process or its runtime earlier may lose a
/// refresh token: the issuer has replaced it, and nobody has the new one.
pub async fn refreshes_settled(patience: Duration) -> bool {
    let settled = async {
        loop {
            let settled = SETTLED.notified();
            if UNSETTLED.load(Ordering::SeqCst) == 0 {
                return;
            }
            settled.await;
        }
    };
    tokio::time::timeout(patience, settled).await.is_ok()
}

impl Unsettled {
    pub(super) fn begin() -> Self {
        UNSETTLED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        UNSETTLED.fetch_sub(1, Ordering::SeqCst);
        SETTLED.notify_waiters();
    }
}
