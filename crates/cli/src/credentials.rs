//! What a configured server's sign-in is about, and how its connection gets tokens.

pub(crate) mod enterprise;
mod source;
mod vault;

use std::path::Path;
use std::sync::Arc;

use plenipo_config::{ClientProof, GrantKind, HttpSettings, OAuthConfig};
use plenipo_connect::oauth::{
    AssertionSource, Grantor, OAuthAuthorizer, OAuthNetwork, OAuthSettings, UnattendedGrantor,
};
use plenipo_connect::transport::http::{AuthorizeError, Authorizer};
use plenipo_connect::{HttpClient, HttpEndpoint, ServerName};
use plenipo_credentials::Vault;
use plenipo_oauth::jose::SigningKey;
use plenipo_oauth::{ClientCredential, ClientRegistration, EndpointUrl};

use crate::failure::{Code, Failure};

use source::{Assertion, text};
pub(crate) use vault::{files, vault};

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
    settings.metadata_document.clone_from(&config.client_id_metadata_document);
    settings.dpop = config.dpop;
    settings.client = client(name, config)?;
    Ok(Some(settings))
}

/// Lets a connection use what is stored for its server, of `account` where that is said, or what its
/// client gets by itself; nobody is asked.
pub(crate) fn authorize(
    name: &ServerName,
    endpoint: &mut HttpEndpoint,
    config: &HttpSettings,
    (http, vault, account): (&HttpClient, &Vault, Option<&str>),
) -> Result<(), Failure> {
    if !config.may_sign_in() {
        return Ok(());
    }
    let Some(mut settings) = settings(name, endpoint, &config.oauth)? else { return Ok(()) };
    settings.account = account.map(str::to_owned);
    let network = OAuthNetwork::new(http.clone(), settings.server.clone());
    let grantor = grantor(name, &config.oauth);
    let authorizer = OAuthAuthorizer::open(settings, network, vault.clone(), grantor);
    let authorizer = authorizer.map_err(|error| unusable(name, &error))?;
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    Ok(())
}

fn unusable(name: &ServerName, error: &AuthorizeError) -> Failure {
    let text = crate::failure::with_sources(error);
    Failure::new(Code::SignIn, format!("failed to use the credentials of server `{name}`: {text}"))
}

/// A grant that no person takes part in.
fn grantor(name: &ServerName, config: &OAuthConfig) -> Option<Box<dyn Grantor>> {
    let unattended = match (config.grant, &config.assertion) {
        (GrantKind::ClientCredentials, _) => UnattendedGrantor::ClientCredentials,
        (GrantKind::JwtBearer, Some(source)) => {
            let assertion = Assertion { server: name.clone(), source: source.clone() };
            UnattendedGrantor::Workload(Arc::new(assertion) as Arc<dyn AssertionSource>)
        }
        _ => return None,
    };
    Some(Box::new(unattended))
}

fn client(name: &ServerName, config: &OAuthConfig) -> Result<Option<ClientRegistration>, Failure> {
    let Some(client_id) = &config.client_id else { return Ok(None) };
    let credential = credential(&format!("server `{name}`"), &config.proof)?;
    let mut client = ClientRegistration::configured(client_id.clone(), credential);
    client.issuer.clone_from(&config.issuer);
    client.method = config.proof.method;
    Ok(Some(client))
}

/// What the client of `whose` proves itself with, read from where it is.
fn credential(whose: &str, proof: &ClientProof) -> Result<ClientCredential, Failure> {
    let needs = |what: &str, fault: source::SourceFault| {
        Failure::usage(format!("{whose} needs {what} {fault}")).with_optional_hint(fault.hint)
    };
    if let Some(source) = &proof.secret {
        let secret = text(source).map_err(|fault| needs("a client secret in", fault))?;
        return Ok(ClientCredential::Secret(secret));
    }
    let Some(source) = &proof.private_key else { return Ok(ClientCredential::None) };
    let pem = text(source).map_err(|fault| needs("a private key in", fault))?;
    let algorithm = proof.private_key_algorithm.as_deref();
    let key = SigningKey::from_pem(&pem, algorithm, proof.private_key_id.clone());
    key.map(ClientCredential::Key).map_err(|error| {
        let place = source::place(source);
        Failure::usage(format!("{whose} has a private key in {place}: {error}"))
    })
}

/// Whether a file that holds a secret is one.
fn is_private(path: &Path, mode: u32) -> Result<(), source::SourceFault> {
    const GROUP_MAY_WRITE_OR_OTHERS_MAY_ANYTHING: u32 = 0o027;
    match mode & GROUP_MAY_WRITE_OR_OTHERS_MAY_ANYTHING {
        0 => Ok(()),
        _ => Err(source::SourceFault {
            place: source::file(path),
            reason: format!("has mode {:04o}, and others may not have access", mode & 0o7777),
            hint: Some("let its owner alone read it, or its owner and group".to_owned()),
        }),
    }
}
