//! What is wrong with a configuration file.

use std::error::Error;
use std::fmt;

use plenipo_connect::text::harmless;

/// A fault in a configuration file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Dotted key, for example `mcp_servers.x.command`; empty when the file is not TOML.
    pub key: String,
    /// What is wrong there.
    pub reason: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

impl ConfigError {
    /// A fault without a hint.
    #[must_use]
    pub fn new(file: &str, line: usize, key: &str, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, key: key.to_owned(), reason: reason.into(), hint: None }
    }

    /// What to try, as a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file: String = self.file.chars().map(harmless).collect();
        write!(f, "read {file}:{}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.reason)
    }
}

impl Error for ConfigError {}
