//! Many servers, started at once.
//!
//! Each has its own deadline. One that fails or is slow neither delays nor hides the others: what
//! is ready is handed out at once, and at the end everybody's outcome is there in the order given.
//! Whether a server is required is for the caller to say.

use std::fmt;

use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::options::ConnectOptions;
use crate::server_name::ServerName;
use crate::transport::Endpoint;

/// What has to be done before a server counts as started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Readiness {
    /// A revision is agreed on.
    #[default]
    Connection,
    /// Its tools are listed, too, within another `start_timeout`.
    Catalog,
}

/// A server to start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Member {
    /// Under which name it is configured.
    pub name: ServerName,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Its own choices, its deadline among them.
    pub options: ConnectOptions,
    /// When it counts as started; default: when it is connected.
    pub readiness: Readiness,
}

/// A server that was started, or why it could not be.
pub type Started = Result<Connection, ConnectError>;

/// Servers that are starting. Dropping it ends those that nobody took.
pub struct Fleet {
    names: Vec<ServerName>,
    starting: JoinSet<(usize, Started)>,
}

impl Member {
    /// A server with a deadline of its own in `options`.
    pub fn new(name: ServerName, endpoint: impl Into<Endpoint>, options: ConnectOptions) -> Self {
        Self { name, endpoint: endpoint.into(), options, readiness: Readiness::default() }
    }

    async fn start(self) -> Started {
        let connection = Connection::open(self.name, &self.endpoint, self.options).await?;
        if self.readiness == Readiness::Catalog
            && let Err(error) = connection.catalog().await
        {
            connection.shut_down().await;
            return Err(error);
        }
        Ok(connection)
    }
}

impl Fleet {
    /// Starts all of them at once, on the running tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(members: impl IntoIterator<Item = Member>) -> Self {
        let mut fleet = Self { names: Vec::new(), starting: JoinSet::new() };
        for member in members {
            let position = fleet.names.len();
            fleet.names.push(member.name.clone());
            fleet.starting.spawn(async move { (position, member.start().await) });
        }
        fleet
    }

    /// The servers in the order given.
    pub fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.names.iter()
    }

    /// How many are still starting.
    #[must_use]
    pub fn starting(&self) -> usize {
        self.starting.len()
    }

    /// The next server that is ready or failed, with its position; `None` when all were handed out.
    pub async fn next(&mut self) -> Option<(usize, Started)> {
        match self.starting.join_next().await? {
            Ok(outcome) => Some(outcome),
            Err(stopped) => match stopped.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => None,
            },
        }
    }

    /// Waits for all that were not handed out: names and outcomes in the order given.
    pub async fn finish(mut self) -> Vec<(ServerName, Started)> {
        let mut outcomes: Vec<Option<Started>> = self.names.iter().map(|_| None).collect();
        while let Some((position, started)) = self.next().await {
            if let Some(place) = outcomes.get_mut(position) {
                *place = Some(started);
            }
        }
        let named = self.names.into_iter().zip(outcomes);
        named.filter_map(|(name, outcome)| Some((name, outcome?))).collect()
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("names", &self.names).finish_non_exhaustive()
    }
}
