//! What may be shown: secrets never, wrapped while they travel and masked where they are displayed; peers' text only
//! once it is harmless.
//!
//! - [`Secret`] holds a value that `Debug` and `Display` never print; reading it takes a visible
//!   [`expose`](Secret::expose).
//! - [`redacted_url`] and [`redacted_header`] mask what may carry a credential in text that is
//!   meant for people: log lines, errors, `--json` output.
//! - [`text`] makes what a peer wrote short, one line, and free of control characters.
//!
//! This is about what gets *printed*. Memory is not wiped and comparison is not constant-time.
//!
//! ```
//! use plenipo_redact::{Secret, redacted_header, redacted_url};
//!
//! let token = Secret::new("s3cr3t".to_owned());
//! assert_eq!(format!("{token} {token:?}"), "[redacted] [redacted]");
//! assert_eq!(token.expose(), "s3cr3t");
//!
//! assert_eq!(
//!     redacted_url("https://ada:pw@example.com/mcp?key=1#top"),
//!     "https://[redacted]@example.com/mcp?[redacted]#[redacted]",
//! );
//! assert_eq!(redacted_header("Authorization", "Bearer abc"), "Bearer [redacted]");
//! assert_eq!(redacted_header("Accept", "text/html"), "text/html");
//! ```
#![forbid(unsafe_code)]

mod header;
mod secret;
pub mod text;
mod url;

pub use header::{is_secret_header, redacted_header};
pub use secret::Secret;
pub use url::redacted_url;

/// What is shown instead.
pub const REDACTED: &str = "[redacted]";
