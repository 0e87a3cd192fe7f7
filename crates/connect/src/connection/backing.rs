//! What a connection stands on: a process, or a URL.

use std::sync::Arc;

use plenipo_authority::{CredentialPin, ServerReach};

use crate::error::Fault;
use crate::memory::MemoryKey;
use crate::peer::Peer;
use crate::pending::Closed;
use crate::transport::http::HttpLink;
use crate::transport::stdio::Grace;
use crate::transport::stdio::{MonitorHandle, ShutdownReport, Tail};

#[derive(Debug)]
pub(super) enum Backing {
    Process { tail: Arc<Tail>, monitor: MonitorHandle },
    Http(HttpBacking),
}

/// Stops what runs by itself when it is dropped.
#[derive(Debug)]
pub(super) struct HttpBacking(pub(super) Arc<HttpLink>);

impl Backing {
    /// The last lines on stderr.
    pub(super) fn tail(&self) -> Vec<String> {
        match self {
            Self::Process { tail, .. } => tail.lines(),
            Self::Http(_) => Vec::new(),
        }
    }

    /// Under which name the tools are remembered; `None` where it cannot be told for whom the server
    /// answers.
    pub(super) async fn tools_key(&self) -> Option<MemoryKey> {
        match self {
            Self::Process { .. } => None,
            Self::Http(HttpBacking(link)) => link.tools_key().await,
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    pub(super) fn reach(&self) -> ServerReach {
        match self {
            Self::Process { .. } => ServerReach::LocalStdio,
            Self::Http(_) => ServerReach::Remote,
        }
    }

    pub(super) fn credential(&self) -> Option<CredentialPin> {
        match self {
            Self::Process { .. } => None,
            Self::Http(HttpBacking(link)) => link.credential(),
        }
    }

    pub(super) fn agreed(&self, opt_in: bool) {
        if let Self::Http(HttpBacking(link)) = self {
            link.pin_opt_in(opt_in);
        }
    }

    /// Ends it; a process by who outlives this program, if `hand_over` and there is somebody.
    pub(super) async fn end(&self, peer: &Peer, grace: Grace, hand_over: bool) -> ShutdownReport {
        match self {
            Self::Process { monitor, .. } if hand_over => monitor.hand_over(grace).await,
            Self::Process { monitor, .. } => monitor.shut_down(grace).await,
            Self::Http(HttpBacking(link)) => {
                peer.close(Closed { fault: Fault::ShutDown, stderr_tail: Vec::new() });
                link.shut_down(grace.stdin_closed).await;
                ShutdownReport::default()
            }
        }
    }
}

impl Drop for HttpBacking {
    fn drop(&mut self) {
        self.0.stop();
    }
}
