#![forbid(unsafe_code)]
//! Permission profiles: what a sandboxed command may read, write and reach.
//!
//! ```text
//! sandbox state (JSON) ──State::parse──┐
//! [permissions.NAME]  ──PermissionTables┤→ PermissionProfile ──resolve──→ SandboxPolicy
//! :read-only, :workspace, …  ──────────┘     (written)                     (absolute rules)
//! ```
//!
//! This crate decides nothing about the running system: it opens no file, reads no environment
//! variable and follows no symbolic link. Enforcing a [`SandboxPolicy`] is the `launch` crate's
//! business; carrying a state without looking into it is the `authority` crate's.

mod config;
mod error;
mod narrowing;
mod native;
mod network;
mod policy;
mod profile;
mod resolve;
mod roots;
mod state;

pub use config::{PermissionTables, parse_permissions};
pub use error::{
    ConfigError, ConfigErrorKind, ResolveError, ResolveErrorKind, StateError, StateErrorKind,
};
pub use narrowing::Widening;
pub use network::{Denial, Host, HostAccess, HostError, HostPattern, Hosts, PatternError, Route};
pub use policy::{DenyGlob, FileSystemPolicy, Mode, Place, Rule, SandboxPolicy};
pub use profile::{Access, Entry, EntryPath, FileSystem, Missing, Network};
pub use profile::{PermissionProfile, RestrictedFileSystem, Special};
pub use resolve::ResolveContext;
pub use roots::WorkspaceRoots;
pub use state::State;
