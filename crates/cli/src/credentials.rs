//! Where credentials are kept, and what a configured server's sign-in is about.

use std::sync::Arc;

use plenipo_config::{HttpSettings, OAuthConfig};
use plenipo_connect::oauth::{OAuthAuthorizer, OAuthNetwork, OAuthSettings};
use plenipo_connect::transport::http::{AuthorizeError, Authorizer};
use plenipo_connect::{HttpClient, HttpEndpoint, ServerName};
use plenipo_credentials::{FileStore, Vault};
use plenipo_oauth::{ClientCredential, ClientRegistration, EndpointUrl};
use plenipo_redact::Secret;

use crate::env;
use crate::failure::{Code, Failure};

/// The user's credentials: files in a directory that sandboxed commands cannot read.
pub(crate) fn vault() -> Result<Vault, Failure> {
    let data = env::data_directory().ok_or_else(|| {
        Failure::usage("there is no place for credentials: no home directory is known")
            .with_hint("set HOME or XDG_DATA_HOME")
    })?;
    Ok(Vault::new(Arc::new(FileStore::new(data.join("credentials")))))
}

/// What signing in to a server is about; `None` when its URL is one that no token may go to.
pub(crate) fn settings(
    name: &ServerName,
    endpoint: &HttpEndpoint,
    config: &OAuthConfig,
) -> Result<Option<OAuthSettings>, Failure> {
    let Ok(server) = EndpointUrl::parse(&endpoint.url().to_string()) else { return Ok(None) };
    let mut settings = OAuthSettings::new(server, format!("plenipo login {name}"));
    settings.issuer.clone_from(&config.issuer);
    settings.resource.clone_from(&config.resource);
    settings.scopes.clone_from(&config.scopes);
    settings.client = client(name, config)?;
    Ok(Some(settings))
}

/// Lets a connection use what is stored for its server; nobody is asked.
pub(crate) fn authorize(
    name: &ServerName,
    endpoint: &mut HttpEndpoint,
    config: &HttpSettings,
    http: &HttpClient,
) -> Result<(), Failure> {
    if !config.may_sign_in() {
        return Ok(());
    }
    let Some(settings) = settings(name, endpoint, &config.oauth)? else { return Ok(()) };
    // Without a home directory nothing is stored, and the server's challenge says what it wants.
    let Ok(vault) = vault() else { return Ok(()) };
    let network = OAuthNetwork::new(http.clone(), settings.server.clone());
    let authorizer = OAuthAuthorizer::open(settings, network, vault, None);
    let authorizer = authorizer.map_err(|error| unusable(name, &error))?;
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    Ok(())
}

fn unusable(name: &ServerName, error: &AuthorizeError) -> Failure {
    let text = crate::failure::with_sources(error);
    Failure::new(Code::SignIn, format!("failed to use the credentials of server `{name}`: {text}"))
}

fn client(name: &ServerName, config: &OAuthConfig) -> Result<Option<ClientRegistration>, Failure> {
    let Some(client_id) = &config.client_id else { return Ok(None) };
    let credential = match &config.client_secret_env_var {
        None => ClientCredential::None,
        Some(variable) => {
            let value = env::variable(variable).and_then(|value| value.into_string().ok());
            let value = value.filter(|value| !value.is_empty()).ok_or_else(|| {
                Failure::usage(format!(
                    "server `{name}` needs a client secret in the variable `{variable}`, which is not set"
                ))
            })?;
            ClientCredential::Secret(Secret::new(value))
        }
    };
    let mut client = ClientRegistration::configured(client_id.clone(), credential);
    client.issuer.clone_from(&config.issuer);
    Ok(Some(client))
}
