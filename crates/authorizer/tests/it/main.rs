//! Authorizers without a connection: what goes with a request, and what a refusal leads to. The whole way, with a server
//! that refuses and an issuer that grants, is tested where connections are.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod network;
mod stored;
