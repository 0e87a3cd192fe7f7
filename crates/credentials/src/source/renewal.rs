//! One refresh: under the lease, from what the store says by then.

use std::sync::Arc;
use std::time::Duration;

use plenipo_oauth::{Http, OAuthError, ServerMetadata, TokenEndpoint, TokenRequest};
use plenipo_redact::Secret;
use tokio::task::spawn_blocking;

use super::settling::Unsettled;
use super::{AccessToken, Inner};
use crate::error::{StoreError, StoreFault, TokenError};
use crate::record::{Grant, Record};
use crate::store::Lease;

impl Inner {
    /// The grant that is good from now on. `is_refused`: the token in memory is not to be had again.
    pub(super) async fn renewed(
        &self,
        current: &AccessToken,
        is_refused: bool,
    ) -> Result<Grant, TokenError> {
        let (lease, record) = self.take_lease().await?;
        let Some(grant) = &record.grant else {
            return Err(TokenError::NotSignedIn { credential: self.key.to_string() });
        };
        if record.generation != self.generation {
            return Err(TokenError::Changed { credential: self.key.to_string() });
        }
        let is_known = grant.access_token.expose() == current.value.expose();
        let is_usable = !(is_known && is_refused);
        if is_usable && grant.is_fresh(self.options.client.now(), self.options.skew) {
            // Another process was faster.
            return Ok(grant.clone());
        }
        self.refresh(lease, &record, grant).await
    }

    async fn refresh(
        &self,
        lease: Box<dyn Lease>,
        record: &Record,
        grant: &Grant,
    ) -> Result<Grant, TokenError> {
        let Some(refresh_token) = &grant.refresh_token else {
            let credential = self.key.to_string();
            return Err(match grant.is_fresh(self.options.client.now(), self.options.skew) {
                true => TokenError::NotAccepted { credential },
                false => TokenError::Expired { credential },
            });
        };
        let _unsettled = Unsettled::begin();
        let asked = self.ask(grant, refresh_token).await;
        let next = match &asked {
            Ok(grant) => grant.clone(),
            // Used up: nobody needs to try it again.
            Err(error) if error.code() == Some("invalid_grant") => {
                Grant { refresh_token: None, ..grant.clone() }
            }
            Err(_) => return asked.map_err(|error| self.failed(error)),
        };
        self.save(lease, Record { grant: Some(next), ..record.clone() }).await?;
        asked.map_err(|error| self.failed(error))
    }

    async fn ask(
        &self,
        grant: &Grant,
        refresh_token: &Secret<String>,
    ) -> Result<Grant, OAuthError> {
        let options = &self.options;
        let mut client = grant.client.clone();
        if let Some(credential) = &options.credential {
            client.credential = credential.clone();
        }
        let http = Http::new(options.client.as_ref(), options.addresses);
        let metadata = self.metadata(&http, grant).await?;
        let endpoint = TokenEndpoint::new(metadata, client)?.with_dpop(grant.dpop.clone());
        let request = TokenRequest::new(
            plenipo_oauth::Grant::RefreshToken(refresh_token.clone()),
            Some(self.key.resource.clone()),
        );
        let response = endpoint.request(&http, &request).await?;
        Ok(grant.refreshed(response, options.client.now()))
    }

    async fn metadata(
        &self,
        http: &Http<'_>,
        grant: &Grant,
    ) -> Result<Arc<ServerMetadata>, OAuthError> {
        let read = async || {
            let issuer = &self.key.issuer;
            let metadata = match grant.endpoints_assumed {
                true => ServerMetadata::discover_legacy(http, issuer.url()).await,
                false => ServerMetadata::discover(http, issuer).await,
            };
            metadata.map(Arc::new)
        };
        self.metadata.get_or_try_init(read).await.cloned()
    }

    async fn take_lease(&self) -> Result<(Box<dyn Lease>, Record), TokenError> {
        let (vault, key) = (self.vault.clone(), self.key.clone());
        let patience: Duration = self.options.patience;
        self.blocking(move || {
            let mut lease = vault.store().lease(&key.id(), patience)?;
            let record = vault.decode(lease.load()?, &key)?;
            Ok((lease, record))
        })
        .await
    }

    async fn save(&self, mut lease: Box<dyn Lease>, record: Record) -> Result<(), TokenError> {
        let vault = self.vault.clone();
        self.blocking(move || vault.save(lease.as_mut(), &record)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, TokenError> {
        match spawn_blocking(work).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => Err(self.store_failed(error)),
            Err(_) => Err(self.interrupted()),
        }
    }

    pub(super) fn interrupted(&self) -> TokenError {
        let place = self.vault.store().place();
        self.store_failed(StoreError::new("read", place, StoreFault::Interrupted))
    }

    fn store_failed(&self, error: StoreError) -> TokenError {
        TokenError::Store { credential: self.key.to_string(), source: Arc::new(error) }
    }

    fn failed(&self, error: OAuthError) -> TokenError {
        TokenError::Refresh { credential: self.key.to_string(), source: Arc::new(error) }
    }
}
