//! What a launch does, seen from outside: as root and as an ordinary user, with the verdict taken on the host.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests start processes and read the environment of the run"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: what cannot be set up has failed, and the table is for people"
)]

mod callers;
mod enforcer;
mod forgeries;
mod limited;
mod machines;
mod placeholders;
mod programs;
mod reports;
mod repositories;
mod restricted;
mod rows;
mod rules;
mod rungs;
mod stage;
mod streams;
mod terminal;
