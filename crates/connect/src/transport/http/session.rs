//! What a legacy server's session and the era add to each request.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{HeaderMap, HeaderValue};
use plenipo_wire::protocol::MODERN_VERSION;
use tokio::sync::watch;

use super::headers;

/// Which rules hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Nothing is agreed.
    Unsettled,
    /// The revision agreed on.
    Legacy(String),
    /// 2026-07-28.
    Modern,
}

/// One session, or the lack of one.
#[derive(Debug)]
pub(super) struct Session {
    /// Grows with each agreement.
    pub(super) number: u64,
    pub(super) id: Option<HeaderValue>,
    pub(super) protocol: Protocol,
    /// What every message is posted with.
    posted: OnceLock<HeaderMap>,
}

/// The current one.
#[derive(Debug)]
pub(super) struct Sessions {
    current: watch::Sender<Arc<Session>>,
    /// From the answer to `initialize`, until the revision in its body is known.
    offered: Mutex<Option<HeaderValue>>,
}

impl Session {
    /// Before anything is agreed: what `server/discover` and `initialize` are asked in.
    pub(super) fn none() -> Self {
        Self::new(0, None, Protocol::Unsettled)
    }

    fn new(number: u64, id: Option<HeaderValue>, protocol: Protocol) -> Self {
        Self { number, id, protocol, posted: OnceLock::new() }
    }

    /// What every message in this session is posted with, put together once.
    pub(super) fn posted(&self, compose: impl FnOnce() -> HeaderMap) -> &HeaderMap {
        self.posted.get_or_init(compose)
    }

    /// Adds the session and the revision.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(headers::SESSION, id.clone());
        }
        let version = match &self.protocol {
            Protocol::Unsettled => None,
            Protocol::Legacy(version) => HeaderValue::from_str(version).ok(),
            Protocol::Modern => Some(HeaderValue::from_static(MODERN_VERSION)),
        };
        if let Some(version) = version {
            headers.insert(headers::VERSION, version);
        }
    }

    pub(super) fn is_legacy(&self) -> bool {
        matches!(self.protocol, Protocol::Legacy(_))
    }

    pub(super) fn is_modern(&self) -> bool {
        self.protocol == Protocol::Modern
    }
}

impl Sessions {
    pub(super) fn current(&self) -> Arc<Session> {
        Arc::clone(&self.current.borrow())
    }

    /// The answer to `initialize` names a session.
    pub(super) fn offer(&self, id: Option<HeaderValue>) {
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// A revision is agreed on; from now on the session offered is used. A modern server has none.
    pub(super) fn settle(&self, protocol: Protocol) {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner).take();
        let id = offered.filter(|_| protocol != Protocol::Modern);
        let number = self.current().number.saturating_add(1);
        self.current.send_replace(Arc::new(Session::new(number, id, protocol)));
    }

    /// Gives the session up; tells what it was.
    pub(super) fn end(&self) -> Arc<Session> {
        let last = self.current();
        let (number, protocol) = (last.number, last.protocol.clone());
        self.current.send_replace(Arc::new(Session::new(number, None, protocol)));
        last
    }

    /// Waits until another agreement replaces number `stale`.
    pub(super) async fn replaced(&self, stale: u64) {
        let mut current = self.current.subscribe();
        current.wait_for(|session| session.number != stale).await.ok();
    }
}

impl Default for Sessions {
    fn default() -> Self {
        let current = watch::Sender::new(Arc::new(Session::none()));
        Self { current, offered: Mutex::default() }
    }
}
