//! What a refusal means, and what is done about it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use plenipo_credentials::{ErrorKind as TokenErrorKind, TokenSource};
use plenipo_oauth::{Asked, Demand, HttpClient as _, Scopes, SignedIn, dpop_nonce};
use tokio::task::spawn_blocking;

use super::failure::{grant_failed, needs_scopes, not_signed_in, store_failed};
use super::grantor::{GrantError, Wish};
use super::held::{self, Held};
use super::{Inner, generation, name_of};
use crate::{AuthorizeError, Challenge, ErrorKind, Verdict};

/// Nonces for one request.
const NONCES: u32 = 2;

impl Inner {
    pub(super) async fn challenged(
        self: Arc<Self>,
        challenge: &Challenge<'_>,
    ) -> Result<Verdict, AuthorizeError> {
        let demand = Demand::of(challenge.status, challenge.headers);
        if let (Some(Demand::Token(_) | Demand::MoreScopes(_)), Some(unusable)) =
            (&demand, &self.unusable)
        {
            return Err(unusable.error());
        }
        match demand {
            Some(Demand::DpopNonce(nonce)) => {
                let is_new = self.remember_nonce(challenge.url, &nonce);
                match is_new && challenge.attempt <= NONCES {
                    true => Ok(Verdict::Retry),
                    false => Ok(Verdict::Fail),
                }
            }
            Some(Demand::Token(asked)) => {
                if let Some(nonce) = dpop_nonce(challenge.headers) {
                    self.remember_nonce(challenge.url, &nonce);
                }
                self.renew(challenge, asked).await
            }
            Some(Demand::MoreScopes(asked)) => self.step_up(challenge, asked).await,
            _ => Ok(Verdict::Fail),
        }
    }

    /// Another token than the refused one: of somebody who was faster, of a refresh, of a new grant.
    /// In a task of its own, so that a rotated token is not lost with the request.
    async fn renew(
        self: Arc<Self>,
        challenge: &Challenge<'_>,
        asked: Asked,
    ) -> Result<Verdict, AuthorizeError> {
        let (refused, attempt) = (challenge.generation, challenge.attempt);
        in_task(async move {
            let _turn = self.turn.lock().await;
            if self.has_newer(refused).await? {
                return Ok(Verdict::Retry);
            }
            let refreshed = match self.current() {
                // A refreshed token that is refused as well: the issuer may be another one by now.
                Some((_, Held::Source(source))) if attempt <= refreshes(&source) => {
                    self.refresh(&source, refused).await?
                }
                _ => false,
            };
            if !refreshed {
                self.grant(&asked, None).await?;
            }
            Ok(Verdict::Retry)
        })
        .await
    }

    /// Whether somebody was faster: another token than the refused one can be sent.
    async fn has_newer(&self, refused: u64) -> Result<bool, AuthorizeError> {
        let Some((number, presented)) = self.present().await? else { return Ok(false) };
        Ok(generation(number, presented.serial) != refused)
    }

    /// Whether there is another token of the same credential now.
    async fn refresh(&self, source: &TokenSource, refused: u64) -> Result<bool, AuthorizeError> {
        match source.refused(refused & 0xffff_ffff).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == TokenErrorKind::SignIn && self.grantor.is_some() => {
                Ok(false)
            }
            Err(error) => Err(self.token_failed(&error)),
        }
    }

    /// New tokens with the scopes that are held and those that are wanted.
    async fn step_up(
        self: Arc<Self>,
        challenge: &Challenge<'_>,
        asked: Asked,
    ) -> Result<Verdict, AuthorizeError> {
        let operation = name_of(challenge.operation);
        let refused = challenge.generation;
        in_task(async move {
            let _turn = self.turn.lock().await;
            if self.has_newer(refused).await? {
                return Ok(Verdict::Retry);
            }
            let held = self.current().and_then(|(_, held)| held.scopes()).unwrap_or_default();
            let wanted = asked.scopes.as_ref();
            if self.grantor.is_none() {
                return Err(needs_scopes(wanted, &held, &self.settings.sign_in_command));
            }
            let all = {
                self.stepped_up.store(true, Ordering::Relaxed);
                let mut step_ups = self.step_ups.lock().unwrap_or_else(PoisonError::into_inner);
                step_ups.ask(&operation, &held, wanted)
            };
            let all = all.map_err(|error| self.failed(error))?;
            self.grant(&asked, Some(&all)).await?;
            Ok(Verdict::Retry)
        })
        .await
    }

    /// Asks the grantor, and holds what it gives.
    async fn grant(
        self: &Arc<Self>,
        asked: &Asked,
        held: Option<&Scopes>,
    ) -> Result<(), AuthorizeError> {
        let command = &self.settings.sign_in_command;
        let Some(grantor) = &self.grantor else { return Err(not_signed_in(command)) };
        let registered = self.registered().await;
        let wish = Wish {
            settings: &self.settings,
            network: &self.network,
            asked,
            held,
            registered: &registered,
        };
        let signed_in = grantor.grant(wish).await;
        let signed_in = signed_in.map_err(|error: GrantError| grant_failed(error, command))?;
        let held = match grantor.is_kept() {
            true => self.keep(signed_in).await?,
            false => Held::granted(signed_in, self.network.now()),
        };
        self.hold(held);
        Ok(())
    }

    /// Stores a sign-in, and makes a source of it.
    async fn keep(&self, signed_in: SignedIn) -> Result<Held, AuthorizeError> {
        let (key, grant) = held::stored(&signed_in, &self.network);
        let vault = self.vault.clone();
        let record = spawn_blocking(move || vault.sign_in(&key, grant)).await;
        let record = match record {
            Ok(record) => record.map_err(|error| store_failed(Arc::new(error)))?,
            Err(_) => return Err(interrupted()),
        };
        self.source(record, Some(Arc::clone(&signed_in.endpoint.metadata)))
    }
}

/// After so many refusals of one request a refresh makes sense: with DPoP the first ones may have
/// been about nonces.
fn refreshes(source: &TokenSource) -> u32 {
    if source.dpop().is_some() { 1 + NONCES } else { 1 }
}

async fn in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, AuthorizeError>> + Send + 'static,
) -> Result<T, AuthorizeError> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(interrupted()))
}

fn interrupted() -> AuthorizeError {
    AuthorizeError::new(ErrorKind::Transport, "the runtime was shut down meanwhile")
}
