//! Why a skill is not used.

use thiserror::Error;

/// What a host must not overlook (skills extension, "Integrity and Verification").
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SkillFault {
    /// Its content is made as it is read: nothing says what it should be.
    #[error("its content is dynamic, so that nothing can be verified")]
    Dynamic,
    /// The entry breaks a rule of the extension.
    #[error("its entry is not valid: {reason}")]
    Entry {
        /// Which.
        reason: &'static str,
    },
    /// Over 512 files.
    #[error("it has {count} files, over the limit of {limit}")]
    TooManyFiles {
        /// How many.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Over 16 MiB.
    #[error("it has {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// Of all files.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The entry does not list the file.
    #[error("its entry does not list `{uri}`")]
    Unlisted {
        /// What was to be read.
        uri: String,
    },
    /// The server gave nothing, or not what can be taken for bytes.
    #[error("`{uri}` has no contents that can be read")]
    NoContents {
        /// What was read.
        uri: String,
    },
    /// The file has another length than the entry says.
    #[error("`{uri}` has {found} bytes, and its entry says {listed}")]
    Size {
        /// What was read.
        uri: String,
        /// By the entry.
        listed: u64,
        /// In fact.
        found: u64,
    },
    /// The file's bytes are others than the entry says.
    #[error("`{uri}` is not what its entry says (SHA-256)")]
    Digest {
        /// What was read.
        uri: String,
    },
    /// `SKILL.md` does not begin with what the entry says.
    #[error("its frontmatter is not what its entry says: {reason}")]
    Frontmatter {
        /// Where they differ, or why it cannot be read.
        reason: String,
    },
}
