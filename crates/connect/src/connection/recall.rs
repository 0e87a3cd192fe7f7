//! What a connection knows from earlier ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Connection, Listing};
use crate::catalog::{Catalog, Listed};
use crate::error::{ConnectError, Operation};
use crate::memory::Remembered;
use crate::peer::RequestFault;

impl Connection {
    /// The tools without asking, where that is possible: as listed on this connection, or else as an
    /// earlier one remembered them in the host's [`Memory`](crate::memory::Memory) and the server
    /// said that they stay so; listed now otherwise. Calls go by this.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::List`].
    pub async fn catalog_at_hand(&self) -> Result<Arc<Catalog>, ConnectError> {
        let catalog = self.catalog_at_hand_within(self.options.start_timeout).await;
        catalog.map_err(|fault| self.error(Operation::List, fault))
    }

    pub(crate) async fn catalog_at_hand_within(
        &self,
        limit: Duration,
    ) -> Result<Arc<Catalog>, RequestFault> {
        if self.options.memory.is_some() {
            let _turn = self.turn_to_list(limit).await?;
            let changes = self.peer.list_changes.load(Ordering::Acquire);
            let is_unknown = self.known_catalog().is_none();
            if is_unknown
                && let Some(tools) = self.remembered().await.and_then(|kept| kept.recall())
            {
                let catalog = Catalog::new(0, tools, Vec::new(), self.options.filter.clone());
                self.know_catalog(Listing { catalog: Arc::new(catalog), changes, end: None });
            }
            let known = self.known_catalog();
            if let Some(listing) = known.as_ref().filter(|listing| listing.changes == changes) {
                return Ok(Arc::clone(&listing.catalog));
            }
        }
        self.catalog_within(limit).await
    }

    /// Keeps what was listed for later connections.
    pub(super) async fn remember(&self, listed: &Listed) {
        if let Some(kept) = self.remembered().await {
            kept.keep(&listed.tools, listed.lifetime.unwrap_or_default());
        }
    }

    /// Only of a modern server behind a URL: others do not say how long a list is good for, and the
    /// programs of this machine are changed by the people who call them.
    async fn remembered(&self) -> Option<Remembered<'_>> {
        let memory = self.options.memory.as_deref().filter(|_| self.mirrors())?;
        let key = self.backing.tools_key().await?;
        Some(Remembered::new(memory, key))
    }
}
