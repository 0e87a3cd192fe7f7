//! The era of a running connection. A modern server may be replaced by an older one while it is
//! used: it then says which revisions it supports, and is initialized, once.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use plenipo_authority::SandboxOptIn;
use plenipo_wire::protocol::error_code;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Connection;
use crate::error::{Fault, PeerError};
use crate::negotiate::{self, Era, ModernMeta};
use crate::peer::RequestFault;

/// What was agreed at the start, and what later instead.
#[derive(Debug)]
pub(super) struct AgreedEra {
    modern: Option<ModernMeta>,
    legacy: OnceLock<Era>,
    renegotiation: Mutex<()>,
}

impl AgreedEra {
    pub(super) fn new(modern: Option<ModernMeta>) -> Self {
        Self { modern, legacy: OnceLock::new(), renegotiation: Mutex::default() }
    }

    pub(super) fn renegotiated(&self) -> Option<&Era> {
        self.legacy.get()
    }
}

impl Connection {
    /// What goes into every request of a modern peer; `None` for a legacy one.
    pub(crate) fn modern(&self) -> Option<&ModernMeta> {
        match self.agreed_era.renegotiated() {
            None => self.agreed_era.modern.as_ref(),
            Some(_) => None,
        }
    }

    /// Whether an answer says that the server does not speak the modern revision (any more). Such a
    /// request was not processed.
    pub(crate) fn is_of_another_era(&self, error: &PeerError) -> bool {
        error.code == error_code::UNSUPPORTED_PROTOCOL_VERSION && self.agreed_era.modern.is_some()
    }

    /// Initializes a server that turned out to be a legacy one, once for everybody who noticed.
    pub(crate) async fn renegotiate(&self, error: &PeerError) -> Result<(), RequestFault> {
        let _only_one = self.agreed_era.renegotiation.lock().await;
        if self.agreed_era.renegotiated().is_some() {
            return Ok(());
        }
        if let Some(offered) = negotiate::no_legacy_offer(error) {
            return Err(RequestFault::Fault(Fault::UnsupportedVersion { offered }));
        }
        self.peer.settle_era(false);
        let limit = self.options.start_timeout;
        let deadline = Instant::now() + limit;
        let agreement =
            negotiate::initialize(&self.peer, &self.options.client, deadline, limit).await?;
        let capabilities = agreement.capabilities.as_raw();
        if SandboxOptIn::from_capabilities(capabilities).advertised != self.opt_in {
            return Err(RequestFault::Fault(Fault::AuthorityChanged {
                captured: "a server of revision 2026-07-28".to_owned(),
                actual: "an older one with another opt-in to the sandbox state".to_owned(),
            }));
        }
        self.agreed_era.legacy.get_or_init(|| agreement.era);
        self.peer.list_changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}
