//! Programs that are really started, and what is left of them.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod brief;
mod ends;
mod starts;
mod support;
