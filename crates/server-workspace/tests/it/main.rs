//! The server as a host meets it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests too"
)]

mod authority;
mod harness;
mod limits;
mod process;
mod protocol;
mod report;
mod run;
mod sessions;
