//! What a run touched, as it travels: one JSON object a line.

use serde::{Deserialize, Serialize};

/// One thing that was touched. Paths are absolute, and may lead over symbolic links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "did", content = "what")]
#[non_exhaustive]
pub enum Record {
    /// Asked whether it is there, or what it is.
    Look(String),
    /// Opened for reading; a directory for listing.
    Read(String),
    /// Run, or the interpreter of what was run.
    Execute(String),
    /// Opened for writing, without being made.
    Write(String),
    /// Made, renamed, removed or changed otherwise.
    Make(String),
    /// An internet address that was reached or taken: `203.0.113.7:443`.
    Internet(String),
    /// A socket of this machine that was connected to.
    Socket(String),
    /// There was more than is kept, or a path that is no UTF-8.
    Incomplete,
}

impl Record {
    /// The longest line that is read.
    pub(crate) const MAX_LINE: usize = 32 * 1024;
    /// How many different records are kept of one run.
    pub(crate) const MOST: usize = 100_000;
}
