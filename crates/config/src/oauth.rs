//! What a configuration says about signing in to a server.

use std::path::Path;

use plenipo_oauth::{AuthenticationMethod, EndpointUrl, Issuer, ResourceId, Scopes};

use crate::credentials::{TextSource, once};
use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place, Value};

/// `scopes`, `oauth_resource` and the table `oauth` of a server with `url`.
///
/// | key of `oauth` | type | default |
/// |---|---|---|
/// | `grant` | `authorization_code`, `client_credentials` or `jwt_bearer` | `authorization_code` |
/// | `client_id` | string | a client is registered |
/// | `client_id_metadata_document` | `https` URL | none |
/// | `client_secret_env_var`, `client_secret_file` | name of a variable, absolute path | none |
/// | `private_key_env_var`, `private_key_file` | name of a variable, absolute path, of PEM | none |
/// | `private_key_id` | string: `kid` | none |
/// | `private_key_algorithm` | `ES256`, `RS256` or `EdDSA` | the key's own |
/// | `token_endpoint_auth_method` | `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt` | what the issuer offers |
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
    /// `client_secret_env_var` or `client_secret_file`.
    pub client_secret: Option<TextSource>,
    /// `private_key_env_var` or `private_key_file`: PEM.
    pub private_key: Option<TextSource>,
    /// `private_key_id`.
    pub private_key_id: Option<String>,
    /// `private_key_algorithm`.
    pub private_key_algorithm: Option<String>,
    /// `token_endpoint_auth_method`.
    pub method: Option<AuthenticationMethod>,
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
        let scopes = Scopes::from_tokens(place.strings(node)?);
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
        let sources = [&self.client_secret, &self.private_key, &self.assertion];
        sources.into_iter().filter_map(|source| match source {
            Some(TextSource::File(path)) => Some(path.as_path()),
            _ => None,
        })
    }

    /// A key that names a file, if one does.
    pub(crate) fn file_key(&self) -> Option<&'static str> {
        let sources = [
            ("client_secret_file", &self.client_secret),
            ("private_key_file", &self.private_key),
            ("assertion_file", &self.assertion),
        ];
        let named =
            sources.into_iter().find(|(_, source)| matches!(source, Some(TextSource::File(_))));
        named.map(|(key, _)| key)
    }

    /// What is missing, or too much, for a server that the company manages.
    pub(crate) fn misses_for_enterprise(&self) -> Option<&'static str> {
        let confidential = self.client_secret.is_some() || self.private_key.is_some();
        let faults = [
            (self.client_id.is_none(), "has `auth = \"enterprise\"`, but no `oauth.client_id`"),
            (
                confidential && self.issuer.is_none(),
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

    /// The table; returns the keys in it that are not honoured.
    pub(crate) fn table(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut not_yet = Vec::new();
        for (name, value) in place.table(node)? {
            let member = place.member(name);
            match name.text.as_str() {
                "client_secret" => not_yet.push(
                    "`oauth.client_secret` (name its source in `oauth.client_secret_env_var` or \
                     `oauth.client_secret_file`)"
                        .to_owned(),
                ),
                key => self.take(key, value, &member)?,
            }
        }
        self.check(place)?;
        Ok(not_yet)
    }

    fn take(&mut self, key: &str, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let source = || TextSource::read(key, node, place);
        match key {
            "grant" => self.grant = grant(node, place)?,
            "client_id" => self.client_id = Some(filled(node, place)?),
            "client_id_metadata_document" => {
                self.client_id_metadata_document = Some(document_url(node, place)?);
            }
            "client_secret_env_var" | "client_secret_file" => {
                once(&mut self.client_secret, source()?, place)?;
            }
            "private_key_env_var" | "private_key_file" => {
                once(&mut self.private_key, source()?, place)?;
            }
            "private_key_id" => self.private_key_id = Some(filled(node, place)?),
            "private_key_algorithm" => {
                self.private_key_algorithm = Some(one_of(&keys::KEY_ALGORITHMS, node, place)?);
            }
            "token_endpoint_auth_method" => {
                let method = one_of(&keys::AUTHENTICATION_METHODS, node, place)?;
                self.method = AuthenticationMethod::parse(&method);
            }
            "assertion_env_var" | "assertion_file" => once(&mut self.assertion, source()?, place)?,
            "callback_port" => self.callback_port = Some(port(node, place)?),
            "callback_url" => self.callback_url = Some(callback_url(node, place)?),
            "authorization_server_issuer" => {
                let issuer = Issuer::parse(&place.string(node)?);
                self.issuer = Some(issuer.map_err(|fault| place.fault(fault.to_string()))?);
            }
            "dpop" => self.dpop = place.boolean(node)?,
            unknown => return Err(place.unknown_key(unknown, keys::OAUTH.into_iter())),
        }
        Ok(())
    }

    /// What fits together; nothing is left without effect.
    fn check(&self, place: &Place<'_>) -> Result<(), ConfigError> {
        use AuthenticationMethod as Method;
        let (secret, key) = (self.client_secret.is_some(), self.private_key.is_some());
        let unattended = self.grant != GrantKind::AuthorizationCode;
        let about_key = self.private_key_id.is_some() || self.private_key_algorithm.is_some();
        let by_method = match self.method {
            Some(Method::None) => secret || key,
            Some(Method::SecretBasic | Method::SecretPost) => !secret,
            Some(Method::PrivateKeyJwt) => !key,
            _ => false,
        };
        let faults = [
            (
                (secret || key) && self.client_id.is_none(),
                "has a client's secret or key, but no `client_id`",
            ),
            (secret && key, "has both a secret and a key: a client proves itself with one"),
            (about_key && !key, "says something of a key, but names none: set `private_key_file`"),
            (
                self.method.is_some() && self.client_id.is_none(),
                "has a `token_endpoint_auth_method`, but no `client_id`",
            ),
            (by_method, "has a `token_endpoint_auth_method` that does not fit its secret or key"),
            (
                self.client_id.is_some() && self.client_id_metadata_document.is_some(),
                "has both `client_id` and `client_id_metadata_document`: a client has one id",
            ),
            (unattended && self.client_id.is_none(), "has a `grant` that needs `client_id`"),
            (
                self.grant == GrantKind::ClientCredentials && !secret && !key,
                "has a `grant` that needs the client's secret or key",
            ),
            (
                (self.grant == GrantKind::JwtBearer) != self.assertion.is_some(),
                "needs an assertion for the grant `jwt_bearer`, and for no other",
            ),
            (
                unattended && (self.callback_port.is_some() || self.callback_url.is_some()),
                "has a callback, but a `grant` that no person takes part in",
            ),
        ];
        match faults.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, reason)) => Err(place.fault(*reason)),
            None => Ok(()),
        }
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
