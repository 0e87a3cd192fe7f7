//! Connections to MCP servers: transports, era negotiation, catalog, calls.
//!
//! ```text
//! plenipo.toml ── config ─> StdioCommand | HttpEndpoint ─┐
//!                                                        ├─ Connection::open ─> negotiate
//! host's choices ───────> ConnectOptions ────────────────┘     │  (probe | initialize)
//!                                                              ├─ catalog()   tools/list, pages
//! CapturedAuthority ───> CallRequest ──────────────────────────┴─ call()      tools/call
//!                                                                  └─> CallOutcome | ConnectError
//! ```
//!
//! Of a local server one task reads the output and hands answers to waiting calls; a caller writes
//! its own request. Behind a URL each call posts and reads its own. Everything a peer sends stays raw text, with views on demand. The crate never prints,
//! never reads the process environment, and never enforces a policy; it takes its decisions about
//! authority from [`plenipo_authority`]. Programs are started by [`plenipo_process`], requests sent by [`plenipo_http`] with
//! the credentials of a [`plenipo_authorizer`]; what a host needs of the three is here as well.
//!
//! ```no_run
//! use plenipo_connect::{CallRequest, ConnectOptions, Connection, ServerName, StdioCommand};
//! use plenipo_wire::Fragment;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let mut command = StdioCommand::new("/usr/bin/my-server");
//! command.environment([("PATH", "/usr/bin:/bin")]);
//! let name = ServerName::new("mine").ok_or("not a server name")?;
//! let connection = Connection::start(name, &command, ConnectOptions::default()).await?;
//!
//! let authority = connection.capture(None).await; // or Some(SandboxState::capture(…)?)
//! let arguments = Fragment::parse(r#"{"path": "notes.txt"}"#)?;
//! let outcome = connection.call(CallRequest::new("read", Some(arguments), authority)).await?;
//! println!("{}", outcome.result());
//! connection.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! Servers over stdio on this machine, and over Streamable HTTP anywhere. A tokio runtime with I/O
//! and time has to be running, and goes on running for as long as connections that were opened on it are
//! used, from wherever. Every future may be dropped at any await; the server is told, and the connection
//! goes on. `docs/hosts.md` says more, and `examples/host.rs` is a whole small host.
#![forbid(unsafe_code)]

pub mod approval;
mod backoff;
mod cache;
pub mod call;
pub mod catalog;
pub mod changes;
mod connection;
mod error;
pub mod fleet;
mod in_flight;
pub mod input;
pub mod launcher;
pub mod memory;
pub mod names;
mod negotiate;
pub mod observer;
mod options;
mod outbox;
pub mod paging;
mod patience;
mod peer;
mod pending;
pub mod prompts;
mod request;
pub mod resources;
mod restart;
mod server_name;
pub mod skills;
mod subscription;
pub mod tasks;
pub mod text;
pub mod transport;

pub use approval::{Approval, ApprovalMode, Approvals, Approver};
pub use cache::ResultCache;
pub use call::{CallOutcome, CallRequest, Cancellation, Canceller};
pub use catalog::{Catalog, Lookup, Tool, ToolFilter};
pub use changes::{Change, ChangeFilter, Subscription};
pub use connection::Connection;
pub use error::{
    ConnectError, ErrorKind, Fault, HttpCause, HttpFault, InputFault, ListingFault, Mismatch,
    Operation, PeerError, SchemaFault,
};
pub use fleet::{Fleet, Member, Readiness, Started};
pub use input::{InputAnswer, InputHandler, InputOffer, InputRequest};
pub use launcher::{LauncherProvider, LauncherSource};
pub use names::{NameRules, ToolIndex};
pub use negotiate::{Era, EraHint, ServerIdentity};
pub use options::{ClientIdentity, ConnectOptions, ShutdownPolicy};
pub use paging::{Listed, Page};
pub use plenipo_authorizer::{enterprise, oauth};
pub use prompts::{CompletionReference, FilledPrompt, Prompt, Suggestions};
pub use resources::{Resource, ResourceRead, ResourceTemplate};
pub use restart::{RestartPolicy, Server};
pub use skills::{LoadedSkill, Skill, SkillFault};
pub use tasks::{Called, Task, TaskFault, TaskOptions};
pub use transport::{
    Endpoint,
    http::{HttpClient, HttpClientOptions, HttpEndpoint, ProxyRules},
    stdio::{Exit, Grace, ServerProcess, ShutdownReport, Spawner, StdioCommand, environment},
};
pub use {plenipo_authority as authority, plenipo_redact as redact, plenipo_wire as wire};
pub use {request::RequestOptions, server_name::ServerName};

/// The page for hosts: what it shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/hosts.md")]
struct HostsPage;
