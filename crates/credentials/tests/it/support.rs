//! A sign-in that is stored, and its source.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plenipo_credentials::{CredentialKey, FileStore, Grant, SourceOptions, TokenSource, Vault};
use plenipo_oauth::{
    AddressPolicy, ClientCredential, ClientRegistration, EndpointUrl, RegistrationSource,
    ResourceId, TokenResponse, TokenType,
};
use plenipo_redact::Secret;

use crate::http::{Loopback, send};

pub(crate) fn key(issuer: &str) -> CredentialKey {
    let resource = ResourceId::parse(&format!("{issuer}/mcp")).expect("a resource");
    let issuer = plenipo_oauth::Issuer::parse(issuer).expect("an issuer");
    CredentialKey::new(issuer, resource, "client-1")
}

/// What the issuer's first answer would be.
pub(crate) fn grant(lifetime: Option<Duration>) -> Grant {
    let source = RegistrationSource::Dynamic;
    let client = ClientRegistration::new("client-1".to_owned(), ClientCredential::None, source);
    let token = Secret::new("access-0".to_owned());
    let mut response = TokenResponse::new(token, TokenType::Bearer);
    response.expires_in = lifetime;
    response.refresh_token = Some(Secret::new("refresh-0".to_owned()));
    let mut grant = Grant::new(client, response, None, SystemTime::now());
    grant.client.issuer = None;
    grant.endpoints_assumed = true;
    grant
}

pub(crate) fn vault(directory: &Path) -> Vault {
    Vault::new(Arc::new(FileStore::new(directory)))
}

/// The keyring of a session bus, with its locks beside the bus.
#[cfg(feature = "keyring")]
pub(crate) fn keyring(bus: &str) -> Vault {
    let socket = Path::new(bus.strip_prefix("unix:path=").expect("a socket"));
    let locks = socket.parent().expect("a directory").join("locks");
    let store = plenipo_credentials::KeyringStore::new(Some(bus.to_owned()), locks);
    Vault::new(Arc::new(store))
}

/// The key that rows are sealed with.
#[cfg(feature = "postgres")]
pub(crate) const KEY: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";

#[cfg(feature = "postgres")]
pub(crate) fn postgres(address: &str) -> Vault {
    let key = plenipo_credentials::SealingKey::parse(&Secret::new(KEY.to_owned())).expect("a key");
    let address = Secret::new(address.to_owned());
    let store = plenipo_credentials::PostgresStore::new(&address, key, tls());
    Vault::new(Arc::new(store.expect("a connection string")))
}

/// Trusts nobody.
#[cfg(feature = "postgres")]
pub(crate) fn tls() -> Arc<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions");
    Arc::new(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// Signs in with `grant`.
pub(crate) fn sign_in(vault: &Vault, issuer: &str, mut grant: Grant) {
    let key = key(issuer);
    grant.client.issuer = Some(key.issuer.clone());
    vault.sign_in(&key, grant).expect("a sign-in is stored");
}

/// The source of what is stored.
pub(crate) fn source(vault: &Vault, issuer: &str, skew: Duration) -> TokenSource {
    let record = vault.record(&key(issuer)).expect("a store").expect("a record");
    let server = EndpointUrl::parse(&format!("{issuer}/mcp")).expect("a URL");
    let mut options = SourceOptions::new(Arc::new(Loopback), AddressPolicy::for_server(&server));
    options.skew = skew;
    TokenSource::new(record, vault.clone(), options).expect("signed in")
}

/// Makes calls of the resource until `wanted` were answered; a 401 asks for another token.
pub(crate) async fn calls(source: &TokenSource, address: &str, wanted: u32) -> u32 {
    let (mut done, mut refused) = (0, 0);
    while done < wanted && refused < 10 {
        let token = source.token().await.expect("a token");
        let (address, value) = (address.to_owned(), token.value.clone());
        let call = move || {
            let value = value.expose();
            let head = format!("GET /mcp HTTP/1.1\r\nAuthorization: Bearer {value}\r\n");
            send(&address, &head, b"").expect("an answer").0
        };
        match tokio::task::spawn_blocking(call).await.expect("the call ends") {
            http::StatusCode::OK => done += 1,
            _ => {
                refused += 1;
                source.refused(token.serial).await.expect("another token");
            }
        }
    }
    done
}
