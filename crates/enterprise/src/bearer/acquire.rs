//! One token: the resource's side first, then the identity provider under the lease, then the
//! resource's authorization server, then a last look at the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use plenipo_credentials::StoreError;
use plenipo_oauth::{TokenEndpoint, TokenResponse};
use tokio::task::spawn_blocking;

use super::{Bearer, Inner};
use crate::error::{EnterpriseError, KnownCode, Party};
use crate::exchange::{Asking, check_provider, redeem};
use crate::resource::Resource;
use crate::steps::{Came, End, Exchange, Sequence, Step};
use crate::store::Carrier;

/// The longest that a token is used without asking anew.
const LONGEST: Duration = Duration::from_secs(300);
/// Before its end a token is not used any more.
const SKEW: Duration = Duration::from_secs(30);
/// For the documents of both sides together.
const DISCOVERY: Duration = Duration::from_secs(30);

impl Inner {
    pub(super) async fn acquire(&self) -> Result<Arc<Bearer>, EnterpriseError> {
        let party = Party::Server;
        let found = tokio::time::timeout(DISCOVERY, self.parties()).await;
        let (resource, endpoint) = found.map_err(|_| EnterpriseError::TimedOut { party })??;
        match self.exchange(resource, endpoint).await {
            // One new assertion, and no third: never the same one again.
            Err(
                EnterpriseError::Refused { party, code: KnownCode::InvalidGrant, .. }
                | EnterpriseError::Clock { party, code: KnownCode::InvalidGrant, .. },
            ) if party == Party::ResourceAuthorization => {
                tokio::time::sleep(self.options.pause).await;
                self.exchange(resource, endpoint).await
            }
            settled => settled,
        }
    }

    /// Both sides' documents; read once.
    async fn parties(&self) -> Result<(&Resource, &TokenEndpoint), EnterpriseError> {
        let options = &self.options;
        let issuer = &options.provider.issuer;
        let resource =
            self.resource.get_or_try_init(|| options.server.discover(&options.to_server, issuer));
        let resource = resource.await?;
        let endpoint = self.endpoint.get_or_try_init(async || {
            let found = options.provider.endpoint(&options.to_provider).await;
            let endpoint = found.map_err(|error| {
                let source = self.pin.identity.source;
                EnterpriseError::of_oauth(&error, Party::IdentityProvider, source)
            })?;
            check_provider(&endpoint).map(|()| endpoint)
        });
        Ok((resource, endpoint.await?))
    }

    /// The steps of one exchange, carried out.
    async fn exchange(
        &self,
        resource: &Resource,
        endpoint: &TokenEndpoint,
    ) -> Result<Arc<Bearer>, EnterpriseError> {
        let options = &self.options;
        let mut carrier = options.identities.carrier(&self.pin.identity);
        let mut sequence = Exchange::new(self.pin.clone());
        let (mut came, mut assertion, mut token) = (Came::Done, None, None);
        let mut failure = EnterpriseError::Changed;
        let end = loop {
            came = match sequence.next(came) {
                Step::Done(end) => break end,
                Step::Ask(grant) => {
                    let asking = Asking {
                        provider: &options.provider,
                        endpoint,
                        network: &options.to_provider,
                        server: &options.server,
                        resource,
                        pin: &self.pin,
                        takes_refresh_tokens: &self.takes_refresh_tokens,
                    };
                    let answered = asking.ask(grant).await;
                    let granted = answered.outcome.is_ok();
                    match answered.outcome {
                        Ok(granted) => assertion = Some(granted),
                        Err(error) => failure = error,
                    }
                    Came::Answer { renewed: answered.renewed, granted }
                }
                Step::Redeem => {
                    let network = &options.to_server;
                    let redeemed = match assertion.take() {
                        Some(assertion) => redeem(network, (resource, &self.pin), assertion).await,
                        None => Err(EnterpriseError::Changed),
                    };
                    match redeemed {
                        Ok(answer) => token = Some(answer),
                        Err(error) => failure = error,
                    }
                    Came::Redeemed(token.is_some())
                }
                step => {
                    let (back, came) = carried(carrier, step).await?;
                    carrier = back;
                    came?
                }
            };
        };
        released(carrier).await?;
        match (end, token) {
            (End::Published, Some(token)) => Ok(Arc::new(self.bearer(token, resource))),
            (End::Refused, _) => Err(failure),
            _ => Err(EnterpriseError::Changed),
        }
    }

    fn bearer(&self, token: TokenResponse, resource: &Resource) -> Bearer {
        let cap = LONGEST.min(self.options.server.max_lifetime);
        let life = token.expires_in.unwrap_or(LONGEST).min(cap);
        let now = self.options.to_server.client.now();
        let ends = now.checked_add(life - SKEW.min(life / 2)).unwrap_or(SystemTime::UNIX_EPOCH);
        Bearer {
            value: token.access_token,
            token_type: token.token_type,
            dpop: resource.endpoint.dpop.clone(),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            ends,
        }
    }
}

type Carried = Result<Came<crate::grant::IdentityGrant>, StoreError>;

/// Stores block: a step is carried out on a thread for that.
async fn carried(
    mut carrier: Carrier,
    step: Step<crate::grant::IdentityGrant>,
) -> Result<(Carrier, Carried), EnterpriseError> {
    let work = spawn_blocking(move || {
        let came = carrier.carry(step);
        if came.is_err() {
            // A lease that is given back may block as well.
            carrier.release();
        }
        (carrier, came)
    });
    work.await.map_err(|_| EnterpriseError::Withdrawn)
}

async fn released(mut carrier: Carrier) -> Result<(), EnterpriseError> {
    let work = spawn_blocking(move || carrier.release());
    work.await.map_err(|_| EnterpriseError::Withdrawn)
}
