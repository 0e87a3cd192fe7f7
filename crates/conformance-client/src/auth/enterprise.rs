//! Enterprise-managed authorization: the person is signed in already, with the ID token that the
//! suite hands over.

use std::sync::Arc;

use plenipo_connect::enterprise::{EnterpriseAuthorizer, networks};
use plenipo_connect::transport::http::Authorizer;
use plenipo_connect::{HttpClient, HttpEndpoint};
use plenipo_credentials::Store;
use plenipo_enterprise::{
    BearerClient, BearerOptions, Identities, IdentityGrant, IdentityProvider, ManagedServer, Source,
};
use plenipo_oauth::{ClientCredential, ClientRegistration, EndpointUrl, Issuer, check_id_token};
use plenipo_redact::Secret;

use super::text;
use crate::Outcome;
use crate::situation::Situation;

/// Signs in with the suite's ID token, and lets the endpoint use that.
pub(super) fn authorize(
    endpoint: &mut HttpEndpoint,
    situation: &Situation,
    store: Arc<dyn Store>,
) -> Outcome {
    let need = |name: &str| text(situation, name).ok_or(format!("find `{name}` in the context"));
    let issuer = Issuer::parse(&need("idp_issuer")?)?;
    let client_id = need("idp_client_id")?;
    let id_token = Secret::new(need("idp_id_token")?);
    let now = std::time::SystemTime::now();
    // It came from the suite itself; its issuer publishes no keys.
    let subject = check_id_token(&id_token, &issuer, &client_id, None, now)?;
    let mut grant = IdentityGrant::new(now);
    grant.id_token = Some(id_token);
    grant.id_token_expires_at = Some(subject.expires_at);
    let identities = Identities::new(store);
    let begun = identities.begin(Source::Enterprise, &issuer, &client_id)?;
    identities.sign_in(begun, &subject.subject, grant)?;

    let url = EndpointUrl::parse(&situation.url)?;
    let client = super::client(situation)?.ok_or("find `client_id` in the context")?;
    let networks = networks(&HttpClient::default(), &issuer, &url);
    let own = ClientRegistration::configured(client_id, ClientCredential::None);
    let provider = IdentityProvider::new(issuer, own);
    let server = ManagedServer::new(url, client);
    let options = BearerOptions::new(provider, server, identities, networks);
    let authorizer = EnterpriseAuthorizer::new(BearerClient::open(options, None)?);
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    Ok(())
}
