//! The sandbox state: the JSON text with which a host tells a launcher what to enforce.
//!
//! Outer member names are camelCase, inner ones snake_case:
//!
//! ```text
//! { "permissionProfile": {…}, "codexLinuxSandboxExe": path|null, "sandboxCwd": "file:///…",
//!   "useLegacyLandlock": bool, "useMxc": bool,
//!   "plenipoNetwork": {"mode":"limited","domains":{"*.example.org":"allow"}} }
//! ```
//!
//! Reading is strict: a state that is not understood completely is refused, since a part that was
//! skipped may be the part that restricts.

mod file_uri;
mod grammar;
mod members;
mod tree;
mod write;

use std::path::PathBuf;

use crate::error::{StateError, StateErrorKind};
use crate::profile::PermissionProfile;
use crate::resolve::ResolveContext;

/// The longest state text accepted, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// A parsed sandbox state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// What may be read, written and reached.
    pub profile: PermissionProfile,
    /// `sandboxCwd`, decoded: absolute and without `..`; bytes that are not UTF-8 are kept.
    pub cwd: PathBuf,
    /// `codexLinuxSandboxExe`, carried for hosts that want it. Never executed by Plenipo: a policy
    /// does not name its enforcer.
    pub linux_sandbox_executable: Option<String>,
    /// `useLegacyLandlock`; default false.
    pub legacy_landlock: bool,
    /// `useMxc`, which concerns Windows only; default false.
    pub use_mxc: bool,
    /// Outer members that this version does not know, in the order written. Their values are not
    /// kept.
    pub unknown_members: Vec<String>,
}

impl State {
    /// A state with everything else at its default.
    pub fn new(profile: PermissionProfile, cwd: impl Into<PathBuf>) -> Self {
        Self {
            profile,
            cwd: cwd.into(),
            linux_sandbox_executable: None,
            legacy_landlock: false,
            use_mxc: false,
            unknown_members: Vec::new(),
        }
    }

    /// Parses a whole state: one JSON object of at most 16 MiB, with at most 8192 entries and
    /// paths of at most 4096 bytes.
    ///
    /// # Errors
    ///
    /// Names the member at fault by its JSON path. Refused are: text that is not exactly one JSON
    /// object; a key given twice in any object; a missing, mistyped or (inside the permission
    /// profile) unknown member; an unknown word; a path that is relative, too long, or contains
    /// NUL or `..`; a `sandboxCwd` that is not a `file:` URI of this host; a glob with another
    /// access than deny; a deny of an unknown special place; `plenipoNetwork` where the profile does not
    /// restrict the network.
    pub fn parse(json: &str) -> Result<Self, StateError> {
        if json.len() > MAX_TEXT_BYTES {
            let reason = format!("sandbox state is {} bytes, at most 16 MiB", json.len());
            return Err(StateError::new(StateErrorKind::TooLarge, "", reason));
        }
        grammar::state(tree::parse(json)?)
    }

    /// The text that the reference runtime would write for this state: its member order, no
    /// spaces, unknown outer members left out; `plenipoNetwork` last, where the network is limited.
    pub fn to_json(&self) -> String {
        write::state(self)
    }

    /// A context to resolve the profile in: this state's working directory and nothing else.
    pub fn resolve_context(&self) -> ResolveContext {
        ResolveContext::new(self.cwd.clone())
    }
}
