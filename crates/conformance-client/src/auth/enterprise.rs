//! Enterprise-managed authorization, as far as the suite looks: an ID token is exchanged at the
//! identity provider for an assertion, and that at the resource's authorization server for a token.

use std::sync::Arc;

use plenipo_connect::oauth::{GrantError, Granting, Grantor, Wish};
use plenipo_oauth::{
    ClientCredential, ClientRegistration, ExpectedAssertion, Grant, IdentityAssertion, Issuer,
    Prepared, ServerMetadata, SignedIn, TokenEndpoint, TokenExchange, TokenRequest, token_type,
};
use plenipo_redact::Secret;

use super::text;
use crate::Outcome;
use crate::situation::Situation;

#[derive(Debug)]
pub(super) struct EnterpriseGrantor {
    issuer: Issuer,
    client: ClientRegistration,
    id_token: Secret<String>,
}

impl EnterpriseGrantor {
    pub(super) fn new(situation: &Situation) -> Outcome<Self> {
        let need =
            |name: &str| text(situation, name).ok_or(format!("find `{name}` in the context"));
        Ok(Self {
            issuer: Issuer::parse(&need("idp_issuer")?)?,
            client: ClientRegistration::configured(need("idp_client_id")?, ClientCredential::None),
            id_token: Secret::new(need("idp_id_token")?),
        })
    }

    async fn chain(&self, wish: Wish<'_>) -> Result<SignedIn, GrantError> {
        let http = wish.network.http();
        let options = wish.options("")?;
        // The resource's side first: no credential is touched before it is known.
        let redeem = Grant::JwtBearer(Secret::default());
        let prepared = Prepared::for_grant(&http, &options, &redeem).await?;
        let (audience, resource) =
            (&prepared.discovered.metadata.issuer, &prepared.discovered.resource);
        let identity = ServerMetadata::discover(&http, &self.issuer).await?;
        let endpoint = TokenEndpoint::new(Arc::new(identity), self.client.clone())?;
        let mut exchange = TokenExchange::new(self.id_token.clone(), token_type::ID_TOKEN);
        exchange.requested_token_type = Some(token_type::ID_JAG.to_owned());
        exchange.audience = Some(audience.as_str().to_owned());
        let request = TokenRequest::new(Grant::TokenExchange(exchange), Some(resource.clone()))
            .with_scopes(prepared.scopes.clone());
        let answer = endpoint.request(&http, &request).await?;
        let client_id = &prepared.endpoint.client.client_id;
        let mut expected = ExpectedAssertion::new(&self.issuer, audience, client_id, resource);
        expected.scopes = prepared.scopes.as_ref();
        let assertion = IdentityAssertion::of(answer, expected, http.now())?;
        // Neither resource nor scope again: the assertion carries both.
        let request = TokenRequest::new(Grant::JwtBearer(assertion.assertion), None);
        let token = prepared.endpoint.request(&http, &request).await?;
        Ok(prepared.signed_in(token))
    }
}

impl Grantor for EnterpriseGrantor {
    fn grant<'a>(&'a self, wish: Wish<'a>) -> Granting<'a, SignedIn> {
        Box::pin(self.chain(wish))
    }

    fn is_kept(&self) -> bool {
        false
    }
}
