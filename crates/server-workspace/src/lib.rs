//! The built-in MCP server `workspace`: one tool, `run`, that runs a command under the sandbox
//! policy that came with *this* call. It is the reference consumer of [`plenipo_authority`].
//!
//! ```text
//!  stdin ─▶ lines ─▶ requests ─┬─▶ initialize, server/discover, ping, tools/list ──┐
//!                              └─▶ tools/call ─▶ one task a call:                   ├─▶ writer ─▶ stdout
//!                                    authority of the call ─▶ SandboxedCommand      │
//!                                    ─▶ launcher process ─▶ watch ─▶ result ────────┘
//! ```
//!
//! What holds for every call:
//!
//! - State and launcher are read from `_meta` of that call when it is accepted. Tool arguments are
//!   never authority. Without a launcher the call is refused, unless the operator's
//!   [`ServerOptions::operator`] says otherwise; then its result says `enforcement: "none"`.
//! - The command runs without a shell of ours, in its own process group, with an empty stdin and an
//!   environment made of an allow-list and the operator's additions.
//! - Timeout (default 60 s, at most 600 s), cancellation and the end of the connection send SIGTERM
//!   to the group and SIGKILL 500 ms later. When the command has ended, what is left of its group
//!   is killed: nothing that a call started outlives it. A process that left the group can, unless
//!   the launcher ends it.
//! - Output is captured up to 1 MiB for each of stdout and stderr; the rest is read and dropped, and
//!   the result says `truncated`.
//!
//! The connection: at most 64 calls at once; a line that is too long, no JSON or no JSON-RPC is
//! answered with an error and the connection goes on; batches are refused. Both eras are spoken, as
//! each request says: 2024-11-05 … 2025-11-25 with `initialize`, 2026-07-28 with `_meta`.
//!
//! ```
//! use plenipo_server_workspace::{ServerOptions, serve_on};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! let mut answers = Vec::new();
//! runtime.block_on(serve_on(ServerOptions::default(), &call[..], &mut answers))?;
//! assert_eq!(answers, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! # Ok(())
//! # }
//! ```
//!
//! Not here: parsing a policy, enforcing it, reading configuration or the process environment.
#![forbid(unsafe_code)]

mod arguments;
mod call;
mod directory;
mod enforcement;
mod error;
mod group;
mod options;
mod output;
mod probe;
mod progress;
mod protocol;
mod result;
mod server;
mod session;
mod spawn;
mod stdio;
mod text;
mod tool;
mod watch;

pub use error::{ServeError, ServeErrorKind};
pub use options::{Restriction, ServerOptions};
pub use plenipo_authority::OperatorPolicy;
pub use stdio::{serve, serve_on};
