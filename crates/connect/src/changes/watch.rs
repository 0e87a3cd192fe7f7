//! The tools of a server as they change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout, timeout_at};

use super::{ChangeFilter, Revisions};
use crate::catalog::Catalog;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::subscription::Subscription;

/// A storm of notices is waited out for as long as the next one comes within this time …
const QUIET: Duration = Duration::from_millis(50);
/// … and no longer than this.
const LONGEST: Duration = Duration::from_secs(1);

/// Gives the catalog again each time it is another; see [`Connection::watch_catalog`].
#[derive(Debug)]
pub struct CatalogWatch<'a> {
    connection: &'a Connection,
    revisions: Receiver<Revisions>,
    last: Arc<Catalog>,
    /// Of a modern server, which says nothing unasked.
    _subscription: Option<Subscription>,
}

impl Connection {
    /// Lists the tools and watches them, by a subscription where the server wants one. A server that
    /// tells nothing about changes is listed once.
    ///
    /// # Errors
    /// As for [`catalog`](Self::catalog), and [`subscribe`](Self::subscribe).
    pub async fn watch_catalog(&self) -> Result<CatalogWatch<'_>, ConnectError> {
        let revisions = self.peer.changes.subscribe();
        let tells = self.announces_list_changes();
        let subscription = match self.modern().is_some() && tells {
            true => Some(self.subscribe(ChangeFilter::tools()).await?),
            false => None,
        };
        let last = self.catalog().await?;
        Ok(CatalogWatch { connection: self, revisions, last, _subscription: subscription })
    }
}

impl CatalogWatch<'_> {
    /// The catalog as it was last given.
    #[must_use]
    pub fn current(&self) -> &Arc<Catalog> {
        &self.last
    }

    /// Waits until the tools are others than before; many notices in a row lead to one listing.
    /// Waits for ever when the connection has ended.
    ///
    /// # Errors
    /// As for [`Connection::catalog`]; it may be asked again.
    pub async fn next(&mut self) -> Result<Arc<Catalog>, ConnectError> {
        loop {
            if self.revisions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            self.settle().await;
            let catalog = self.connection.catalog().await?;
            if !catalog.has_same_tools(&self.last) {
                self.last = Arc::clone(&catalog);
                return Ok(catalog);
            }
        }
    }

    async fn settle(&mut self) {
        let end = Instant::now() + LONGEST;
        let calm =
            async { while let Ok(Ok(())) = timeout(QUIET, self.revisions.changed()).await {} };
        timeout_at(end, calm).await.unwrap_or_default();
    }
}
