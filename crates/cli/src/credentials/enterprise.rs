//! The company's identity provider, and connections to the servers that it manages.

use std::sync::Arc;

use plenipo_config::{EnterpriseConfig, HttpSettings, IdentityProviderConfig};
use plenipo_connect::enterprise::{EnterpriseAuthorizer, kind, networks};
use plenipo_connect::transport::http::Authorizer;
use plenipo_connect::{HttpClient, HttpEndpoint, ServerName};
use plenipo_credentials::Vault;
use plenipo_enterprise::{
    BearerClient, BearerOptions, EnterpriseError, Identities, IdentityProvider, ManagedServer,
};
use plenipo_oauth::{ClientRegistration, EndpointUrl};

use crate::failure::{Code, Failure, with_sources};
use crate::settings::Settings;

/// The section that `plenipo enterprise` is about.
pub(crate) const ENTERPRISE: &str = "mcp_enterprise_managed_auth.idp";
/// The section that `plenipo account` is about.
pub(crate) const ACCOUNT: &str = "account";

/// A configured provider, with what our client proves itself with.
pub(crate) fn provider(
    section: &str,
    config: &IdentityProviderConfig,
) -> Result<IdentityProvider, Failure> {
    let credential = super::credential(&format!("`{section}`"), &config.proof)?;
    let mut client = ClientRegistration::configured(config.client_id.clone(), credential);
    client.method = config.proof.method;
    client.issuer = Some(config.issuer.clone());
    let mut provider = IdentityProvider::new(config.issuer.clone(), client);
    provider.tenant.clone_from(&config.tenant);
    Ok(provider)
}

/// What connections to the company's servers have in common.
#[derive(Debug)]
pub(crate) struct Company<'a> {
    pub(crate) provider: Option<&'a IdentityProviderConfig>,
    pub(crate) http: &'a HttpClient,
    pub(crate) vault: &'a Vault,
    /// `--as`.
    pub(crate) person: Option<&'a str>,
}

/// Lets a connection use the token that the company's identity provider gives; nobody is asked, and
/// there is no other way.
pub(crate) fn authorize(
    name: &ServerName,
    endpoint: &mut HttpEndpoint,
    (config, enterprise): (&HttpSettings, &EnterpriseConfig),
    company: &Company<'_>,
) -> Result<(), Failure> {
    let Some(section) = company.provider else { return Err(no_provider(name)) };
    let provider = provider(ENTERPRISE, section)?;
    let Ok(url) = EndpointUrl::parse(&endpoint.url().to_string()) else {
        return Err(Failure::usage(format!(
            "server `{name}` is at {}, where no token may go: only https, or http on loopback",
            endpoint.origin()
        )));
    };
    let client = super::client(name, &config.oauth)?;
    let client = client.ok_or_else(|| {
        Failure::usage(format!(
            "server `{name}` has `auth = \"enterprise\"`, but no `oauth.client_id`"
        ))
    })?;
    let networks = networks(company.http, &provider.issuer, &url);
    let mut server = ManagedServer::new(url, client);
    server.resource.clone_from(&config.oauth.resource);
    server.issuer.clone_from(&config.oauth.issuer);
    server.scopes.clone_from(&config.oauth.scopes);
    server.dpop = config.oauth.dpop;
    server.algorithms.clone_from(&enterprise.algorithms);
    server.encrypted = enterprise.encrypted;
    server.max_lifetime = enterprise.max_lifetime.unwrap_or(server.max_lifetime);
    let identities = Identities::new(Arc::clone(company.vault.store()));
    let options = BearerOptions::new(provider, server, identities, networks);
    let client = BearerClient::open(options, company.person)
        .map_err(|error| failed(&format!("failed to authorize server `{name}`"), &error))?;
    endpoint.authorizer(Arc::new(EnterpriseAuthorizer::new(client)) as Arc<dyn Authorizer>);
    Ok(())
}

/// `what` failed: class, message and what to do.
pub(crate) fn failed(what: &str, error: &EnterpriseError) -> Failure {
    let class = error.class();
    let text = format!("{what}: {}: {}", class.as_str(), with_sources(error));
    Failure::new(Code::of(kind(class)), text).with_hint(error.hint())
}

/// Servers that the company manages, by name.
pub(crate) fn servers(settings: &Settings) -> Vec<String> {
    let mut names: Vec<_> = settings.server_names().map(ToString::to_string).collect();
    names.sort();
    names.dedup();
    names.retain(|name| {
        let config = settings.server(name).and_then(|(_, config)| config.ok());
        config.is_some_and(|config| match &config.transport {
            plenipo_config::TransportSettings::Http(http) => http.enterprise.is_some(),
            _ => false,
        })
    });
    names
}

fn no_provider(name: &ServerName) -> Failure {
    let text = format!("server `{name}` is the company's, and no identity provider is configured");
    Failure::usage(text).with_hint(format!(
        "set `{ENTERPRISE}` in the managed configuration or in yours; a project's does not count"
    ))
}
