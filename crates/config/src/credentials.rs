//! `credentials_store` and `[credentials]`: where tokens are kept, and what that place needs.

use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place};
use crate::scalar::{absolute, looked_up};

/// Where credentials are kept. Set in managed and user configuration only.
///
/// | key | of | type | default |
/// |---|---|---|---|
/// | `credentials_store` | | `auto`, `keyring`, `file` or `postgres` | `auto` |
/// | `credentials.directory` | `file`, `auto` | absolute path | the user's data directory |
/// | `credentials.passphrase_file`, `credentials.passphrase_env_var` | `file`, `auto` | absolute path, name of a variable | not encrypted |
/// | `credentials.key_file`, `credentials.key_env_var` | `file`, `auto`, `postgres` | absolute path, name of a variable | not encrypted; `postgres` needs one |
/// | `credentials.database_url_file`, `credentials.database_url_env_var` | `postgres` | absolute path, name of a variable | required |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialsConfig {
    /// `credentials_store`.
    pub store: CredentialsStore,
    /// `directory`, of files.
    pub directory: Option<PathBuf>,
    /// What records are encrypted with.
    pub sealing: Option<Sealing>,
    /// Where the database's connection string is.
    pub database_url: Option<TextSource>,
}

/// Which place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialsStore {
    /// The keyring of the desktop session where there is one, else files.
    #[default]
    Auto,
    /// The keyring of the desktop session.
    Keyring,
    /// Files of one directory.
    File,
    /// A database.
    Postgres,
}

/// What records are encrypted with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sealing {
    /// A passphrase that a person can remember.
    Passphrase(TextSource),
    /// 32 bytes in hexadecimal or base64.
    Key(TextSource),
}

/// Where a text is that no configuration file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextSource {
    /// An environment variable, by name.
    Variable(String),
    /// A file, by absolute path.
    File(PathBuf),
}

/// The two top-level keys while they are read.
#[derive(Debug, Default)]
pub(crate) struct CredentialsDraft {
    store: Option<CredentialsStore>,
    given: Vec<String>,
    read: CredentialsConfig,
    passphrase: Option<TextSource>,
    key: Option<TextSource>,
}

impl CredentialsDraft {
    pub(crate) fn store(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        self.store = Some(match place.string(node)?.as_str() {
            "auto" => CredentialsStore::Auto,
            "keyring" => CredentialsStore::Keyring,
            "file" => CredentialsStore::File,
            "postgres" => CredentialsStore::Postgres,
            _ => {
                let reason = format!("should be one of {}", keys::CREDENTIALS_STORES.join(", "));
                return Err(place.fault(reason));
            }
        });
        Ok(())
    }

    pub(crate) fn table(&mut self, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        place.all(node, |key, value, place| self.take(key, value, place))
    }

    fn take(&mut self, key: &str, value: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        let slot = match key {
            "directory" => {
                self.read.directory = Some(absolute(place, &place.string(value)?)?);
                self.given.push(key.to_owned());
                return Ok(());
            }
            "passphrase_file" | "passphrase_env_var" => &mut self.passphrase,
            "key_file" | "key_env_var" => &mut self.key,
            "database_url_file" | "database_url_env_var" => &mut self.read.database_url,
            unknown => return Err(place.unknown_key(unknown, keys::CREDENTIALS.into_iter())),
        };
        once(slot, TextSource::read(key, value, place)?, place)?;
        self.given.push(key.to_owned());
        Ok(())
    }

    /// What the file says as a whole; `None` when it says nothing.
    pub(crate) fn finish(
        mut self,
        root: &Place<'_>,
    ) -> Result<Option<CredentialsConfig>, ConfigError> {
        if self.store.is_none() && self.given.is_empty() {
            return Ok(None);
        }
        let store = self.store.unwrap_or_default();
        let fault = |reason: String| root.named("credentials").fault(reason);
        let foreign = self.given.iter().find(|key| !store.takes(key));
        if let Some(key) = foreign {
            let reason = format!(
                "has `{key}`, which `credentials_store = \"{}\"` does not take",
                store.as_str()
            );
            return Err(fault(reason));
        }
        self.read.sealing = match (self.passphrase, self.key) {
            (Some(_), Some(_)) => {
                return Err(fault(
                    "has both a passphrase and a key: one of them encrypts".to_owned(),
                ));
            }
            (Some(source), None) => Some(Sealing::Passphrase(source)),
            (None, key) => key.map(Sealing::Key),
        };
        if store == CredentialsStore::Postgres {
            for (missing, what) in [
                (self.read.database_url.is_none(), "database_url"),
                (self.read.sealing.is_none(), "key"),
            ] {
                if missing {
                    return Err(fault(format!(
                        "needs `{what}_env_var` or `{what}_file` for `credentials_store = \"postgres\"`"
                    )));
                }
            }
        }
        self.read.store = store;
        Ok(Some(self.read))
    }
}

impl CredentialsStore {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Keyring => "keyring",
            Self::File => "file",
            Self::Postgres => "postgres",
        }
    }

    fn takes(self, key: &str) -> bool {
        let of_files = ["directory", "passphrase_file", "passphrase_env_var"];
        let sealing = ["key_file", "key_env_var"];
        match self {
            Self::Keyring => false,
            Self::Auto | Self::File => of_files.contains(&key) || sealing.contains(&key),
            Self::Postgres => !of_files.contains(&key),
        }
    }
}

impl TextSource {
    /// The file, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Variable(_) => None,
        }
    }

    /// Of a key whose name ends in `_file` or `_env_var`.
    pub(crate) fn read(key: &str, node: &Node, place: &Place<'_>) -> Result<Self, ConfigError> {
        let text = place.string(node)?;
        match key.ends_with("_file") {
            true => absolute(place, &text).map(Self::File),
            false => looked_up(&text, place).map(Self::Variable),
        }
    }
}

/// A text has one source.
pub(crate) fn once(
    slot: &mut Option<TextSource>,
    source: TextSource,
    place: &Place<'_>,
) -> Result<(), ConfigError> {
    match slot.replace(source) {
        None => Ok(()),
        Some(_) => Err(place.fault("is a second source of the same: name a file or a variable")),
    }
}
