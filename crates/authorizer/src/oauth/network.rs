//! The network as OAuth flows use it: one exchange at a time, to addresses that the server's own
//! place allows, without redirections, cookies or credentials of the connection.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, header};
use plenipo_http::{ClientFault, HttpCause, HttpClient, SingleExchanges};
use plenipo_oauth::{
    AddressPolicy, Answer, EndpointUrl, Http, IncomingResponse, OutgoingRequest, TransportFault,
};
use plenipo_redact::Secret;
use tokio::sync::OnceCell;
use tokio::time::timeout;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("plenipo/", env!("CARGO_PKG_VERSION")));

/// An HTTP client for the flows about one server. Clones share what it learnt.
#[derive(Debug, Clone)]
pub struct OAuthNetwork {
    exchanges: SingleExchanges,
    server: EndpointUrl,
    /// The addresses of the server itself; looked up when a document leads into a private network.
    own: Arc<OnceCell<Vec<IpAddr>>>,
}

impl OAuthNetwork {
    /// For flows about `server`, with the proxies and certificate authorities of `http`.
    #[must_use]
    pub fn new(http: HttpClient, server: EndpointUrl) -> Self {
        Self { exchanges: SingleExchanges::new(http), server, own: Arc::default() }
    }

    /// For the flows themselves.
    #[must_use]
    pub fn http(&self) -> Http<'_> {
        Http::new(self, AddressPolicy::for_server(&self.server))
    }

    /// For whoever builds an [`Http`] itself.
    #[must_use]
    pub fn addresses(&self) -> AddressPolicy {
        AddressPolicy::for_server(&self.server)
    }

    async fn exchange(&self, request: OutgoingRequest) -> Result<IncomingResponse, HttpCause> {
        match self.attempt(request.clone(), request.addresses).await {
            // A name that is private, named by a server that may be private itself.
            Err(cause) if is_refused_address(&cause) => {
                let own = self.own.get_or_try_init(|| self.resolve_server()).await?;
                let widened = request.addresses.widened_by(own);
                match widened == request.addresses {
                    true => Err(cause),
                    false => self.attempt(request, widened).await,
                }
            }
            settled => settled,
        }
    }

    async fn resolve_server(&self) -> Result<Vec<IpAddr>, HttpCause> {
        SingleExchanges::resolve(self.server.host(), self.server.port()).await
    }

    async fn attempt(
        &self,
        request: OutgoingRequest,
        addresses: AddressPolicy,
    ) -> Result<IncomingResponse, HttpCause> {
        let admit = |host: &str, found: &[IpAddr]| admitted(addresses, host, found);
        let limit = request.max_body_bytes;
        let mut message = request.message.map(|body| Bytes::from(body.into_exposed()));
        message.headers_mut().entry(header::USER_AGENT).or_insert(AGENT);
        let response = self.exchanges.exchange(message, &admit, limit).await?;
        Ok(response.map(|body| Secret::new(body.to_vec())))
    }
}

impl plenipo_oauth::HttpClient for OAuthNetwork {
    fn send(&self, request: OutgoingRequest) -> Answer<'_> {
        Box::pin(async move {
            match timeout(request.timeout, self.exchange(request)).await {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(cause)) => Err(fault(cause)),
                Err(_) => Err(TransportFault::TimedOut),
            }
        })
    }
}

/// The addresses that may be connected to; the reason against the first when there is none.
fn admitted(policy: AddressPolicy, host: &str, found: &[IpAddr]) -> Result<Vec<IpAddr>, HttpCause> {
    let mut refusal = None;
    let mut admitted = Vec::new();
    for address in found {
        match policy.admits(host, *address) {
            Ok(()) => admitted.push(*address),
            Err(fault) => drop(refusal.get_or_insert(fault)),
        }
    }
    match refusal {
        Some(fault) if admitted.is_empty() => Err(Box::new(fault)),
        _ => Ok(admitted),
    }
}

fn is_refused_address(cause: &HttpCause) -> bool {
    matches!(cause.downcast_ref(), Some(TransportFault::Address { .. }))
}

fn fault(cause: HttpCause) -> TransportFault {
    let cause = match cause.downcast::<TransportFault>() {
        Ok(fault) => return *fault,
        Err(cause) => cause,
    };
    match cause.downcast_ref() {
        Some(ClientFault::TooLong { limit }) => TransportFault::TooLarge { limit: *limit },
        _ => TransportFault::Broken(cause),
    }
}
