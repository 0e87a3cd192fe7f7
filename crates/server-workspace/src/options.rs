//! What the operator of the server decides.

use std::ffi::OsString;

use plenipo_authority::OperatorPolicy;
use plenipo_wire::DEFAULT_MAX_MESSAGE_BYTES;

/// What the operator of the server decides. Every value is passed in: this crate reads neither the
/// process environment nor configuration.
///
/// Defaults: a launcher is required, no environment at all, messages up to 16 MiB.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// What happens to a call without a launcher. From managed or user configuration only.
    pub operator: OperatorPolicy,
    /// The server's own environment. A command gets the variables of
    /// [`ALLOWED_ENVIRONMENT`](plenipo_authority::ALLOWED_ENVIRONMENT) from it and no others.
    pub inherited_environment: Vec<(OsString, OsString)>,
    /// Variables that every command gets in addition; never `HOME`, `TMPDIR`, `XDG_*` or
    /// `PLENIPO_*`.
    pub additions: Vec<(OsString, OsString)>,
    /// What the launcher is asked to hold beyond the state.
    pub restrictions: Vec<Restriction>,
    /// The longest message in bytes, in both directions: a longer request is refused, and the
    /// output in a result is cut so that the answer stays below.
    pub max_message_bytes: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            operator: OperatorPolicy::RequireLauncher,
            inherited_environment: Vec::new(),
            additions: Vec::new(),
            restrictions: Vec::new(),
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
        }
    }
}

/// An option of the launcher that can only restrict. A launcher that does not have it runs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restriction {
    /// With its dashes: `--minimum-rung`.
    pub option: &'static str,
    /// What it is set to.
    pub value: String,
    /// The key of the configuration that asks for it, for errors.
    pub key: &'static str,
}

impl Restriction {
    /// Sets `option` to `value`, because of `key`.
    pub fn new(option: &'static str, value: impl Into<String>, key: &'static str) -> Self {
        Self { option, value: value.into(), key }
    }
}
