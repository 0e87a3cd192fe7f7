//! What is asked of the identity provider, and what of the resource's authorization server: one
//! request or a few, each answer checked before the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use plenipo_oauth::error::AssertionFault;
use plenipo_oauth::{
    ExpectedAssertion, Grant, IdentityAssertion, OAuthError, TokenEndpoint, TokenExchange,
    TokenRequest, TokenResponse, TokenType, token_type,
};
use plenipo_redact::Secret;

use crate::clock::Watched;
use crate::error::{EnterpriseError, KnownCode, Party};
use crate::grant::IdentityGrant;
use crate::identity::Pin;
use crate::provider::{IdentityProvider, Network, verified};
use crate::resource::{ManagedServer, Resource};
use crate::select::{Condition, Unselected};

/// Seconds by which clocks differ that matter to an assertion.
const FAR_OFF: u64 = 30;
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The identity provider, asked for one server with one person's identity.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) provider: &'a IdentityProvider,
    pub(crate) endpoint: &'a TokenEndpoint,
    pub(crate) network: &'a Network,
    pub(crate) server: &'a ManagedServer,
    pub(crate) resource: &'a Resource,
    pub(crate) pin: &'a Pin,
    /// Whether the provider takes refresh tokens as subjects, as far as is known.
    pub(crate) takes_refresh_tokens: &'a AtomicBool,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The grant as it has to be kept from now on.
    pub(crate) renewed: Option<IdentityGrant>,
    pub(crate) outcome: Result<IdentityAssertion, EnterpriseError>,
}

/// Whether the provider can do it at all, by what it publishes.
pub(crate) fn check_provider(endpoint: &TokenEndpoint) -> Result<(), EnterpriseError> {
    let metadata = &endpoint.metadata;
    let refused = |fault| Err(EnterpriseError::metadata(Party::IdentityProvider, fault));
    let types = metadata.chaining_token_types.as_deref();
    if types.is_some_and(|types| !types.iter().any(|listed| listed == token_type::ID_JAG)) {
        return refused("it does not issue identity assertions");
    }
    match metadata.offers(TOKEN_EXCHANGE) {
        true => Ok(()),
        false => refused("it does not list the grant of token exchange"),
    }
}

impl Asking<'_> {
    /// The ladder: the refresh token as subject; else the ID token, while it is good; else an ID token
    /// that is refreshed first; else nothing but a sign-in helps.
    pub(crate) async fn ask(&self, grant: IdentityGrant) -> Answered {
        if grant.rejected {
            return Answered::failed(self.unusable(Condition::Rejected));
        }
        if let Some(answered) = self.with_refresh_token(&grant).await {
            return answered;
        }
        if let Some(answered) = self.with_id_token(&grant).await {
            return answered;
        }
        match &grant.refresh_token {
            None => Answered::failed(self.unusable(Condition::Expired)),
            Some(token) => self.with_refreshed_id_token(&grant, token).await,
        }
    }

    /// `None`: the provider does not take refresh tokens, or there is none.
    async fn with_refresh_token(&self, grant: &IdentityGrant) -> Option<Answered> {
        let token = grant.refresh_token.as_ref()?;
        if !self.takes_refresh_tokens.load(Ordering::Relaxed) {
            return None;
        }
        let outcome = self.exchange(token, token_type::REFRESH_TOKEN).await;
        match code_of(&outcome) {
            // Not invalid, but not wanted (RFC 8693 §2.2.2).
            Some(KnownCode::InvalidRequest | KnownCode::Other) => {
                self.takes_refresh_tokens.store(false, Ordering::Relaxed);
                None
            }
            Some(KnownCode::InvalidGrant) => Some(Answered::rejected(grant, outcome)),
            _ => Some(Answered { renewed: None, outcome }),
        }
    }

    /// `None`: there is none that is good, or it is refused and can be refreshed.
    async fn with_id_token(&self, grant: &IdentityGrant) -> Option<Answered> {
        let token = grant.fresh_id_token(self.now())?;
        let outcome = self.exchange(token, token_type::ID_TOKEN).await;
        match code_of(&outcome) {
            Some(KnownCode::InvalidGrant) if grant.refresh_token.is_some() => None,
            Some(KnownCode::InvalidGrant) => Some(Answered::rejected(grant, outcome)),
            _ => Some(Answered { renewed: None, outcome }),
        }
    }

    async fn with_refreshed_id_token(
        &self,
        grant: &IdentityGrant,
        token: &Secret<String>,
    ) -> Answered {
        let request = TokenRequest::new(Grant::RefreshToken(token.clone()), None);
        let answer = self.endpoint.request(&self.network.http(), &request).await;
        let mut answer = match answer.map_err(|error| self.failed(&error)) {
            Ok(answer) => answer,
            Err(error) => {
                let outcome = Err(error);
                return match code_of(&outcome) {
                    Some(KnownCode::InvalidGrant) => Answered::rejected(grant, outcome),
                    _ => Answered { renewed: None, outcome },
                };
            }
        };
        // What was rotated is kept, whatever comes next.
        let mut renewed = grant.clone();
        renewed.refresh_token = answer.refresh_token.take().or(renewed.refresh_token);
        let outcome = match self.adopt(&mut renewed, answer).await {
            Ok(token) => self.exchange(&token, token_type::ID_TOKEN).await,
            Err(error) => Err(error),
        };
        match code_of(&outcome) {
            Some(KnownCode::InvalidGrant) => Answered::rejected(&renewed, outcome),
            _ => Answered { renewed: Some(renewed), outcome },
        }
    }

    /// The ID token of a refresh, if it is about the same person.
    async fn adopt(
        &self,
        renewed: &mut IdentityGrant,
        answer: TokenResponse,
    ) -> Result<Secret<String>, EnterpriseError> {
        let fault = "it has no ID token";
        let token = answer.id_token;
        let token = token.ok_or(EnterpriseError::answer(Party::IdentityProvider, fault))?;
        let source = self.pin.identity.source;
        let subject = verified(self.network, self.endpoint, (&token, None), source).await?;
        if subject.subject != self.pin.identity.subject {
            let fault = AssertionFault::Claim { name: "sub" };
            return Err(EnterpriseError::Assertion { what: "ID token", fault });
        }
        renewed.id_token = Some(token.clone());
        renewed.id_token_expires_at = Some(subject.expires_at);
        Ok(token)
    }

    /// RFC 8693, and every claim of what comes back.
    async fn exchange(
        &self,
        subject: &Secret<String>,
        kind: &str,
    ) -> Result<IdentityAssertion, EnterpriseError> {
        let (resource, at) = (self.resource, &self.resource.endpoint);
        let mut exchange = TokenExchange::new(subject.clone(), kind);
        exchange.requested_token_type = Some(token_type::ID_JAG.to_owned());
        exchange.audience = Some(at.metadata.issuer.as_str().to_owned());
        let request = TokenRequest::new(Grant::TokenExchange(exchange), Some(resource.id.clone()))
            .with_scopes(resource.scopes.clone());
        // The same key as at the resource: the assertion is bound to it.
        let endpoint = self.endpoint.clone().with_dpop(at.dpop.clone());
        let answer = endpoint.request(&self.network.http(), &request).await;
        let answer = answer.map_err(|error| self.failed(&error))?;
        let thumbprint = at.dpop.as_ref().map(plenipo_oauth::DpopKey::thumbprint);
        let mut expected = ExpectedAssertion::new(
            &self.provider.issuer,
            &at.metadata.issuer,
            &at.client.client_id,
            &resource.id,
        );
        expected.scopes = resource.scopes.as_ref();
        expected.tenant = self.provider.tenant.as_deref();
        expected.thumbprint = thumbprint.as_deref();
        expected.algorithms = self.server.algorithms.as_deref();
        expected.encrypted = self.server.encrypted;
        let checked = IdentityAssertion::of(answer, expected, self.now());
        checked.map_err(|error| self.failed(&error))
    }

    fn now(&self) -> SystemTime {
        self.network.client.now()
    }

    fn failed(&self, error: &OAuthError) -> EnterpriseError {
        EnterpriseError::of_oauth(error, Party::IdentityProvider, self.pin.identity.source)
    }

    fn unusable(&self, condition: Condition) -> EnterpriseError {
        Unselected::Unusable { source: self.pin.identity.source, condition }.into()
    }
}

impl Answered {
    fn failed(error: EnterpriseError) -> Self {
        Self { renewed: None, outcome: Err(error) }
    }

    /// The provider does not want to see this grant again.
    fn rejected(
        grant: &IdentityGrant,
        outcome: Result<IdentityAssertion, EnterpriseError>,
    ) -> Self {
        Self { renewed: Some(grant.refused()), outcome }
    }
}

/// Redeems an assertion at the resource's authorization server (RFC 7523), once. Neither resource nor
/// scope is said again: the assertion carries both.
pub(crate) async fn redeem(
    network: &Network,
    (resource, pin): (&Resource, &Pin),
    assertion: IdentityAssertion,
) -> Result<TokenResponse, EnterpriseError> {
    let IdentityAssertion { assertion, scopes, expires_at, .. } = assertion;
    if expires_at.is_some_and(|ends| ends <= network.client.now()) {
        let fault = AssertionFault::Expired;
        return Err(EnterpriseError::Assertion { what: "identity assertion", fault });
    }
    let party = Party::ResourceAuthorization;
    let bound = resource.endpoint.dpop.is_some();
    let grant = if bound { Grant::JwtDpop(assertion) } else { Grant::JwtBearer(assertion) };
    let request = TokenRequest::new(grant, None);
    let watched = Watched::new(&network.client);
    let answer = resource.endpoint.request(&network.http_of(&watched), &request).await;
    let mut answer = answer.map_err(|error| {
        let error = EnterpriseError::of_oauth(&error, party, pin.identity.source);
        with_clock(error, watched.seconds_ahead())
    })?;
    let refused = |fault| Err(EnterpriseError::answer(party, fault));
    match answer.token_type {
        TokenType::Bearer if !bound => {}
        TokenType::Dpop if bound => {}
        _ => return refused("its token is of another type than was asked for"),
    }
    if answer.expires_in.is_some_and(|life| life.is_zero()) {
        return refused("its token has ended already");
    }
    let allowed = scopes.as_ref().or(resource.scopes.as_ref());
    if let (Some(granted), Some(allowed)) = (&answer.scopes, allowed)
        && !allowed.covers(granted)
    {
        return refused("its token holds more scopes than the assertion");
    }
    // The way to another token leads over the identity provider alone.
    answer.refresh_token = None;
    Ok(answer)
}

/// A refused assertion, with the clock that may be the reason.
fn with_clock(error: EnterpriseError, ahead: Option<i64>) -> EnterpriseError {
    match (error, ahead) {
        (
            EnterpriseError::Refused { party, whose, code: code @ KnownCode::InvalidGrant },
            Some(ahead),
        ) if ahead.unsigned_abs() > FAR_OFF => EnterpriseError::Clock { party, whose, code, ahead },
        (error, _) => error,
    }
}

fn code_of<T>(outcome: &Result<T, EnterpriseError>) -> Option<KnownCode> {
    match outcome {
        Err(EnterpriseError::Refused { party: Party::IdentityProvider, code, .. }) => Some(*code),
        _ => None,
    }
}
