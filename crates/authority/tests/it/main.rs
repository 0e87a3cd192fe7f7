//! What `plenipo-authority` promises, seen from outside.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests too")]

mod errors;
mod fixture;
mod fuzz;
mod golden;
mod invariants;
mod properties;
mod vectors;
