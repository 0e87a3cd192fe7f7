//! HTTP requests to servers that nobody vouches for: connections are kept, and everything that comes back is bounded.
//!
//! ```text
//!   HttpClient ──> Target without TLS or proxy ──> a kept connection, driven by whoever uses it
//!        │    ──> any other                   ──> a pool, HTTP/2 where the server offers it
//!        └──────> Received                        the body, piece by piece or whole, up to a limit
//!   SingleExchanges ──> one request on a connection of its own, to an address that was let through
//! ```
//!
//! | bound | value |
//! |---|---|
//! | body | the caller's |
//! | head of a response | 128 KiB; over HTTP/1.1 100 headers |
//! | connecting | 10 s |
//! | connections kept | 64 for each origin, 55 s each |
//!
//! It follows no redirection, adds no header but `Host` and a proxy's credentials, repeats nothing that a server may have
//! seen, reads nothing of the environment, and knows neither MCP nor who may speak to a server. Nothing is set up before
//! the first request. A tokio runtime with I/O and time has to be running.
#![forbid(unsafe_code)]

mod body;
mod client;
mod connector;
mod error;
mod lanes;
mod received;
mod secrets;
mod single;
mod target;
mod tls;

pub use body::{ErrorBody, preview};
pub use client::{HttpClient, HttpClientOptions, ProxyRules};
pub use error::{ClientFault, HttpCause};
pub use received::Received;
pub use secrets::Secrets;
pub use single::{Admit, SingleExchanges};
pub use target::Target;
