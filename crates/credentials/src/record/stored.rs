//! The text of a record. The only place where its secrets are spelled out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plenipo_oauth::{
    AuthenticationMethod, ClientCredential, ClientRegistration, DpopKey, Issuer,
    RegistrationSource, ResourceId, Scopes, TokenType,
};
use plenipo_redact::Secret;
use serde::{Deserialize, Serialize};

use super::{Grant, Record};
use crate::error::StoreFault;
use crate::key::CredentialKey;

/// What this version writes and reads.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRecord {
    format: u32,
    issuer: String,
    resource: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<StoredGrant>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredGrant {
    access_token: String,
    token_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    obtained_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scopes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dpop_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    endpoints_assumed: bool,
    client: StoredClient,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredClient {
    source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redirect_uris: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret_expires_at: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Configured,
    MetadataDocument,
    Dynamic,
}

impl Record {
    /// As JSON, for a store.
    pub(crate) fn encode(&self) -> Result<Secret<Vec<u8>>, StoreFault> {
        let stored = StoredRecord {
            format: FORMAT,
            issuer: self.key.issuer.as_str().to_owned(),
            resource: self.key.resource.as_str().to_owned(),
            client_id: self.key.client_id.clone(),
            subject: self.key.subject.clone(),
            generation: self.generation,
            grant: self.grant.as_ref().map(stored_grant),
        };
        let text = serde_json::to_vec(&stored).map_err(|_| StoreFault::Corrupt { what: "JSON" })?;
        Ok(Secret::new(text))
    }

    /// The reverse. The fault never quotes the text.
    pub(crate) fn decode(text: &Secret<Vec<u8>>) -> Result<Self, StoreFault> {
        let corrupt = |what| StoreFault::Corrupt { what };
        let stored: StoredRecord =
            serde_json::from_slice(text.expose()).map_err(|_| unreadable(text))?;
        if stored.format != FORMAT {
            return Err(StoreFault::Format { found: stored.format });
        }
        let issuer = Issuer::parse(&stored.issuer).map_err(|_| corrupt("issuer"))?;
        let resource = ResourceId::parse(&stored.resource).map_err(|_| corrupt("resource"))?;
        let key = CredentialKey::new(issuer, resource, stored.client_id);
        let key = key.with_subject(stored.subject);
        let grant = stored.grant.map(|grant| read_grant(grant, &key)).transpose()?;
        Ok(Self { key, generation: stored.generation, grant })
    }
}

impl Record {
    /// Whether a text in the store is no credential of a server: it says what else it is.
    pub(crate) fn is_of_another_kind(text: &Secret<Vec<u8>>) -> bool {
        #[derive(Deserialize)]
        struct OnlyKind {
            #[serde(rename = "kind")]
            _kind: String,
        }
        serde_json::from_slice::<OnlyKind>(text.expose()).is_ok()
    }
}

/// A newer version's record is told apart from a broken one.
fn unreadable(text: &Secret<Vec<u8>>) -> StoreFault {
    #[derive(Deserialize)]
    struct OnlyFormat {
        format: u32,
    }
    match serde_json::from_slice::<OnlyFormat>(text.expose()) {
        Ok(OnlyFormat { format }) if format != FORMAT => StoreFault::Format { found: format },
        _ => StoreFault::Corrupt { what: "JSON" },
    }
}

fn stored_grant(grant: &Grant) -> StoredGrant {
    let client = &grant.client;
    let exposed = |secret: &Secret<String>| secret.expose().clone();
    StoredGrant {
        access_token: exposed(&grant.access_token),
        token_type: grant.token_type.as_str().to_owned(),
        refresh_token: grant.refresh_token.as_ref().map(exposed),
        expires_at: grant.expires_at.map(seconds),
        obtained_at: seconds(grant.obtained_at),
        scopes: grant.scopes.as_ref().map(ToString::to_string),
        dpop_key: grant.dpop.as_ref().map(|key| STANDARD.encode(key.stored().expose())),
        id_token: grant.id_token.as_ref().map(exposed),
        account: grant.account.clone(),
        endpoints_assumed: grant.endpoints_assumed,
        client: StoredClient {
            source: match client.source {
                RegistrationSource::MetadataDocument => Source::MetadataDocument,
                RegistrationSource::Dynamic => Source::Dynamic,
                _ => Source::Configured,
            },
            // A configured secret stays in the configuration alone.
            client_secret: match (&client.credential, client.source) {
                (ClientCredential::Secret(secret), RegistrationSource::Dynamic) => {
                    Some(exposed(secret))
                }
                _ => None,
            },
            method: client.method.map(|method| method.as_str().to_owned()),
            issuer: client.issuer.as_ref().map(|issuer| issuer.as_str().to_owned()),
            redirect_uris: client.redirect_uris.clone(),
            secret_expires_at: client.secret_expires_at.map(seconds),
        },
    }
}

fn read_grant(stored: StoredGrant, key: &CredentialKey) -> Result<Grant, StoreFault> {
    let corrupt = |what| StoreFault::Corrupt { what };
    let scopes = stored.scopes.as_deref().map(Scopes::parse).transpose();
    let dpop = stored.dpop_key.map(|key| STANDARD.decode(key)).transpose();
    let dpop = dpop.map_err(|_| corrupt("dpop_key"))?.map(Secret::new).map(DpopKey::from_stored);
    Ok(Grant {
        client: read_client(stored.client, key)?,
        access_token: Secret::new(stored.access_token),
        token_type: TokenType::parse(&stored.token_type).ok_or_else(|| corrupt("token type"))?,
        refresh_token: stored.refresh_token.map(Secret::new),
        expires_at: stored.expires_at.map(time).transpose()?,
        obtained_at: time(stored.obtained_at)?,
        scopes: scopes.map_err(|_| corrupt("scopes"))?,
        dpop: dpop.transpose().map_err(|_| corrupt("dpop_key"))?,
        id_token: stored.id_token.map(Secret::new),
        account: stored.account,
        endpoints_assumed: stored.endpoints_assumed,
    })
}

fn read_client(
    stored: StoredClient,
    key: &CredentialKey,
) -> Result<ClientRegistration, StoreFault> {
    let corrupt = |what| StoreFault::Corrupt { what };
    let credential = stored
        .client_secret
        .map_or(ClientCredential::None, |secret| ClientCredential::Secret(Secret::new(secret)));
    let source = match stored.source {
        Source::Configured => RegistrationSource::Configured,
        Source::MetadataDocument => RegistrationSource::MetadataDocument,
        Source::Dynamic => RegistrationSource::Dynamic,
    };
    let mut client = ClientRegistration::new(key.client_id.clone(), credential, source);
    client.method = match stored.method {
        Some(method) => {
            Some(AuthenticationMethod::parse(&method).ok_or_else(|| corrupt("method"))?)
        }
        None => None,
    };
    let issuer = stored.issuer.as_deref().map(Issuer::parse).transpose();
    client.issuer = issuer.map_err(|_| corrupt("client.issuer"))?;
    client.redirect_uris = stored.redirect_uris;
    client.secret_expires_at = stored.secret_expires_at.map(time).transpose()?;
    Ok(client)
}

/// Since the epoch; a time before it is the epoch.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn time(seconds: u64) -> Result<SystemTime, StoreFault> {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.ok_or(StoreFault::Corrupt { what: "time" })
}
