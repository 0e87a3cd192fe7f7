//! What a client proves itself with, wherever a configuration speaks of one: a server's `oauth`, the company's
//! identity provider, the account's.

use std::path::Path;

use plenipo_oauth::AuthenticationMethod;

use crate::credentials::{TextSource, once};
use crate::error::ConfigError;
use crate::keys;
use crate::node::{Misfit, Node, Place};
use crate::oauth::{filled, one_of};

/// A client's secret or key, and how it is shown.
///
/// | key | type | default |
/// |---|---|---|
/// | `client_secret_env_var`, `client_secret_file` | name of a variable, absolute path | none |
/// | `private_key_env_var`, `private_key_file` | name of a variable, absolute path, of PEM | none |
/// | `private_key_id` | string: `kid` | none |
/// | `private_key_algorithm` | `ES256`, `RS256` or `EdDSA` | the key's own |
/// | `token_endpoint_auth_method` | `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt` | what the issuer offers |
///
/// Not both a secret and a key. Keys that end in `_file` are for managed and user configuration only.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClientProof {
    /// `client_secret_env_var` or `client_secret_file`.
    pub secret: Option<TextSource>,
    /// `private_key_env_var` or `private_key_file`: PEM.
    pub private_key: Option<TextSource>,
    /// `private_key_id`.
    pub private_key_id: Option<String>,
    /// `private_key_algorithm`.
    pub private_key_algorithm: Option<String>,
    /// `token_endpoint_auth_method`.
    pub method: Option<AuthenticationMethod>,
}

impl ClientProof {
    /// Whether there is a secret or a key.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        self.secret.is_some() || self.private_key.is_some()
    }

    /// Files that it names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sources().filter_map(|(_, source)| source.file())
    }

    /// The sources it names, with their keys as far as the ending.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&'static str, &TextSource)> {
        let sources = [("client_secret", &self.secret), ("private_key", &self.private_key)];
        sources.into_iter().filter_map(|(key, source)| Some((key, source.as_ref()?)))
    }

    /// Reads one of its keys.
    pub(crate) fn take(
        &mut self,
        key: &str,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<(), ConfigError> {
        match key {
            "client_secret_env_var" | "client_secret_file" => {
                once(&mut self.secret, TextSource::read(key, node, place)?, place)?;
            }
            "private_key_env_var" | "private_key_file" => {
                once(&mut self.private_key, TextSource::read(key, node, place)?, place)?;
            }
            "private_key_id" => self.private_key_id = Some(filled(node, place)?),
            "private_key_algorithm" => {
                self.private_key_algorithm = Some(one_of(&keys::KEY_ALGORITHMS, node, place)?);
            }
            "token_endpoint_auth_method" => {
                let method = one_of(&keys::AUTHENTICATION_METHODS, node, place)?;
                self.method = AuthenticationMethod::parse(&method);
            }
            unknown => return Err(place.unknown_key(unknown, keys::CLIENT.into_iter())),
        }
        Ok(())
    }

    /// What does not fit together, with a key that has a part in it.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        use AuthenticationMethod as Method;
        let (secret, key) = (self.secret.is_some(), self.private_key.is_some());
        let about_key = self.private_key_id.is_some() || self.private_key_algorithm.is_some();
        let by_method = match self.method {
            Some(Method::None) => secret || key,
            Some(Method::SecretBasic | Method::SecretPost) => !secret,
            Some(Method::PrivateKeyJwt) => !key,
            _ => false,
        };
        let faults = [
            (
                secret && key,
                &["private_key_file", "private_key_env_var"][..],
                "has both a secret and a key: a client proves itself with one",
            ),
            (
                about_key && !key,
                &["private_key_id", "private_key_algorithm"],
                "says something of a key, but names none: set `private_key_file`",
            ),
            (
                by_method,
                &["token_endpoint_auth_method"],
                "has a `token_endpoint_auth_method` that does not fit its secret or key",
            ),
        ];
        let found = faults.into_iter().find(|(is_wrong, _, _)| *is_wrong);
        found.map(|(_, keys, reason)| (keys, reason))
    }
}

/// A secret in the clear, in a file that sandboxed commands may read.
pub(crate) fn refuse_secret(place: &Place<'_>) -> ConfigError {
    let mut fault = place.fault("is never read from a configuration file");
    fault.hint = Some(
        "put the secret into an environment variable and name that in `client_secret_env_var`, or into a file \
         that you alone can read (mode 0600) and name that in `client_secret_file`"
            .to_owned(),
    );
    fault
}
