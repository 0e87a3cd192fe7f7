//! From a URL to an agreement: probe, initialize, and again where the server is only busy.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::backing::{Backing, HttpBacking};
use super::{Connection, Launched, to_error};
use crate::error::{ConnectError, Fault, HttpFault, Operation};
use crate::negotiate::{self, Agreement, Era, EraHint, ModernMeta, Probe};
use crate::options::ConnectOptions;
use crate::peer::{Link, Peer, RequestFault, WarningKind};
use crate::server_name::ServerName;
use crate::transport::http::{HttpEndpoint, HttpLink, era_key};

/// Before another attempt, when the server says that it is busy.
pub(super) const DELAYS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// For a look at what a server that knows no POST sends instead.
const LOOK: Duration = Duration::from_secs(5);

struct Connect {
    era: EraHint,
    options: ConnectOptions,
    modern: ModernMeta,
    link: Arc<HttpLink>,
    deadline: Instant,
}

type Agreed = Result<Agreement, RequestFault>;

pub(super) async fn connect(
    name: ServerName,
    endpoint: &HttpEndpoint,
    options: ConnectOptions,
) -> Result<Connection, ConnectError> {
    let link = Arc::new(HttpLink::new(endpoint, &options));
    let observer = Arc::clone(&options.observer);
    let peer = Peer::over(name, Link::Http(Arc::clone(&link)), observer);
    let peer = Arc::new(peer.answering(options.input.clone()));
    let backing = Backing::Http(HttpBacking(Arc::clone(&link)));
    let launched = Launched { peer, backing };
    let peer = Arc::clone(&launched.peer);
    if link.exposes_credentials() {
        peer.warn_once(WarningKind::Exposed, || {
            format!("its credentials go unencrypted to {}", endpoint.origin())
        });
    }
    let modern = ModernMeta::new(&options.client, options.offers(), link.extension());
    let deadline = Instant::now() + options.start_timeout;
    let key = era_key(&endpoint.target);
    let era = options.remembered_era(&key);
    let connect = Connect { era, options, modern, link, deadline };
    match connect.agree_patiently(&peer).await {
        Ok(agreement) => {
            connect.options.remember_era(&key, &agreement.era);
            Ok(connect.agreed(launched, agreement, endpoint.server_stream))
        }
        Err(fault) => {
            let fault = connect.explain(fault).await;
            let error = to_error(&peer.name, Operation::Start, fault, &launched.backing);
            launched.backing.end(&peer, connect.options.grace, false).await;
            Err(error)
        }
    }
}

impl Connect {
    async fn agree_patiently(&self, peer: &Peer) -> Agreed {
        for delay in DELAYS {
            match self.agree(peer).await {
                Err(RequestFault::Fault(Fault::Http(fault))) if fault.is_transient() => {
                    if Instant::now() + delay >= self.deadline {
                        return Err(RequestFault::Fault(Fault::Http(fault)));
                    }
                    sleep(delay).await;
                }
                settled => return settled,
            }
        }
        self.agree(peer).await
    }

    async fn agree(&self, peer: &Peer) -> Agreed {
        let mut may_probe = true;
        if self.era != EraHint::Legacy {
            match self.probe(peer).await {
                Probe::Modern(agreement) => return Ok(agreement),
                Probe::Refused(fault) => return Err(RequestFault::Fault(fault)),
                Probe::Again(error) => return Err(RequestFault::Peer(error)),
                // Silence tells nothing: the server may only have been slow.
                other => may_probe = matches!(other, Probe::Died),
            }
        }
        let fault = match self.initialize(peer).await {
            Err(fault) if may_probe && may_be_modern(&fault) => fault,
            settled => return settled,
        };
        // It was a legacy server once; servers are replaced.
        match self.probe(peer).await {
            Probe::Modern(agreement) => Ok(agreement),
            _ => Err(fault),
        }
    }

    /// A server that knows no POST here may be one of the transport before (2025-11-25, "Backwards
    /// Compatibility"): that is told, and not spoken.
    async fn explain(&self, fault: RequestFault) -> RequestFault {
        let RequestFault::Fault(Fault::Http(HttpFault::Status { status: 400 | 404 | 405, .. })) =
            fault
        else {
            return fault;
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        match timeout(left.min(LOOK), self.link.is_of_old_transport()).await {
            Ok(true) => HttpFault::OldTransport.into(),
            _ => fault,
        }
    }

    /// A legacy server refuses at once, unlike one on a pipe: there is time to wait for a slow one.
    async fn probe(&self, peer: &Peer) -> Probe {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let limit = (self.options.start_timeout / 3).min(left);
        let probed = negotiate::probe_http(peer, &self.modern, limit).await;
        if let Probe::Modern(agreement) = &probed {
            peer.settle_protocol(&agreement.era);
            peer.settle_era(true);
        }
        probed
    }

    async fn initialize(&self, peer: &Peer) -> Agreed {
        peer.settle_era(false);
        let limit = self.options.start_timeout;
        negotiate::initialize(peer, &self.options.client, self.deadline, limit).await
    }

    fn agreed(self, launched: Launched, agreement: Agreement, server_stream: bool) -> Connection {
        let Self { options, modern, link, .. } = self;
        let is_modern = agreement.era == Era::Modern;
        let speaks_up = agreement.announces_changes() || !options.offers().is_nothing();
        if !is_modern && server_stream && speaks_up {
            link.open_server_stream(&launched.peer);
        }
        Connection::agreed(launched, options, agreement, modern)
    }
}

fn may_be_modern(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Peer(_) => true,
        RequestFault::Fault(Fault::Http(fault)) => fault.may_be_legacy(),
        _ => false,
    }
}
