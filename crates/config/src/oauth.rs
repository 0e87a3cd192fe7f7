//! What a configuration says about signing in to a server.

use plenipo_oauth::{Issuer, ResourceId, Scopes};

use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place, Value};
use crate::scalar::variable_name;

/// `scopes`, `oauth_resource` and the table `oauth` of a server with `url`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OAuthConfig {
    /// `scopes`: asked for instead of what the server suggests.
    pub scopes: Option<Scopes>,
    /// `oauth_resource`: sent instead of what the server publishes.
    pub resource: Option<ResourceId>,
    /// `client_id`: a client that was registered beforehand.
    pub client_id: Option<String>,
    /// `client_secret_env_var`: the variable that holds its secret.
    pub client_secret_env_var: Option<String>,
    /// `callback_port`: where the browser is sent back to.
    pub callback_port: Option<u16>,
    /// `authorization_server_issuer`, to the letter.
    pub issuer: Option<Issuer>,
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

    /// The table; returns the keys in it that are not honoured yet.
    pub(crate) fn table(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut not_yet = Vec::new();
        for (name, value) in place.table(node)? {
            let place = place.member(name);
            match name.text.as_str() {
                "client_id" => self.client_id = Some(filled(&place, place.string(value)?)?),
                "client_secret_env_var" => {
                    let variable = variable_name(&place.string(value)?, &place)?;
                    self.client_secret_env_var = Some(variable);
                }
                "callback_port" => self.callback_port = Some(port(value, &place)?),
                "authorization_server_issuer" => {
                    let issuer = Issuer::parse(&place.string(value)?);
                    self.issuer = Some(issuer.map_err(|fault| place.fault(fault.to_string()))?);
                }
                known if keys::OAUTH_NOT_YET.contains(&known) => {
                    not_yet.push(format!("`oauth.{known}`"));
                }
                unknown => return Err(place.unknown_key(unknown, keys::OAUTH.into_iter())),
            }
        }
        if self.client_secret_env_var.is_some() && self.client_id.is_none() {
            return Err(place.fault("has a client's secret, but no `client_id`"));
        }
        Ok(not_yet)
    }
}

fn filled(place: &Place<'_>, text: String) -> Result<String, ConfigError> {
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => Err(place.fault("is empty, or has a control character")),
        false => Ok(text),
    }
}

fn port(node: &Node, place: &Place<'_>) -> Result<u16, ConfigError> {
    let port = match &node.value {
        Value::Integer { digits, radix } => u16::from_str_radix(digits, *radix).ok(),
        _ => None,
    };
    port.filter(|port| *port > 0).ok_or_else(|| place.fault("should be a port from 1 to 65535"))
}
