//! What a configuration says about signing in to a server.

use std::path::Path;

use plenipo_oauth::{EndpointUrl, Issuer, ResourceId, Scopes};

use crate::client::{ClientProof, refuse_secret};
use crate::credentials::{TextSource, once};
use crate::error::ConfigError;
use crate::keys;
use crate::node::{Misfit, Node, Place, Value};

/// `scopes`, `oauth_resource` and the table `oauth` of a server with `url`.
///
/// | key of `oauth` | type | default |
/// |---|---|---|
/// | `grant` | `authorization_code`, `client_credentials` or `jwt_bearer` | `authorization_code` |
/// | `client_id` | string | a client is registered |
/// | `client_id_metadata_document` | `https` URL | none |
/// | those of [`ClientProof`] | | |
/// | `assertion_env_var`, `assertion_file` | name of a variable, absolute path, of a JWT | none |
/// | `callback_port` | port | any free one |
/// | `callback_url` | URL | `http://127.0.0.1:PORT/callback` |
/// | `authorization_server_issuer` | URL | what the server names |
/// | `dpop` | bool | what the server wants |
///
/// Keys that end in `_file` are for managed and user configuration only.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OAuthConfig {
    /// `scopes`: asked for instead of what the server suggests.
    pub scopes: Option<Scopes>,
    /// `oauth_resource`: sent instead of what the server publishes.
    pub resource: Option<ResourceId>,
    /// `grant`: how tokens are got.
    pub grant: GrantKind,
    /// `client_id`: a client that was registered beforehand.
    pub client_id: Option<String>,
    /// `client_id_metadata_document`: the URL that is our client id where issuers take one.
    pub client_id_metadata_document: Option<String>,
    /// What the client proves itself with.
    pub proof: ClientProof,
    /// `assertion_env_var` or `assertion_file`: the workload's JWT, read anew for each token.
    pub assertion: Option<TextSource>,
    /// `callback_port`: where the browser is sent back to.
    pub callback_port: Option<u16>,
    /// `callback_url`: what the browser is sent back to, as the issuer knows it.
    pub callback_url: Option<EndpointUrl>,
    /// `authorization_server_issuer`, to the letter.
    pub issuer: Option<Issuer>,
    /// `dpop`: bind tokens to a key whether the server wants it or not.
    pub dpop: bool,
}

/// How tokens are got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantKind {
    /// A person signs in (RFC 6749 §4.1).
    #[default]
    AuthorizationCode,
    /// The client acts for itself (RFC 6749 §4.4).
    ClientCredentials,
    /// A workload shows the JWT of its platform (RFC 7523 §2.1).
    JwtBearer,
}

impl OAuthConfig {
    pub(crate) fn scopes(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let before = place.noted();
        let tokens = place.strings(node)?;
        place.whole(before)?;
        let scopes = Scopes::from_tokens(tokens);
        self.scopes = Some(scopes.map_err(|fault| place.fault(fault.to_string()))?);
        Ok(())
    }

    pub(crate) fn resource(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let resource = ResourceId::parse(&place.string(node)?);
        self.resource = Some(resource.map_err(|fault| place.fault(fault.to_string()))?);
        Ok(())
    }

    /// Files of secrets that it names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources().filter_map(|(_, source)| source.file())
    }

    /// A key that names a file, if one does.
    pub(crate) fn file_key(&self) -> Option<String> {
        let named = self.sources().find(|(_, source)| source.file().is_some());
        named.map(|(key, _)| format!("{key}_file"))
    }

    /// The sources it names, with their keys as far as the ending.
    fn sources(&self) -> impl Iterator<Item = (&'static str, &TextSource)> {
        let assertion = self.assertion.as_ref().map(|source| ("assertion", source));
        self.proof.sources().chain(assertion)
    }

    /// What is missing, or too much, for a server that the company manages.
    pub(crate) fn misses_for_enterprise(&self) -> Option<&'static str> {
        let faults = [
            (self.client_id.is_none(), "has `auth = \"enterprise\"`, but no `oauth.client_id`"),
            (
                self.proof.is_confidential() && self.issuer.is_none(),
                "has a client's secret or key, but no `oauth.authorization_server_issuer` it is for",
            ),
            (
                self.grant != GrantKind::AuthorizationCode,
                "has `auth = \"enterprise\"` and an `oauth.grant`",
            ),
            (
                self.callback_port.is_some() || self.callback_url.is_some(),
                "has `auth = \"enterprise\"` and a callback: nobody signs in to the server itself",
            ),
        ];
        faults.into_iter().find(|(is_wrong, _)| *is_wrong).map(|(_, reason)| reason)
    }

    pub(crate) fn table(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        place.all(node, |key, value, place| self.take(key, value, place))?;
        match self.misfit() {
            Some(misfit) => Err(place.misfit(node, misfit)),
            None => Ok(()),
        }
    }

    fn take(&mut self, key: &str, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "client_secret" => return Err(refuse_secret(place)),
            "grant" => self.grant = grant(node, place)?,
            "client_id" => self.client_id = Some(filled(node, place)?),
            "client_id_metadata_document" => {
                self.client_id_metadata_document = Some(document_url(node, place)?);
            }
            known if keys::CLIENT.contains(&known) => self.proof.take(key, node, place)?,
            "assertion_env_var" | "assertion_file" => {
                once(&mut self.assertion, TextSource::read(key, node, place)?, place)?;
            }
            "callback_port" => self.callback_port = Some(port(node, place)?),
            "callback_url" => self.callback_url = Some(callback_url(node, place)?),
            "authorization_server_issuer" => {
                let issuer = Issuer::parse(&place.string(node)?);
                self.issuer = Some(issuer.map_err(|fault| place.fault(fault.to_string()))?);
            }
            "dpop" => self.dpop = place.boolean(node)?,
            unknown => return Err(place.unknown_key(unknown, keys::oauth())),
        }
        Ok(())
    }

    /// What does not fit together; nothing is left without effect.
    fn misfit(&self) -> Option<Misfit> {
        const SECRETS: &[&str] = &[
            "client_secret_env_var",
            "client_secret_file",
            "private_key_env_var",
            "private_key_file",
        ];
        let confidential = self.proof.is_confidential();
        let unattended = self.grant != GrantKind::AuthorizationCode;
        let faults = [
            (
                confidential && self.client_id.is_none(),
                SECRETS,
                "has a client's secret or key, but no `client_id`",
            ),
            (
                self.proof.method.is_some() && self.client_id.is_none(),
                &["token_endpoint_auth_method"],
                "has a `token_endpoint_auth_method`, but no `client_id`",
            ),
            (
                self.client_id.is_some() && self.client_id_metadata_document.is_some(),
                &["client_id_metadata_document"],
                "has both `client_id` and `client_id_metadata_document`: a client has one id",
            ),
            (
                unattended && self.client_id.is_none(),
                &["grant"],
                "has a `grant` that needs `client_id`",
            ),
            (
                self.grant == GrantKind::ClientCredentials && !confidential,
                &["grant"],
                "has a `grant` that needs the client's secret or key",
            ),
            (
                (self.grant == GrantKind::JwtBearer) != self.assertion.is_some(),
                &["assertion_env_var", "assertion_file", "grant"],
                "needs an assertion for the grant `jwt_bearer`, and for no other",
            ),
            (
                unattended && (self.callback_port.is_some() || self.callback_url.is_some()),
                &["callback_port", "callback_url"],
                "has a callback, but a `grant` that no person takes part in",
            ),
        ];
        let found = faults.into_iter().find(|(is_wrong, _, _)| *is_wrong);
        found.map(|(_, keys, reason)| (keys, reason)).or(self.proof.misfit())
    }
}

fn grant(node: &Node, place: &Place<'_>) -> Result<GrantKind, ConfigError> {
    Ok(match one_of(&keys::GRANTS, node, place)?.as_str() {
        "client_credentials" => GrantKind::ClientCredentials,
        "jwt_bearer" => GrantKind::JwtBearer,
        _ => GrantKind::AuthorizationCode,
    })
}

pub(crate) fn one_of(
    words: &[&str],
    node: &Node,
    place: &Place<'_>,
) -> Result<String, ConfigError> {
    let word = place.string(node)?;
    match words.contains(&word.as_str()) {
        true => Ok(word),
        false => Err(place.fault(format!("should be one of {}", words.join(", ")))),
    }
}

pub(crate) fn filled(node: &Node, place: &Place<'_>) -> Result<String, ConfigError> {
    let text = place.string(node)?;
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => Err(place.fault("is empty, or has a control character")),
        false => Ok(text),
    }
}

/// It is the client's id, so that it is kept to the letter. It has a path, and is not on loopback:
/// the issuer reads it.
fn document_url(node: &Node, place: &Place<'_>) -> Result<String, ConfigError> {
    let text = place.string(node)?;
    let url = EndpointUrl::parse(&text).map_err(|fault| place.fault(fault.to_string()))?;
    match text.starts_with("https://") && url.uri().path().len() > 1 {
        true => Ok(text),
        false => Err(place.fault("should be an `https` URL with a path")),
    }
}

/// On loopback with a port, or `https` where something leads back to this machine.
fn callback_url(node: &Node, place: &Place<'_>) -> Result<EndpointUrl, ConfigError> {
    let text = place.string(node)?;
    let url = EndpointUrl::parse(&text).map_err(|fault| place.fault(fault.to_string()))?;
    let has_port = url.uri().port().is_some();
    match (text.starts_with("https://") || has_port) && !text.contains('?') {
        true => Ok(url),
        false => {
            Err(place
                .fault("should be `http` on loopback with a port, or `https`, without a query"))
        }
    }
}

pub(crate) fn port(node: &Node, place: &Place<'_>) -> Result<u16, ConfigError> {
    let port = match &node.value {
        Value::Integer { digits, radix } => u16::from_str_radix(digits, *radix).ok(),
        _ => None,
    };
    port.filter(|port| *port > 0).ok_or_else(|| place.fault("should be a port from 1 to 65535"))
}
