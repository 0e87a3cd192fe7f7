//! One credential as it is kept.

mod stored;

use std::time::{Duration, SystemTime};

use plenipo_oauth::{ClientRegistration, DpopKey, Scopes, TokenResponse, TokenType};
use plenipo_redact::Secret;

use crate::key::CredentialKey;

/// A credential, or the trace of one that was signed out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Record {
    /// What it is named by.
    pub key: CredentialKey,
    /// Counts sign-ins and sign-outs; a refresh leaves it alone.
    pub generation: u64,
    /// What was granted; `None` after a sign-out.
    pub grant: Option<Grant>,
}

/// What an issuer granted. Nothing secret of it is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Grant {
    /// The client that it was granted to. A key that the client signs with is not kept: it is
    /// configured.
    pub client: ClientRegistration,
    /// The access token.
    pub access_token: Secret<String>,
    /// How it is presented.
    pub token_type: TokenType,
    /// The refresh token, unless there is none or it was refused.
    pub refresh_token: Option<Secret<String>>,
    /// When the access token ends by what the issuer said; `None`: it did not say.
    pub expires_at: Option<SystemTime>,
    /// When the access token was issued, by the clock here.
    pub obtained_at: SystemTime,
    /// The scopes that were granted, as far as known.
    pub scopes: Option<Scopes>,
    /// The key that the tokens are bound to.
    pub dpop: Option<DpopKey>,
    /// The ID token, where there was one (OpenID Connect Core §2).
    pub id_token: Option<Secret<String>>,
    /// Who signed in, in words a person knows: a name or an address.
    pub account: Option<String>,
    /// The issuer publishes no metadata: its endpoints are where the MCP revision 2025-03-26 assumes
    /// them ([`ServerMetadata::assumed`](plenipo_oauth::ServerMetadata::assumed)).
    pub endpoints_assumed: bool,
}

impl Record {
    /// A record that was never written: the first sign-in makes it generation 1.
    #[must_use]
    pub fn new(key: CredentialKey) -> Self {
        Self { key, generation: 0, grant: None }
    }
}

impl Grant {
    /// What `response` grants to `client`, at `now`. `asked` are the scopes of the request, which
    /// hold when the response names none (RFC 6749 §5.1).
    #[must_use]
    pub fn new(
        client: ClientRegistration,
        response: TokenResponse,
        asked: Option<&Scopes>,
        now: SystemTime,
    ) -> Self {
        Self {
            client,
            access_token: response.access_token,
            token_type: response.token_type,
            refresh_token: response.refresh_token,
            expires_at: expiry(response.expires_in, now),
            obtained_at: now,
            scopes: response.scopes.or_else(|| asked.cloned()),
            dpop: None,
            id_token: response.id_token,
            account: None,
            endpoints_assumed: false,
        }
    }

    /// The grant after a refresh: what the response does not renew stays (RFC 6749 §6).
    pub(crate) fn refreshed(&self, response: TokenResponse, now: SystemTime) -> Self {
        let mut next = Self::new(self.client.clone(), response, self.scopes.as_ref(), now);
        next.refresh_token = next.refresh_token.or_else(|| self.refresh_token.clone());
        next.id_token = next.id_token.or_else(|| self.id_token.clone());
        next.dpop.clone_from(&self.dpop);
        next.account.clone_from(&self.account);
        next.endpoints_assumed = self.endpoints_assumed;
        next
    }

    /// Whether the access token is good for `skew` longer. One without an end is good until it is
    /// refused; so is one that, by a clock that was set back, was issued in the future.
    #[must_use]
    pub fn is_fresh(&self, now: SystemTime, skew: Duration) -> bool {
        is_fresh(self.expires_at, self.obtained_at, now, skew)
    }
}

pub(crate) fn is_fresh(
    expires_at: Option<SystemTime>,
    obtained_at: SystemTime,
    now: SystemTime,
    skew: Duration,
) -> bool {
    match (expires_at, now.checked_add(skew)) {
        (None, _) => true,
        (Some(_), Some(then)) if obtained_at > then => true,
        (Some(expires_at), then) => then.is_some_and(|then| then < expires_at),
    }
}

/// A lifetime that no clock can hold is no end at all.
fn expiry(expires_in: Option<Duration>, now: SystemTime) -> Option<SystemTime> {
    expires_in.and_then(|lifetime| now.checked_add(lifetime))
}
