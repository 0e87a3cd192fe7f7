//! Being told about changes.
//!
//! A modern server is asked with `subscriptions/listen`, a request that stays open; it acknowledges
//! the part it grants, and names the request in every notice. A legacy server sends its notices
//! unasked, and those about single resources after `resources/subscribe`. Where a stream breaks it
//! is asked for again, with growing delays; what may have changed meanwhile is told as changed.

mod legacy;
mod listen;
mod sink;

use std::sync::Arc;

use tokio::task::AbortHandle;

pub(crate) use sink::{Sink, Sinks};

use crate::changes::{Change, ChangeFilter, List, Revisions};
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::peer::RequestFault;

/// Changes as they come. Dropping it ends the subscription, and the server is told.
#[derive(Debug)]
pub struct Subscription {
    sink: Arc<Sink>,
    task: AbortHandle,
}

impl Subscription {
    pub(crate) fn new(sink: Arc<Sink>, task: AbortHandle) -> Self {
        Self { sink, task }
    }

    /// What the server grants of what it was asked for; it may be less, and may be another part
    /// after a reconnection.
    #[must_use]
    pub fn granted(&self) -> ChangeFilter {
        self.sink.granted().unwrap_or_default()
    }

    /// The next change; the same change is told once, however often it came since. `None` when the
    /// server ended the subscription, or the connection ended.
    pub async fn next(&mut self) -> Option<Change> {
        self.sink.next().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// How often each list was said to have changed.
    #[must_use]
    pub fn revisions(&self) -> Revisions {
        self.peer.changes.revisions()
    }

    /// Subscribes to changes, and waits until the server acknowledges it.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Subscribe`]: the server does not know how, or says nothing
    /// within `start_timeout`.
    pub async fn subscribe(&self, filter: ChangeFilter) -> Result<Subscription, ConnectError> {
        let sink = Arc::new(Sink::new(filter));
        let task = match self.modern() {
            Some(modern) => listen::start(self, modern, &sink),
            None => legacy::start(self, &sink),
        };
        let subscription = Subscription::new(sink, task.abort_handle());
        let acknowledged = subscription.sink.acknowledged();
        let limit = self.options.start_timeout;
        match tokio::time::timeout(limit, acknowledged).await {
            Ok(Ok(())) => Ok(subscription),
            Ok(Err(fault)) => Err(self.error(Operation::Subscribe, fault)),
            Err(_) => {
                let fault = Fault::NoAnswer {
                    method: plenipo_wire::protocol::methods::LISTEN,
                    limit,
                    language_server_framing: false,
                };
                Err(self.error(Operation::Subscribe, RequestFault::Fault(fault)))
            }
        }
    }

    /// Whether the server says that its tool list may change.
    pub(crate) fn announces_list_changes(&self) -> bool {
        self.announces(List::Tools, "listChanged")
    }
}
