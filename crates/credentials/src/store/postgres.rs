//! A table of PostgreSQL, for deployments of several machines. Records are always encrypted.

mod session;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use plenipo_redact::Secret;
use postgres::error::SqlState;

use super::{Lease, Loaded, MAX_RECORD_BYTES, Store, StoreKind};
use crate::error::{StoreError, StoreFault};
use crate::key::RecordId;
use crate::seal::{self, SealingKey};
use session::{Session, Target};

const CREATE: &str = "create table if not exists plenipo_credentials (
    id text primary key,
    body bytea not null,
    changed_at timestamptz not null default now()
)";
const LOAD: &str = "select body from plenipo_credentials where id = $1";
const IDS: &str = "select id from plenipo_credentials";
const ALL: &str = "select id, body from plenipo_credentials";
const SAVE: &str = "insert into plenipo_credentials (id, body) values ($1, $2)
    on conflict (id) do update set body = excluded.body, changed_at = now()";

/// Records as rows of the table `plenipo_credentials`, which the first sign-in makes; each written
/// under an advisory lock. The lock belongs to the session that writes, so that a lease which was
/// lost with its session cannot write any more. A pooler in between has to pool by session.
///
/// A host that is neither on loopback nor a socket of this machine is spoken to with TLS only, its
/// certificate verified.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    target: Arc<Target>,
    key: SealingKey,
}

#[derive(Debug)]
struct PostgresLease {
    store: PostgresStore,
    session: Session,
    id: RecordId,
}

impl PostgresStore {
    /// The database of a connection string
    /// (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>), its records
    /// encrypted with `key`. Nothing is connected to before it is needed.
    ///
    /// # Errors
    /// [`StoreFault::BadAddress`] for a string that is none, which is not quoted: it may hold a
    /// password.
    pub fn new(
        address: &Secret<String>,
        key: SealingKey,
        tls: Arc<rustls::ClientConfig>,
    ) -> Result<Self, StoreError> {
        Ok(Self { target: Arc::new(Target::parse(address, tls)?), key })
    }

    fn failed(&self, action: &'static str, fault: StoreFault) -> StoreError {
        StoreError::new(action, self.place(), fault)
    }

    fn read(
        &self,
        session: &mut Session,
        id: &RecordId,
    ) -> Result<Option<Secret<Vec<u8>>>, StoreFault> {
        let name = id.as_str().to_owned();
        let row = session.run(move |client| match client.query_opt(LOAD, &[&name]) {
            // Before the first sign-in there is no table.
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
            row => row?.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose(),
        })?;
        row.map(|body| self.opened(id, body)).transpose()
    }

    fn opened(&self, id: &RecordId, body: Vec<u8>) -> Result<Secret<Vec<u8>>, StoreFault> {
        match body.len() {
            length if length > MAX_RECORD_BYTES => Err(StoreFault::TooLong),
            _ => seal::open(Some(&self.key), id, body),
        }
    }
}

impl Store for PostgresStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Postgres
    }

    fn place(&self) -> String {
        self.target.place()
    }

    fn load(&self, id: &RecordId) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        let found = Session::open(&self.target).and_then(|mut session| self.read(&mut session, id));
        found.map_err(|fault| StoreError::new("read", self.place_of(id), fault))
    }

    fn ids(&self) -> Result<Vec<RecordId>, StoreError> {
        let rows = Session::open(&self.target).and_then(|mut session| {
            session.run(|client| match client.query(IDS, &[]) {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
                rows => rows?.iter().map(|row| row.try_get::<_, String>(0)).collect(),
            })
        });
        let rows = rows.map_err(|fault| self.failed("list", fault))?;
        Ok(rows.iter().filter_map(|id| RecordId::parse(id)).collect())
    }

    /// In one session.
    fn all(&self) -> Result<Vec<Loaded>, StoreError> {
        let rows = Session::open(&self.target).and_then(|mut session| {
            session.run(|client| match client.query(ALL, &[]) {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
                rows => rows?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect(),
            })
        });
        let rows: Vec<(String, Vec<u8>)> = rows.map_err(|fault| self.failed("list", fault))?;
        let records = rows.into_iter().filter_map(|(id, body)| {
            let id = RecordId::parse(&id)?;
            let opened = self.opened(&id, body);
            let opened = opened.map_err(|fault| StoreError::new("read", self.place_of(&id), fault));
            Some((id, opened))
        });
        Ok(records.collect())
    }

    fn is_encrypted(&self) -> bool {
        true
    }

    fn lease(&self, id: &RecordId, patience: Duration) -> Result<Box<dyn Lease>, StoreError> {
        let taken = Session::open(&self.target).and_then(|mut session| {
            session.lock(lock_number(id), patience)?;
            Ok(session)
        });
        let session = taken.map_err(|fault| StoreError::new("lease", self.place_of(id), fault))?;
        Ok(Box::new(PostgresLease { store: self.clone(), session, id: id.clone() }))
    }
}

impl Lease for PostgresLease {
    fn load(&mut self) -> Result<Option<Secret<Vec<u8>>>, StoreError> {
        let found = self.store.read(&mut self.session, &self.id);
        found.map_err(|fault| StoreError::new("read", self.store.place_of(&self.id), fault))
    }

    fn save(&mut self, record: &Secret<Vec<u8>>) -> Result<(), StoreError> {
        let written = match record.expose().len() {
            length if length > MAX_RECORD_BYTES / 2 => Err(StoreFault::TooLong),
            _ => seal::seal(Some(&self.store.key), &self.id, record),
        };
        let name = self.id.as_str().to_owned();
        let written = written.and_then(|body| {
            self.session.run(move |client| match client.execute(SAVE, &[&name, &body]) {
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                    // Two first sign-ins at once: one of them makes it.
                    match client.batch_execute(CREATE) {
                        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
                        made => made?,
                    }
                    client.execute(SAVE, &[&name, &body]).map(drop)
                }
                saved => saved.map(drop),
            })
        });
        written.map_err(|fault| StoreError::new("write", self.store.place_of(&self.id), fault))
    }
}

/// The first half of the id's bytes that fit: two records with one number only wait for each other.
fn lock_number(id: &RecordId) -> i64 {
    let digits = id.as_str().get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_default().cast_signed()
}
