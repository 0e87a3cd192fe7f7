//! Why a request has no response.

use std::error::Error;
use std::path::PathBuf;

use thiserror::Error;

/// The cause below a failed exchange, as the library that met it says it.
pub type HttpCause = Box<dyn Error + Send + Sync>;

/// Why a request has no response, or its body cannot be read. What a person can do about it depends on what was asked:
/// the caller tells.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientFault {
    /// The URL cannot be used.
    #[error("its url {reason}")]
    Url {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of certificates cannot be read.
    #[error("the certificates in `{}` cannot be read", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: HttpCause,
    },
    /// No connection could be made.
    #[error("{origin} cannot be reached")]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// Name look-up, refusal, TLS.
        #[source]
        source: HttpCause,
    },
    /// The connection ended before the response was complete.
    #[error("the HTTP connection broke before the answer was complete")]
    Broken(#[source] HttpCause),
    /// The body is over the bound.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// The bound.
        limit: usize,
    },
}
