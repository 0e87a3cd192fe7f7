//! What a caller of this crate may rely on, against servers that misbehave.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod bodies;
mod single;
mod support;
