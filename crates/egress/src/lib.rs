#![forbid(unsafe_code)]
//! The proxy that a command with a limited network reaches the world through.
//!
//! ```text
//! one connection: first byte ─┬─ SOCKS5 ──┐
//!                             └─ HTTP ────┴─ host, port ─ Hosts::route ─ resolve once ─ Hosts::check_address
//!                                                               │                             │
//!                                        403, SOCKS reply 2 ◀───┴── denied, counted           ▼
//!                                                                        dial that address, relay both ways
//! ```
//!
//! One port speaks HTTP `CONNECT`, HTTP requests for whole URLs (`GET http://…`) and SOCKS5 (`CONNECT` only). Whoever
//! can connect may use it: the launcher serves a socket that exists inside one sandbox only.
//!
//! Bounds: 256 connections at once (more wait), 32 KiB and 30 s for a request's head, 10 s for an address to answer,
//! 10 minutes without a byte. No runtime: a thread for each connection, none before the first [`Proxy::serve`].

mod body;
mod dial;
mod exchange;
mod head;
mod proxy;
mod relay;
mod requests;
mod server_name;
mod slots;
mod socks;
mod tally;

pub use dial::{Resolve, SystemResolver};
pub use proxy::Proxy;
pub use tally::{Refused, Summary};

#[cfg(test)]
mod fuzz;
