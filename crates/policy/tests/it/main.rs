//! The state grammar and its resolution, from outside the crate.
#![expect(clippy::unwrap_used, clippy::string_slice, reason = "a test fails by panicking")]

mod fuzz;
mod golden;
mod launcher_inputs;
mod messages;
mod narrowing;
mod properties;
