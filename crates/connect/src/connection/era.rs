//! The era of a running connection. A server may be replaced while it is used: by an older one,
//! which says which revisions it supports, or over HTTP by a newer one, which knows no sessions and
//! wants each request to say its revision. Then the other handshake is made, once for everybody who
//! noticed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use plenipo_authority::SandboxOptIn;
use plenipo_wire::protocol::error_code;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Connection;
use crate::error::{Fault, HttpFault, PeerError};
use crate::negotiate::{self, Agreement, Era, ModernMeta, Probe};
use crate::peer::RequestFault;

/// A server that changes its era more often than this is not followed any further.
const CHANGES: u32 = 8;

/// What is agreed on now.
#[derive(Debug)]
pub(super) struct AgreedEra {
    meta: ModernMeta,
    era: RwLock<Era>,
    stamp: AtomicU32,
    renegotiation: Mutex<()>,
}

/// In which of a connection's eras a request was sent: how many came before, and whether it was a
/// modern one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EraStamp(u32);

impl EraStamp {
    fn new(changes: u32, era: &Era) -> Self {
        Self((changes << 1) | u32::from(*era == Era::Modern))
    }

    fn changes(self) -> u32 {
        self.0 >> 1
    }

    fn is_modern(self) -> bool {
        self.0 & 1 == 1
    }
}

impl AgreedEra {
    /// `meta` is what goes into each request as long as the server is a modern one.
    pub(super) fn new(era: Era, meta: ModernMeta) -> Self {
        Self {
            meta,
            stamp: AtomicU32::new(EraStamp::new(0, &era).0),
            era: RwLock::new(era),
            renegotiation: Mutex::default(),
        }
    }

    pub(super) fn current(&self) -> Era {
        self.era.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stamp(&self) -> EraStamp {
        EraStamp(self.stamp.load(Ordering::Acquire))
    }

    fn replace(&self, era: Era) {
        let stamp = EraStamp::new(self.stamp().changes().saturating_add(1), &era);
        *self.era.write().unwrap_or_else(PoisonError::into_inner) = era;
        self.stamp.store(stamp.0, Ordering::Release);
    }
}

impl Connection {
    /// What goes into every request of a modern peer; `None` for a legacy one.
    pub(crate) fn modern(&self) -> Option<&ModernMeta> {
        self.agreed_era.stamp().is_modern().then_some(&self.agreed_era.meta)
    }

    /// To be taken before a request is made.
    pub(crate) fn era_stamp(&self) -> EraStamp {
        self.agreed_era.stamp()
    }

    /// Whether a request failed because the server is not, or not any more, of the era it was sent
    /// in. Such a request was not processed.
    pub(crate) fn is_of_another_era(&self, sent: EraStamp, fault: &RequestFault) -> bool {
        let over_http = self.backing.is_http();
        match fault {
            RequestFault::Peer(error) if sent.is_modern() => {
                error.code == error_code::UNSUPPORTED_PROTOCOL_VERSION
            }
            RequestFault::Peer(error) => {
                let codes = [error_code::UNSUPPORTED_PROTOCOL_VERSION, error_code::HEADER_MISMATCH];
                over_http && codes.contains(&error.code)
            }
            RequestFault::Fault(Fault::Http(HttpFault::SessionRefused { .. })) => over_http,
            _ => false,
        }
    }

    /// Makes the other handshake after a request failed with `fault`; the request is then to be sent
    /// again, once.
    pub(crate) async fn renegotiate(
        &self,
        sent: EraStamp,
        fault: RequestFault,
    ) -> Result<(), RequestFault> {
        let _only_one = self.agreed_era.renegotiation.lock().await;
        if self.era_stamp() != sent {
            return Ok(());
        }
        if sent.changes() >= CHANGES {
            return Err(fault);
        }
        let agreement = match (sent.is_modern(), fault) {
            (true, RequestFault::Peer(error)) => match self.initialize_again(&error).await? {
                Some(agreement) => agreement,
                None => return Ok(()),
            },
            (_, fault) => match self.discover().await {
                Some(agreement) => agreement,
                None => return Err(fault),
            },
        };
        self.check_opt_in(&agreement)?;
        self.agreed_era.replace(agreement.era);
        self.peer.list_changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// `None`: the server offers what it refuses, and is only to be asked again.
    async fn initialize_again(&self, error: &PeerError) -> Result<Option<Agreement>, RequestFault> {
        if negotiate::offers_modern(error) {
            return Ok(None);
        }
        if let Some(offered) = negotiate::no_legacy_offer(error) {
            return Err(RequestFault::Fault(Fault::UnsupportedVersion { offered }));
        }
        self.peer.settle_era(false);
        let limit = self.options.start_timeout;
        let deadline = Instant::now() + limit;
        let client = &self.options.client;
        negotiate::initialize(&self.peer, client, deadline, limit).await.map(Some)
    }

    async fn discover(&self) -> Option<Agreement> {
        let limit = self.options.start_timeout / 3;
        let probed = negotiate::probe_http(&self.peer, &self.agreed_era.meta, limit).await;
        let Probe::Modern(agreement) = probed else { return None };
        self.peer.settle_protocol(&agreement.era);
        self.peer.settle_era(true);
        Some(agreement)
    }

    fn check_opt_in(&self, agreement: &Agreement) -> Result<(), RequestFault> {
        let opt_in = SandboxOptIn::from_capabilities(agreement.capabilities.as_raw()).advertised;
        if opt_in == self.opt_in {
            return Ok(());
        }
        Err(RequestFault::Fault(Fault::AuthorityChanged {
            captured: "the server as it was".to_owned(),
            actual: "one of another era with another opt-in to the sandbox state".to_owned(),
        }))
    }
}
