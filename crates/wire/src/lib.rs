//! MCP on the wire: JSON-RPC envelopes over raw bytes, framing (lines, server-sent events), protocol
//! constants and typed views that borrow.
//!
//! The crate owns *bytes*. A message is split into its members and `params`, `result` and `error`
//! stay the text the peer sent; nothing is re-serialised, so unknown fields, number spellings and
//! member order survive. A [`Fragment`] is the only thing that can be spliced into an outgoing
//! frame, and it never contains a line break.
//!
//! Not here: I/O, async, timeouts, retries, JSON Schema.
//!
//! ```
//! use plenipo_wire::{Fragment, Incoming, LineReader, RequestId, encode};
//!
//! let mut out = Vec::new();
//! let params = Fragment::parse("{\"n\":\n1.10}").unwrap();
//! encode::write_request(&mut out, &RequestId::Number(1), "tools/call", Some(&params));
//! assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"n\": 1.10}}\n");
//!
//! let mut reader = LineReader::new();
//! reader.push(&out);
//! let line = reader.next_line().unwrap().unwrap();
//! assert!(matches!(Incoming::parse(line), Ok(Incoming::Request { .. })));
//! ```
#![forbid(unsafe_code)]

pub mod encode;
mod error;
mod fragment;
mod id;
mod incoming;
mod line;
pub mod object;
pub mod param_headers;
pub mod protocol;
pub mod sse;
pub mod views;

pub use error::{
    EventTooLong, LineTooLong, ParseFault, ParseFaultKind, ViewError, WireError, WireErrorKind,
};
pub use fragment::Fragment;
pub use id::RequestId;
pub use incoming::{ErrorObject, Incoming};
pub use line::{DEFAULT_MAX_MESSAGE_BYTES, LineReader};
pub use serde_json::value::RawValue;
