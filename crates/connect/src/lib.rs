//! Connections to MCP servers: configuration, transports, era negotiation, catalog, calls.
//!
//! ```text
//! plenipo.toml ── config ──> StdioCommand ─┐
//!                                          ├─ Connection::start ─> negotiate (probe | initialize)
//! host's choices ──────> ConnectOptions ───┘          │
//!                                                     ├─ catalog()            tools/list, pages
//! CapturedAuthority ──> CallRequest ──────────────────┴─ call()               tools/call
//!                                                            └─> CallOutcome | ConnectError
//! ```
//!
//! One task reads a server's output and hands answers to waiting calls; a caller writes its own
//! request. Everything a peer sends stays raw text, with views on demand. The crate never prints,
//! never reads the process environment, and never enforces a policy; it takes its decisions about
//! authority from [`plenipo_authority`].
//!
//! Now: servers over stdio on this machine. A tokio runtime with I/O and time has to be running.
#![forbid(unsafe_code)]

pub mod call;
pub mod catalog;
pub mod config;
mod connection;
pub mod environment;
mod error;
pub mod launcher;
mod negotiate;
pub mod observer;
mod options;
mod outbox;
mod peer;
mod pending;
mod server_name;
mod text;
pub mod transport;

pub use call::{CallOutcome, CallRequest, Cancellation, Canceller};
pub use catalog::{Catalog, Tool, ToolFilter};
pub use config::{Config, Origin, ServerConfig};
pub use connection::Connection;
pub use error::{ConfigError, ConnectError, ErrorKind, Fault, ListingFault, Operation, PeerError};
pub use launcher::{LauncherProvider, LauncherSource};
pub use negotiate::{Era, EraHint, ServerIdentity};
pub use options::{ClientIdentity, ConnectOptions, Grace};
pub use server_name::ServerName;
pub use transport::stdio::{Exit, ShutdownReport, StdioCommand};
