//! The crate as its users see it: the tables of `docs/enterprise.md`, stores, and the flow against
//! parties that are told what to answer.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail as tests do"
)]

mod flow;
mod lease;
mod parties;
mod pinned;
mod postgres;
mod refusals;
mod selection;
mod support;
mod texts;
