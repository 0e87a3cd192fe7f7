//! The store that the configuration names, opened when the first credential is needed.

use std::path::PathBuf;
use std::sync::Arc;

use plenipo_config::{CredentialsConfig, CredentialsStore, Sealing, TextSource};
use plenipo_credentials::{
    DeferredStore, FileStore, KeyringStore, PostgresStore, SealingKey, Store, StoreError,
    StoreKind, Vault,
};

use super::source::{SourceFault, text};
use crate::env;
use crate::failure::with_sources;
use crate::settings::Settings;

/// The user's credentials, in a place that sandboxed commands cannot read. Nothing is opened yet.
pub(crate) fn vault(settings: &Settings) -> Vault {
    let config = settings.credentials();
    let kind = match config.store {
        CredentialsStore::Keyring => StoreKind::Keyring,
        CredentialsStore::Postgres => StoreKind::Postgres,
        _ => StoreKind::File,
    };
    let open = move || open(&config);
    Vault::new(Arc::new(DeferredStore::new(kind, Box::new(open))))
}

/// What the store is made of, as far as the configuration names it.
pub(crate) fn files(config: &CredentialsConfig) -> Vec<PathBuf> {
    let sealing = config.sealing.iter().map(|sealing| match sealing {
        Sealing::Passphrase(source) | Sealing::Key(source) => Some(source),
        _ => None,
    });
    let sources = sealing.flatten().chain(&config.database_url);
    let named = sources.filter_map(|source| match source {
        TextSource::File(path) => Some(path.clone()),
        _ => None,
    });
    named.chain(config.directory.clone()).collect()
}

fn open(config: &CredentialsConfig) -> Result<Arc<dyn Store>, StoreError> {
    match config.store {
        CredentialsStore::Keyring => Ok(Arc::new(keyring()?)),
        CredentialsStore::Postgres => Ok(Arc::new(postgres(config)?)),
        CredentialsStore::File => Ok(Arc::new(file_store(config)?)),
        // A keyring that is there and does not work is an error, and no reason for files.
        _ => match keyring()? {
            keyring if keyring.exists()? => Ok(Arc::new(keyring)),
            _ => Ok(Arc::new(file_store(config)?)),
        },
    }
}

fn keyring() -> Result<KeyringStore, StoreError> {
    // One place for all of the user's sessions, since one keyring is.
    Ok(KeyringStore::new(env::session_bus(), data()?.join("keyring")))
}

fn file_store(config: &CredentialsConfig) -> Result<FileStore, StoreError> {
    let directory: PathBuf = match &config.directory {
        Some(directory) => directory.clone(),
        None => data()?.join("credentials"),
    };
    let failed = |fault| unusable(&directory.display().to_string(), "a passphrase in", fault);
    match &config.sealing {
        None => Ok(FileStore::new(directory)),
        Some(Sealing::Passphrase(source)) => {
            FileStore::with_passphrase(&directory, &text(source).map_err(failed)?)
        }
        Some(Sealing::Key(source)) => {
            let key = key(&directory.display().to_string(), source)?;
            Ok(FileStore::sealed(directory, key))
        }
        Some(_) => Err(StoreError::setting("the credentials", "its encryption is unknown", None)),
    }
}

fn postgres(config: &CredentialsConfig) -> Result<PostgresStore, StoreError> {
    const PLACE: &str = "the credentials database";
    let (Some(address), Some(Sealing::Key(sealing))) = (&config.database_url, &config.sealing)
    else {
        return Err(StoreError::setting(PLACE, "it needs an address and a key", None));
    };
    let address =
        text(address).map_err(|fault| unusable(PLACE, "a connection string in", fault))?;
    let key = key(PLACE, sealing)?;
    let tls = env::http_client_options().tls_config();
    let tls = tls.map_err(|error| StoreError::setting(PLACE, with_sources(&*error), None))?;
    PostgresStore::new(&address, key, tls)
}

fn key(place: &str, source: &TextSource) -> Result<SealingKey, StoreError> {
    let text = text(source).map_err(|fault| unusable(place, "a key in", fault))?;
    SealingKey::parse(&text).map_err(|fault| {
        let hint = "make one with `openssl rand -hex 32`".to_owned();
        StoreError::setting(place, fault.to_string(), Some(hint))
    })
}

fn unusable(place: &str, what: &str, fault: SourceFault) -> StoreError {
    StoreError::setting(place, format!("it needs {what} {fault}"), fault.hint)
}

fn data() -> Result<PathBuf, StoreError> {
    env::data_directory().ok_or_else(|| {
        let hint = "set HOME or XDG_DATA_HOME".to_owned();
        StoreError::setting("the credentials", "no home directory is known", Some(hint))
    })
}
