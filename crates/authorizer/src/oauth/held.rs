//! The tokens an authorizer has: of a source that refreshes, or of a grant that is made again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plenipo_credentials::{
    AccessToken, CredentialKey, Grant as StoredGrant, Record, SourceOptions, TokenError,
    TokenSource, Vault,
};
use plenipo_oauth::{
    ClientCredential, DpopKey, HttpClient as _, Scopes, ServerMetadata, SignedIn, TokenType,
};
use plenipo_redact::Secret;

use super::network::OAuthNetwork;

/// Before its end a token is not used any more.
const SKEW: Duration = Duration::from_secs(30);

/// One credential.
#[derive(Debug, Clone)]
pub(super) enum Held {
    /// Refreshed when it has to be.
    Source(TokenSource),
    /// Granted, and granted anew when it has ended.
    Granted(Arc<SignedIn>, Option<SystemTime>),
}

/// What is sent.
#[derive(Debug)]
pub(super) struct Presented {
    pub(super) value: Secret<String>,
    pub(super) token_type: TokenType,
    pub(super) dpop: Option<DpopKey>,
    /// Of the token among those of its credential.
    pub(super) serial: u32,
}

impl Held {
    /// A grant of this moment, which ends at half its life or the usual time before its end,
    /// whichever is later.
    pub(super) fn granted(signed_in: SignedIn, now: SystemTime) -> Self {
        let life = signed_in.token.expires_in;
        let ends = life.and_then(|life| now.checked_add(life - SKEW.min(life / 2)));
        Self::Granted(Arc::new(signed_in), ends)
    }

    /// A token that can be sent; `None` when one has to be got first.
    pub(super) async fn present(&self, now: SystemTime) -> Result<Option<Presented>, TokenError> {
        match self {
            Self::Source(source) => {
                let token = match source.fresh() {
                    Some(token) => token,
                    None => source.token().await?,
                };
                Ok(Some(of_source(source, &token)))
            }
            Self::Granted(signed_in, ends) => {
                let is_fresh = ends.is_none_or(|ends| now < ends);
                Ok(is_fresh.then(|| of_response(signed_in)))
            }
        }
    }

    /// What was granted, as far as is known.
    pub(super) fn scopes(&self) -> Option<Scopes> {
        match self {
            Self::Source(source) => source.fresh()?.scopes.clone(),
            Self::Granted(signed_in, _) => signed_in.scopes.clone(),
        }
    }

    /// The key that its tokens are bound to.
    pub(super) fn dpop(&self) -> Option<DpopKey> {
        match self {
            Self::Source(source) => source.dpop().cloned(),
            Self::Granted(signed_in, _) => signed_in.endpoint.dpop.clone(),
        }
    }
}

/// The tokens of a record. `credential` is a key or secret of the configuration, which no store
/// keeps; `metadata` the issuer's, where it is known already.
pub(super) fn source(
    record: Record,
    vault: &Vault,
    network: &OAuthNetwork,
    (credential, metadata): (Option<ClientCredential>, Option<Arc<ServerMetadata>>),
) -> Result<TokenSource, TokenError> {
    let mut options = SourceOptions::new(Arc::new(network.clone()), network.addresses());
    options.credential = credential;
    // A token that lives for seconds is not to be refreshed with every request.
    let lifetime = record
        .grant
        .as_ref()
        .and_then(|grant| grant.expires_at?.duration_since(grant.obtained_at).ok());
    options.skew = lifetime.map_or(SKEW, |lifetime| SKEW.min(lifetime / 2));
    options.metadata = metadata;
    TokenSource::new(record, vault.clone(), options)
}

/// What is kept of a sign-in.
pub fn stored(signed_in: &SignedIn, network: &OAuthNetwork) -> (CredentialKey, StoredGrant) {
    let endpoint = &signed_in.endpoint;
    let client_id = endpoint.client.client_id.clone();
    let issuer = endpoint.metadata.issuer.clone();
    let subject = signed_in.subject.as_ref();
    let key = CredentialKey::new(issuer, signed_in.resource.clone(), client_id)
        .with_subject(subject.map(|subject| subject.subject.clone()));
    let token = signed_in.token.clone();
    let scopes = signed_in.scopes.as_ref();
    let mut grant = StoredGrant::new(endpoint.client.clone(), token, scopes, network.now());
    grant.dpop.clone_from(&endpoint.dpop);
    grant.endpoints_assumed = endpoint.metadata.assumed;
    grant.account = subject.and_then(|subject| subject.name.clone());
    (key, grant)
}

fn of_source(source: &TokenSource, token: &AccessToken) -> Presented {
    Presented {
        value: token.value.clone(),
        token_type: token.token_type,
        dpop: source.dpop().cloned(),
        // Wraps after four thousand million refreshes.
        serial: u32::try_from(token.serial & 0xffff_ffff).unwrap_or_default(),
    }
}

fn of_response(signed_in: &SignedIn) -> Presented {
    let token = &signed_in.token;
    Presented {
        value: token.access_token.clone(),
        token_type: token.token_type,
        dpop: signed_in.endpoint.dpop.clone(),
        serial: 0,
    }
}
