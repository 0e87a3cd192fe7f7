//! What is owed to a server about a request that nobody waits for any longer.

use std::time::Duration;

use plenipo_wire::Fragment;
use plenipo_wire::protocol::methods;
use tokio::time::timeout;

use crate::error::Fault;
use crate::peer::Peer;

/// How long the notice of a cancellation may take to be written.
const NOTICE: Duration = Duration::from_millis(250);

/// A request in flight. Dropped while armed, it tells the server that nobody waits any longer.
pub(crate) struct InFlight<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) id: i64,
    pub(crate) armed: bool,
}

impl InFlight<'_> {
    /// Tells the server, within a short time.
    pub(crate) async fn give_up(&self, fault: &Fault) {
        if self.cancel(&fault.to_string()) {
            timeout(NOTICE, self.peer.flush()).await.ok();
        }
    }

    /// Queues the notice unless the answer came meanwhile.
    fn cancel(&self, reason: &str) -> bool {
        if !self.peer.pending.forget(self.id) {
            return false;
        }
        let params = Fragment::object(|object| {
            object.integer("requestId", self.id);
            object.string("reason", reason);
        });
        self.peer.queue_notification(methods::CANCELLED, &params)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.armed && self.cancel("the caller went away") {
            self.peer.schedule_flush();
        }
    }
}
