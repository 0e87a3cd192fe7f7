//! SHA-256 digests for logs and audit events.
//!
//! Digests name an authority to people. They are never compared to decide anything, and never
//! across implementations: comparisons use the exact text.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, shown as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuthorityDigest([u8; 32]);

impl AuthorityDigest {
    /// The digest of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for AuthorityDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for AuthorityDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Collects fields for one digest so that no two different lists of fields give the same bytes:
/// each is tagged as present or absent and preceded by its length.
pub(crate) struct FieldDigest(Sha256);

impl FieldDigest {
    pub(crate) fn new(domain: &str) -> Self {
        let mut digest = Self(Sha256::new());
        digest.field(Some(domain.as_bytes()));
        digest
    }

    pub(crate) fn field(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.0.update([0]),
            Some(bytes) => {
                self.0.update([1]);
                self.0.update((bytes.len() as u64).to_be_bytes());
                self.0.update(bytes);
            }
        }
    }

    pub(crate) fn finish(self) -> AuthorityDigest {
        AuthorityDigest(self.0.finalize().into())
    }
}
