//! Signing and reading JWTs (RFC 7515, 7517, 7519), with ring doing the cryptography.

mod claims;
mod key;
mod verify;

pub use claims::{Claims, Decoded, decode};
pub use key::SigningKey;
pub(crate) use key::{base64url, random_text, sha256};
pub use verify::PublicKeys;
