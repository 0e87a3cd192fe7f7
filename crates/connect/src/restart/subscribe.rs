//! A subscription that outlives the connection it was made on.

use std::sync::Arc;

use super::{Server, Shared, State};
use crate::changes::ChangeFilter;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::subscription::{Sink, Subscription};

impl Server {
    /// [`Connection::subscribe`], and again on each new connection; what may have changed while the
    /// server was away is told as changed.
    ///
    /// # Errors
    /// As for [`Connection::subscribe`], of the first time.
    pub async fn subscribe(&self, filter: ChangeFilter) -> Result<Subscription, ConnectError> {
        let (generation, connection, _) = self.shared.current().await?;
        let first = connection.subscribe(filter.clone()).await?;
        let sink = Arc::new(Sink::new(filter));
        sink.acknowledge(&first.granted());
        let follower = Follower { shared: Arc::clone(&self.shared), sink: Arc::clone(&sink) };
        let task =
            tokio::spawn(async move { follower.follow(generation, connection, first).await });
        Ok(Subscription::new(sink, task.abort_handle()))
    }
}

struct Follower {
    shared: Arc<Shared>,
    sink: Arc<Sink>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.sink.end();
    }
}

impl Follower {
    async fn follow(
        self,
        mut generation: u64,
        mut connection: Arc<Connection>,
        mut subscription: Subscription,
    ) {
        loop {
            while let Some(change) = subscription.next().await {
                self.sink.tell(change);
            }
            if connection.peer.pending.closed().is_none() {
                return; // the server ended the subscription, not itself
            }
            drop(connection);
            loop {
                let Some(next) = self.after(generation).await else { return };
                (generation, connection) = next;
                if let Ok(again) = connection.subscribe(self.sink.filter.clone()).await {
                    subscription = again;
                    break;
                }
                if connection.peer.pending.closed().is_none() {
                    return;
                }
            }
            self.sink.acknowledge(&subscription.granted());
        }
    }

    /// The next generation; `None` when there will be none.
    async fn after(&self, last: u64) -> Option<(u64, Arc<Connection>)> {
        let mut states = self.shared.state.subscribe();
        let next = states.wait_for(|state| match state {
            State::Running { generation, .. } => *generation > last,
            State::Stopped { .. } => true,
            _ => false,
        });
        match next.await.ok().map(|state| state.clone())? {
            State::Running { generation, connection, .. } => Some((generation, connection)),
            _ => None,
        }
    }
}
