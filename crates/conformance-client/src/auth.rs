//! Signing in, for the scenarios below `auth/`: the same authorizer as any other host's, with a
//! browser that consents at once.

mod browser;
mod enterprise;

use std::sync::Arc;

use plenipo_connect::oauth::{
    AssertionSource, Granting, Grantor, OAuthAuthorizer, OAuthNetwork, OAuthSettings,
    PersonGrantor, UnattendedGrantor,
};
use plenipo_connect::transport::http::Authorizer;
use plenipo_connect::{HttpClient, HttpEndpoint};
use plenipo_credentials::{FileStore, Vault};
use plenipo_oauth::jose::SigningKey;
use plenipo_oauth::{ClientCredential, ClientRegistration, EndpointUrl};
use plenipo_redact::Secret;
use plenipo_wire::object;
use tempfile::TempDir;

use self::browser::Browser;
use crate::Outcome;
use crate::situation::Situation;

/// The id that the suite expects of a client that has a metadata document.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// An endpoint, and where its credentials are kept as long as the client runs.
pub(crate) struct Ready {
    pub(crate) endpoint: HttpEndpoint,
    pub(crate) store: Option<TempDir>,
}

/// The endpoint with whatever signing in adds to it.
pub(crate) async fn endpoint(situation: &Situation) -> Outcome<Ready> {
    let mut endpoint = HttpEndpoint::new(&situation.url)?;
    if !situation.scenario.starts_with("auth/") {
        return Ok(Ready { endpoint, store: None });
    }
    let store = tempfile::tempdir()?;
    let files = Arc::new(FileStore::new(store.path().join("credentials")));
    if situation.scenario == "auth/enterprise-managed-authorization" {
        enterprise::authorize(&mut endpoint, situation, files)?;
        return Ok(Ready { endpoint, store: Some(store) });
    }
    let server = EndpointUrl::parse(&situation.url)?;
    let network = OAuthNetwork::new(HttpClient::default(), server.clone());
    let mut settings = OAuthSettings::new(server, "plenipo login conformance");
    settings.metadata_document = Some(METADATA_DOCUMENT.to_owned());
    settings.client = client(situation)?;
    let grantor = grantor(situation, &network)?;
    let vault = Vault::new(files);
    let authorizer = OAuthAuthorizer::new(settings, network, vault, Some(grantor)).await?;
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    Ok(Ready { endpoint, store: Some(store) })
}

/// What the context says about a client that was registered beforehand.
fn client(situation: &Situation) -> Outcome<Option<ClientRegistration>> {
    let Some(client_id) = text(situation, "client_id") else { return Ok(None) };
    let credential = match (text(situation, "client_secret"), text(situation, "private_key_pem")) {
        (Some(secret), _) => ClientCredential::Secret(Secret::new(secret)),
        (None, Some(pem)) => {
            let algorithm = text(situation, "signing_algorithm");
            let key = SigningKey::from_pem(&Secret::new(pem), algorithm.as_deref(), None)?;
            ClientCredential::Key(key)
        }
        (None, None) => ClientCredential::None,
    };
    Ok(Some(ClientRegistration::configured(client_id, credential)))
}

fn grantor(situation: &Situation, network: &OAuthNetwork) -> Outcome<Box<dyn Grantor>> {
    Ok(match situation.scenario.as_str() {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => {
            Box::new(UnattendedGrantor::ClientCredentials)
        }
        "auth/wif-jwt-bearer" => {
            let jwt = text(situation, "valid_jwt").ok_or("find `valid_jwt` in the context")?;
            let source = Arc::new(Given(Secret::new(jwt)));
            Box::new(UnattendedGrantor::Workload(source))
        }
        _ => Box::new(PersonGrantor::new(Arc::new(Browser::new(network.clone())))),
    })
}

fn text(situation: &Situation, name: &str) -> Option<String> {
    situation.context(name).and_then(object::text).map(Into::into)
}

/// A JWT from the context.
#[derive(Debug)]
struct Given(Secret<String>);

impl AssertionSource for Given {
    fn assertion(&self) -> Granting<'_, Secret<String>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
