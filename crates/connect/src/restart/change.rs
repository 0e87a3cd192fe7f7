//! A server whose configuration changes while it is used.

use std::sync::{Arc, PoisonError};

use tokio::sync::RwLock;

use super::{Server, Setup, State};
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::options::ConnectOptions;
use crate::transport::Endpoint;

impl Server {
    /// Takes what a changed configuration says. Another command, other values of its variables, another environment or
    /// anything behind a URL make a new generation at once: calls from here on go there, those that were sent before end
    /// on the connection that they were sent on, which is shut down after the last of them. A call whose authority was
    /// captured before and is made after is refused where that differs. Where the server is the same, its connection
    /// stays, and `options` count from its next start on. Returns the generation.
    ///
    /// # Errors
    /// As for [`Connection::open`]: the server stays on what it had. Whoever must not use that any longer shuts it down.
    pub async fn change(
        &self,
        endpoint: Endpoint,
        options: ConnectOptions,
    ) -> Result<u64, ConnectError> {
        let _turn = self.shared.changing.lock().await;
        let setup = Setup { endpoint, options };
        if self.shared.setup().is_same_server(&setup) {
            self.set_up(setup);
            return Ok(self.generation());
        }
        let (name, options) = (self.name().clone(), setup.options.clone());
        let connection = Arc::new(Connection::open(name, &setup.endpoint, options).await?);
        self.set_up(setup);
        let mut before = None;
        self.shared.state.send_if_modified(|state| {
            if matches!(state, State::Stopped { .. }) {
                return false;
            }
            let generation = state.generation().saturating_add(1);
            let next = State::running(generation, Arc::clone(&connection));
            before = Some((std::mem::replace(state, next), generation));
            true
        });
        let Some((before, generation)) = before else {
            connection.shut_down().await;
            return Err(ConnectError::new(
                self.name(),
                Operation::Start,
                Fault::ShutDown,
                Vec::new(),
            ));
        };
        if let State::Running { connection, calls, .. } = before {
            tokio::spawn(retire(connection, calls));
        }
        Ok(generation)
    }

    fn set_up(&self, setup: Setup) {
        let mut place = self.shared.setup.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(setup);
    }
}

/// Calls hold the lock for reading, and no new one comes.
async fn retire(connection: Arc<Connection>, calls: Arc<RwLock<()>>) {
    let _none = calls.write().await;
    connection.shut_down().await;
}

impl Setup {
    fn is_same_server(&self, other: &Self) -> bool {
        let same = match (&self.endpoint, &other.endpoint) {
            (Endpoint::Stdio(before), Endpoint::Stdio(after)) => before == after,
            _ => false,
        };
        same && self.options.environment == other.options.environment
    }
}
