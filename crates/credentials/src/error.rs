//! What can go wrong, in stores and in token sources.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plenipo_oauth::OAuthError;

use crate::store::MAX_RECORD_BYTES;

/// The family of an error, for decisions and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting or a file has to be mended by hand.
    Config,
    /// There is no usable credential: a sign-in mends it.
    SignIn,
    /// Another sign-in or sign-out happened since: connect anew.
    Changed,
    /// A later try may work.
    Transient,
    /// The issuer said no, or broke the protocol.
    Refused,
}

/// A store that cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("failed to {action} {place}")]
#[non_exhaustive]
pub struct StoreError {
    /// `read`, `write`, `list`, `open` or `lease`.
    pub action: &'static str,
    /// The file, the keyring or the database.
    pub place: String,
    /// Why.
    #[source]
    pub fault: StoreFault,
}

/// Why a store cannot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreFault {
    /// The system said no.
    #[error("the system refused")]
    Io(#[from] io::Error),
    /// Others than the owner may read or change it.
    #[error("it has mode {mode:04o}, and only its owner may have access")]
    NotPrivate {
        /// The permission bits.
        mode: u32,
    },
    /// It is a link, and others than the owner may read or change what it leads to.
    #[error("it leads to a directory with mode {mode:04o}, and only its owner may have access")]
    LinkNotPrivate {
        /// The permission bits.
        mode: u32,
    },
    /// It belongs to somebody else.
    #[error("it belongs to user {owner}, not to the user who runs this")]
    NotOwned {
        /// The owner's id.
        owner: u32,
    },
    /// A link, a directory, a device …
    #[error("it is not a regular file")]
    NotAFile,
    /// Somebody else has the lease.
    #[error("another process has been using it for {} s", waited.as_secs())]
    Busy {
        /// For how long the lease was waited for.
        waited: Duration,
    },
    /// The record cannot be read.
    #[error("its {what} cannot be read")]
    Corrupt {
        /// Which part.
        what: &'static str,
    },
    /// The record is another one than the name it is under says: nothing that is done under either name would be done
    /// to all of it.
    #[error("the credential in it belongs under another name")]
    Misplaced,
    /// The record was written by another version.
    #[error("it has format {found}, and this version reads format 1")]
    Format {
        /// The format number.
        found: u32,
    },
    /// The record is too long.
    #[error("it is longer than {MAX_RECORD_BYTES} bytes")]
    TooLong,
    /// The record is encrypted, and no key was given.
    #[error("it is encrypted, and no passphrase or key is configured")]
    Sealed,
    /// The record is not encrypted, although a key was given.
    #[error("it is not encrypted, although a passphrase or key is configured")]
    NotSealed,
    /// The key does not fit, or the record was changed.
    #[error("it was encrypted with another passphrase or key, or it was changed")]
    WrongKey,
    /// The key is none.
    #[error("the key is not 32 bytes in hexadecimal or base64")]
    BadKey,
    /// The database's address is no connection string.
    #[error("its address is not a PostgreSQL connection string with a host")]
    BadAddress,
    /// The database said no, or cannot be reached.
    #[cfg(feature = "postgres")]
    #[error("the database refused")]
    Database(#[from] postgres::Error),
    /// There is no keyring to keep anything in.
    #[error("there is none: {reason}")]
    NoKeyring {
        /// What is missing.
        reason: &'static str,
    },
    /// The keyring is locked.
    #[error("it is locked")]
    Locked,
    /// The keyring said no, or cannot be reached.
    #[cfg(feature = "keyring")]
    #[error("the keyring refused")]
    Keyring(#[source] Box<secret_service::Error>),
    /// Nothing came back in time.
    #[error("it has not answered for {:.1} s", waited.as_secs_f64())]
    NoAnswer {
        /// How long an answer was waited for.
        waited: Duration,
    },
    /// What the store needs is not configured as it has to be.
    #[error("{reason}")]
    Setting {
        /// Reads after "failed to open …: ".
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The session that held the lease is gone.
    #[error("the session with the database was lost, and with it the lease")]
    SessionLost,
    /// No random numbers.
    #[error("the system has no random numbers")]
    Random,
    /// Tokio ended before the work was done.
    #[error("the runtime was shut down meanwhile")]
    Interrupted,
}

/// No token could be had. Clones are shared by everybody who waited for the same refresh.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Nothing is stored, or it was signed out.
    #[error("nobody is signed in to {credential}")]
    NotSignedIn {
        /// Resource and issuer.
        credential: String,
    },
    /// The access token has ended, and there is no refresh token that is any good.
    #[error("the sign-in to {credential} has expired")]
    Expired {
        /// Resource and issuer.
        credential: String,
    },
    /// The access token is refused though its time is not known to be over, and there is no refresh token that is any good.
    #[error("the sign-in to {credential} is not accepted any more")]
    NotAccepted {
        /// Resource and issuer.
        credential: String,
    },
    /// Somebody signed in or out since.
    #[error("the credentials for {credential} changed since the connection was made")]
    Changed {
        /// Resource and issuer.
        credential: String,
    },
    /// The issuer gave no token.
    #[error("failed to refresh the token for {credential}")]
    Refresh {
        /// Resource and issuer.
        credential: String,
        /// Why.
        #[source]
        source: Arc<OAuthError>,
    },
    /// The store failed.
    #[error("failed to use the stored credential for {credential}")]
    Store {
        /// Resource and issuer.
        credential: String,
        /// Why.
        #[source]
        source: Arc<StoreError>,
    },
}

impl StoreError {
    /// A store that cannot be opened for something that its user has to set.
    #[must_use]
    pub fn setting(
        place: impl Into<String>,
        reason: impl Into<String>,
        hint: Option<String>,
    ) -> Self {
        Self::new("open", place, StoreFault::Setting { reason: reason.into(), hint })
    }

    /// A failure at a place: `action` reads after "failed to".
    #[must_use]
    pub fn new(
        action: &'static str,
        place: impl Into<String>,
        fault: impl Into<StoreFault>,
    ) -> Self {
        Self { action, place: place.into(), fault: fault.into() }
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.fault {
            #[cfg(feature = "postgres")]
            StoreFault::Database(_) => ErrorKind::Transient,
            #[cfg(feature = "keyring")]
            StoreFault::Keyring(_) => ErrorKind::Transient,
            StoreFault::Io(_)
            | StoreFault::Busy { .. }
            | StoreFault::NoAnswer { .. }
            | StoreFault::Random
            | StoreFault::SessionLost
            | StoreFault::Interrupted => ErrorKind::Transient,
            _ => ErrorKind::Config,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let place = &self.place;
        match &self.fault {
            StoreFault::NotPrivate { .. } => Some(format!(
                "run `chmod go= {place}` and try again; others could have read it, so sign out and in again then"
            )),
            StoreFault::LinkNotPrivate { .. } => Some(format!(
                "let {place} lead to a directory that is yours alone, or remove it; then sign in again"
            )),
            StoreFault::Locked => Some(
                "unlock it in the desktop session, or set `credentials_store = \"file\"`".to_owned(),
            ),
            StoreFault::NoKeyring { .. } | StoreFault::NoAnswer { .. } => Some(
                "start a Secret Service such as gnome-keyring, or set `credentials_store = \"file\"`"
                    .to_owned(),
            ),
            StoreFault::Setting { hint, .. } => hint.clone(),
            StoreFault::NotOwned { .. } => {
                Some(format!("run as the owner of {place}, or give it to the user who runs this"))
            }
            StoreFault::Corrupt { .. }
            | StoreFault::Misplaced
            | StoreFault::NotSealed
            | StoreFault::TooLong => Some(format!("remove {place} and sign in again")),
            StoreFault::NotAFile => Some(format!("remove {place}")),
            StoreFault::Format { .. } => {
                Some("use the version that wrote it, or sign in again".to_owned())
            }
            StoreFault::Sealed | StoreFault::WrongKey => Some(format!(
                "give the passphrase or key it was encrypted with, or remove {place} and sign in again"
            )),
            _ => None,
        }
    }
}

impl TokenError {
    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotSignedIn { .. } | Self::Expired { .. } | Self::NotAccepted { .. } => {
                ErrorKind::SignIn
            }
            Self::Changed { .. } => ErrorKind::Changed,
            Self::Store { source, .. } => source.kind(),
            Self::Refresh { source, .. } => match source.kind() {
                plenipo_oauth::ErrorKind::SignIn => ErrorKind::SignIn,
                plenipo_oauth::ErrorKind::Transient => ErrorKind::Transient,
                plenipo_oauth::ErrorKind::Config => ErrorKind::Config,
                _ => ErrorKind::Refused,
            },
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store { source, .. } => source.hint(),
            Self::Refresh { source, .. } => source.hint(),
            Self::Changed { .. } => Some("connect to the server again".to_owned()),
            Self::NotSignedIn { .. } | Self::Expired { .. } | Self::NotAccepted { .. } => None,
        }
    }
}
