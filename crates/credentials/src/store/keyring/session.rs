//! One conversation with the Secret Service.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::Duration;

use plenipo_redact::Secret;
use secret_service::{Collection, EncryptionType, Error, Item, SecretService};
use zbus::Connection;
use zbus::connection::Builder;
use zbus::fdo::DBusProxy;

use super::super::MAX_RECORD_BYTES;
use crate::error::StoreFault;
use crate::key::RecordId;

/// What an item is found by, beside its record's id.
const SCHEMA: (&str, &str) = ("xdg:schema", "plenipo.Credential");
const RECORD: &str = "record";
const SERVICE: &str = "org.freedesktop.secrets";

/// Where the Secret Service is, and for how long it may be silent.
#[derive(Clone, Copy)]
pub(super) struct Bus<'a> {
    pub(super) address: Option<&'a str>,
    pub(super) patience: Duration,
}

/// Fails as whatever would be done with the keyring would.
pub(super) fn look(bus: Bus<'_>) -> Result<(), StoreFault> {
    apart(with_keyring(bus, async |_| Ok(())))
}

pub(super) fn load(bus: Bus<'_>, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreFault> {
    apart(with_keyring(bus, async |keyring| {
        let found = keyring.search_items(HashMap::from([SCHEMA, (RECORD, id.as_str())])).await?;
        match found.as_slice() {
            [] => Ok(None),
            [item] => read(item).await.map(Some),
            // Never made here: a save replaces. Which of them is good cannot be told.
            _ => Err(StoreFault::Corrupt { what: "item, which is there twice," }),
        }
    }))
}

pub(super) fn ids(bus: Bus<'_>) -> Result<Vec<RecordId>, StoreFault> {
    apart(with_keyring(bus, async |keyring| {
        let mut ids = Vec::new();
        for item in keyring.search_items(HashMap::from([SCHEMA])).await? {
            ids.extend(id_of(&item).await?);
        }
        Ok(ids)
    }))
}

/// A record, or why it cannot be read.
pub(super) type Text = Result<Secret<Vec<u8>>, StoreFault>;

pub(super) fn all(bus: Bus<'_>) -> Result<Vec<(RecordId, Text)>, StoreFault> {
    apart(with_keyring(bus, async |keyring| {
        let mut all = Vec::new();
        for item in keyring.search_items(HashMap::from([SCHEMA])).await? {
            if let Some(id) = id_of(&item).await? {
                all.push((id, read(&item).await));
            }
        }
        Ok(all)
    }))
}

/// One request: who reads finds the old record or the new one.
pub(super) fn save(
    bus: Bus<'_>,
    id: &RecordId,
    record: &Secret<Vec<u8>>,
) -> Result<(), StoreFault> {
    apart(with_keyring(bus, async |keyring| {
        let attributes = HashMap::from([SCHEMA, (RECORD, id.as_str())]);
        let (label, record) = (label(id), record.expose());
        let made = keyring.create_item(&label, attributes, record, true, "application/json").await;
        made.map(drop).map_err(StoreFault::from)
    }))
}

/// Shown in the desktop's own list of passwords.
pub(super) fn label(id: &RecordId) -> String {
    format!("Plenipo {}", id.as_str().get(..12).unwrap_or_default())
}

async fn id_of(item: &Item<'_>) -> Result<Option<RecordId>, StoreFault> {
    let attributes = item.get_attributes().await?;
    Ok(attributes.get(RECORD).and_then(|id| RecordId::parse(id)))
}

async fn read(item: &Item<'_>) -> Text {
    let text = item.get_secret().await?;
    match text.len() > MAX_RECORD_BYTES {
        true => Err(StoreFault::TooLong),
        false => Ok(Secret::new(text)),
    }
}

/// Does `work` with the default keyring, if there is one and it is not locked.
async fn with_keyring<T>(
    bus: Bus<'_>,
    work: impl AsyncFnOnce(&Collection<'_>) -> Result<T, StoreFault>,
) -> Result<T, StoreFault> {
    let conversation = async {
        let bus = connect(bus.address).await?;
        if !has_service(&bus).await? {
            return Err(StoreFault::NoKeyring { reason: "the session bus has no Secret Service" });
        }
        // What goes over the bus is encrypted: others can listen there.
        let service = SecretService::connect_with_existing(EncryptionType::Dh, bus).await?;
        let keyring = match service.get_default_collection().await {
            Err(Error::NoResult) => {
                let reason = "the Secret Service has no default keyring";
                return Err(StoreFault::NoKeyring { reason });
            }
            keyring => keyring?,
        };
        match keyring.is_locked().await? {
            true => Err(StoreFault::Locked),
            false => work(&keyring).await,
        }
    };
    let outcome = tokio::time::timeout(bus.patience, conversation).await;
    outcome.unwrap_or(Err(StoreFault::NoAnswer { waited: bus.patience }))
}

async fn connect(bus: Option<&str>) -> Result<Connection, StoreFault> {
    const NO_BUS: StoreFault = StoreFault::NoKeyring { reason: "there is no session bus" };
    let builder = Builder::address(bus.ok_or(NO_BUS)?).map_err(Error::from)?;
    match builder.build().await {
        Err(zbus::Error::Connection(error, _)) if error.kind() == io::ErrorKind::NotFound => {
            Err(NO_BUS)
        }
        connected => connected.map_err(|error| Error::from(error).into()),
    }
}

/// Whether a Secret Service runs, or can be started by the bus.
async fn has_service(bus: &Connection) -> Result<bool, StoreFault> {
    let proxy = DBusProxy::new(bus).await.map_err(Error::from)?;
    let names = proxy.list_names().await.map_err(Error::from)?;
    if names.iter().any(|name| name.as_str() == SERVICE) {
        return Ok(true);
    }
    let names = proxy.list_activatable_names().await.map_err(Error::from)?;
    Ok(names.iter().any(|name| name.as_str() == SERVICE))
}

/// Runs on a thread of its own, with a runtime of its own: it may be called from within one.
fn apart<T: Send>(
    work: impl Future<Output = Result<T, StoreFault>> + Send,
) -> Result<T, StoreFault> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime?.block_on(work)
    };
    let done = thread::scope(|scope| scope.spawn(run).join());
    done.unwrap_or(Err(StoreFault::Interrupted))
}

impl From<Error> for StoreFault {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked => Self::Locked,
            other => Self::Keyring(Box::new(other)),
        }
    }
}
