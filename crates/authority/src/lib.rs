//! The sandbox policy and the launcher that travel with an MCP tool call: both sides.
//!
//! A host that wants a server's commands to run under *its* sandbox policy puts the policy and the
//! path of a launcher into `params._meta` of each `tools/call`. This crate writes and reads these
//! entries, remembers what was said, and builds the command line that enforces it. It never parses
//! the policy, starts a process, does I/O on the network or reads the process environment.
//!
//! | `_meta` key | value | sent to |
//! |---|---|---|
//! | [`STATE_KEY`] `codex/sandbox-state` | the opaque policy: any JSON object | servers that opted in |
//! | [`STATE_ALIAS_KEY`] `codex/sandbox-state-meta` | the same text (deprecated name) | the same |
//! | [`LAUNCHER_KEY`] `codex/sandbox-launcher` | `{"codexExecutable": "/absolute/path"}` | opted-in local stdio servers |
//!
//! # A server: read, build, run
//!
//! ```
//! use plenipo_authority::{AuthorityGuard, CallAuthority, OperatorPolicy, SandboxedCommand};
//! use serde_json::value::RawValue;
//!
//! // `params._meta` of *this* call, as your JSON-RPC layer kept it.
//! let meta = RawValue::from_string(
//!     r#"{"codex/sandbox-state": {"permissionProfile": {"type": "disabled"}},
//!         "codex/sandbox-launcher": {"codexExecutable": "/usr/bin/plenipo"}}"#.to_owned(),
//! )?;
//! let authority = CallAuthority::from_meta(&meta)?;
//!
//! // The policy on an absent launcher is your operator's, never a tool argument.
//! let inherited = [("PATH", "/usr/bin"), ("API_TOKEN", "not for the command")];
//! let command = SandboxedCommand::new(&authority, ["make", "test"], OperatorPolicy::RequireLauncher)?
//!     .with_environment(inherited);
//! assert_eq!(command.program(), "/usr/bin/plenipo");
//! assert_eq!(command.args()[..2], ["sandbox", "--sandbox-state-json"]);
//! assert_eq!(command.args()[3..], ["--", "make", "test"]);
//! assert!(command.is_sandboxed() && command.environment().len() == 1);
//!
//! // Anything that outlives the call keeps the authority that made it.
//! let guard = AuthorityGuard::retain(&authority);
//! guard.ensure_same(&CallAuthority::from_meta(&meta)?)?;
//! assert!(guard.ensure_same(&CallAuthority::absent()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start the program with exactly [`SandboxedCommand::environment`], without a shell, in its own
//! process group. If your SDK hands you a parsed map, use [`CallAuthority::from_map`].
//!
//! # A host: capture once, attach to the call
//!
//! ```
//! use plenipo_authority::{
//!     AuthorityParts, CapturedAuthority, EnvironmentId, SandboxOptIn, SandboxState, ServerReach,
//! };
//! use serde_json::value::RawValue;
//!
//! let capabilities = RawValue::from_string(
//!     r#"{"experimental": {"codex/sandbox-state": {}}}"#.to_owned(),
//! )?;
//! let mut parts = AuthorityParts::new(EnvironmentId::local(), ServerReach::LocalStdio);
//! parts.state = Some(SandboxState::capture(r#"{"n": 1.0e+2}"#)?);
//! parts.opt_in = SandboxOptIn::from_capabilities(&capabilities).advertised;
//! parts.launcher = None; // or VerifiedLauncher::verify(path)
//! let authority = CapturedAuthority::capture(parts);
//!
//! // For each send of this call, first or again: what the caller said about the keys is replaced.
//! let caller = RawValue::from_string(
//!     r#"{"threadId": "t", "codex\/sandbox-state": {"stale": true}}"#.to_owned(),
//! )?;
//! let token = RawValue::from_string("7".to_owned())?;
//! assert_eq!(
//!     authority.attach(Some(&caller), &[("progressToken", &token)])?.get(),
//!     concat!(
//!         r#"{"threadId":"t","progressToken":7,"#,
//!         r#""codex/sandbox-state":{"n": 1.0e+2},"codex/sandbox-state-meta":{"n": 1.0e+2}}"#,
//!     ),
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A state is at most [`SandboxState::MAXIMUM_BYTES`]; as one argument of a command at most
//! [`MAXIMUM_ARGUMENT_BYTES`]. Nesting is not limited: JSON text is skipped without recursion.
//! The one change ever made to a text: CR and LF outside strings become spaces, once, at capture,
//! so that no text can end a line-delimited frame.
#![forbid(unsafe_code)]

mod attachment;
mod captured;
mod consumer;
mod digest;
mod error;
mod launcher;
mod meta;
mod meta_key;
mod opt_in;
mod state;

pub use attachment::{Attachment, EntryName};
pub use captured::{AuthorityParts, CapturedAuthority, CredentialPin, EnvironmentId, ServerReach};
pub use consumer::call::CallAuthority;
pub use consumer::command::{ALLOWED_ENVIRONMENT, MAXIMUM_ARGUMENT_BYTES, SandboxedCommand};
pub use consumer::{guard::AuthorityGuard, policy::OperatorPolicy};
pub use digest::AuthorityDigest;
pub use error::{
    AttachError, AuthorityChanged, AuthorityPart, CallAuthorityError, CapabilityFault,
};
pub use error::{ErrorKind, JsonKind, LauncherFault, Refusal, StateError};
pub use launcher::{SandboxLauncher, VerifiedLauncher};
pub use meta_key::{LAUNCHER_KEY, MetaKeyClass, STATE_ALIAS_KEY, STATE_KEY, classify_meta_key};
pub use {opt_in::SandboxOptIn, state::SandboxState};

/// The page for both sides: what it shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sandbox-metadata.md")]
struct MetadataPage;
