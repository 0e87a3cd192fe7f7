//! `mcp_enterprise_managed_auth` and `account`, and what a server with `auth = "enterprise"` says.

use std::path::Path;
use std::time::Duration;

use plenipo_oauth::Issuer;

use crate::client::{ClientProof, refuse_secret};
use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place};
use crate::oauth::{filled, one_of};
use crate::scalar::seconds;

/// `[mcp_enterprise_managed_auth.idp]` or `[account]`: an OpenID provider and our client there. Set in
/// managed and user configuration only, and taken whole from one file.
///
/// | key | type | default |
/// |---|---|---|
/// | `issuer` | URL, to the letter | required |
/// | `client_id` | string | required |
/// | those of [`ClientProof`] | | |
/// | `tenant` | string: the company, at a provider of several | none |
/// | `callback_port` | port, for a client with one redirect address | any free one |
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentityProviderConfig {
    /// `issuer`.
    pub issuer: Issuer,
    /// `client_id`.
    pub client_id: String,
    /// What the client proves itself with.
    pub proof: ClientProof,
    /// `tenant`.
    pub tenant: Option<String>,
    /// `callback_port`.
    pub callback_port: Option<u16>,
}

/// The table `enterprise` of a server with `auth = "enterprise"`.
///
/// | key | type | default |
/// |---|---|---|
/// | `assertion` | `signed` or `encrypted` | `signed` |
/// | `algorithms` | list of JWS algorithms | any that is not symmetric |
/// | `max_token_lifetime_sec` | seconds, 300 at most | 300 |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnterpriseConfig {
    /// `assertion = "encrypted"`.
    pub encrypted: bool,
    /// `algorithms`.
    pub algorithms: Option<Vec<String>>,
    /// `max_token_lifetime_sec`.
    pub max_lifetime: Option<Duration>,
}

#[derive(Default)]
struct Draft {
    issuer: Option<Issuer>,
    client_id: Option<String>,
    proof: ClientProof,
    tenant: Option<String>,
    callback_port: Option<u16>,
}

impl IdentityProviderConfig {
    pub(crate) fn read(node: &Node, place: &Place<'_>) -> Result<Self, ConfigError> {
        let mut draft = Draft::default();
        place.all(node, |key, value, place| draft.take(key, value, place))?;
        draft.finish(node, place)
    }

    /// Files of secrets that it names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.proof.files()
    }
}

impl Draft {
    fn take(&mut self, key: &str, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "issuer" => {
                let issuer = Issuer::parse(&place.string(node)?);
                self.issuer = Some(issuer.map_err(|fault| place.fault(fault.to_string()))?);
            }
            "client_id" => self.client_id = Some(filled(node, place)?),
            "client_secret" => return Err(refuse_secret(place)),
            known if keys::CLIENT.contains(&known) => self.proof.take(key, node, place)?,
            "tenant" => self.tenant = Some(filled(node, place)?),
            "callback_port" => self.callback_port = Some(crate::oauth::port(node, place)?),
            unknown => {
                return Err(place.unknown_key(unknown, keys::identity_provider()));
            }
        }
        Ok(())
    }

    fn finish(self, node: &Node, place: &Place<'_>) -> Result<IdentityProviderConfig, ConfigError> {
        if let Some(misfit) = self.proof.misfit() {
            return Err(place.misfit(node, misfit));
        }
        let lacks = |key: &str| place.fault(format!("has no `{key}`: it is whole or not at all"));
        Ok(IdentityProviderConfig {
            issuer: self.issuer.ok_or_else(|| lacks("issuer"))?,
            client_id: self.client_id.ok_or_else(|| lacks("client_id"))?,
            proof: self.proof,
            tenant: self.tenant,
            callback_port: self.callback_port,
        })
    }
}

/// `mcp_enterprise_managed_auth`, which holds `idp` and nothing else.
pub(crate) fn managed_auth(
    node: &Node,
    place: &Place<'_>,
) -> Result<IdentityProviderConfig, ConfigError> {
    let mut found = None;
    place.all(node, |key, value, place| match key {
        "idp" => IdentityProviderConfig::read(value, place).map(|read| found = Some(read)),
        unknown => Err(place.unknown_key(unknown, ["idp"].into_iter())),
    })?;
    found.ok_or_else(|| place.fault("has no `idp`"))
}

/// `auth`: whether the company manages the server.
pub(crate) fn is_managed(node: &Node, place: &Place<'_>) -> Result<bool, ConfigError> {
    Ok(one_of(&keys::AUTH, node, place)? != "oauth")
}

impl EnterpriseConfig {
    pub(crate) fn read(node: &Node, place: &Place<'_>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        place.each(node, |key, value, place| config.take(key, value, place))?;
        Ok(config)
    }

    fn take(&mut self, key: &str, value: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "assertion" => {
                self.encrypted = one_of(&keys::ASSERTIONS, value, place)? == "encrypted";
            }
            "algorithms" => self.algorithms = Some(algorithms(value, place)?),
            "max_token_lifetime_sec" => self.max_lifetime = Some(lifetime(value, place)?),
            unknown => return Err(place.unknown_key(unknown, keys::ENTERPRISE.into_iter())),
        }
        Ok(())
    }
}

fn algorithms(node: &Node, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
    let before = place.noted();
    let algorithms = place.strings(node)?;
    place.whole(before)?;
    let unknown = |name: &&String| !keys::SIGNING_ALGORITHMS.contains(&name.as_str());
    match algorithms.iter().find(unknown) {
        _ if algorithms.is_empty() => Err(place.fault("is empty: no assertion could be accepted")),
        Some(_) => {
            Err(place.fault(format!("should hold some of {}", keys::SIGNING_ALGORITHMS.join(", "))))
        }
        None => Ok(algorithms),
    }
}

fn lifetime(node: &Node, place: &Place<'_>) -> Result<Duration, ConfigError> {
    let lifetime = seconds(node, place)?;
    match lifetime <= Duration::from_secs(300) {
        true => Ok(lifetime),
        false => Err(place.fault("should be 300 seconds at most")),
    }
}
