//! Credentials of MCP servers: where they are kept, and how a token stays good.
//!
//! ```text
//!   sign-in ──► Vault::sign_in ──► Store (file, sealed or not; keyring; database)
//!                                     ▲  under a Lease: one writer among all processes
//!   request ──► TokenSource::token ───┘
//!               fresh: from memory, without a lock
//!               stale: one refresh, however many tasks and processes want it
//! ```
//!
//! A credential is named by four things: issuer, resource, client and subject. It has a
//! *generation*, which a sign-in and a sign-out change and a refresh does not: who holds a
//! [`TokenSource`] of one generation is told when there is another, and never given its tokens.
//!
//! The crate speaks HTTP only through the [`HttpClient`](plenipo_oauth::HttpClient) it is given,
//! reads no environment and asks nobody anything. Stores block; [`TokenSource`] calls them on
//! tokio's threads for blocking work, so that a tokio runtime has to be running.
//!
//! Feature `keyring`: `KeyringStore`. Feature `postgres`: `PostgresStore`.
#![forbid(unsafe_code)]

mod error;
mod key;
mod record;
mod seal;
mod source;
mod store;
mod vault;

pub use error::{ErrorKind, StoreError, StoreFault, TokenError};
pub use key::{CredentialKey, RecordId};
pub use record::{Grant, Record};
pub use seal::SealingKey;
pub use source::{AccessToken, SourceOptions, TokenSource, refreshes_settled};
#[cfg(feature = "keyring")]
pub use store::KeyringStore;
#[cfg(feature = "postgres")]
pub use store::PostgresStore;
pub use store::{
    DeferredStore, FileStore, Lease, Loaded, MAX_RECORD_BYTES, Opener, Store, StoreKind,
};
pub use vault::{Owner, Survey, Unread, Vault};
