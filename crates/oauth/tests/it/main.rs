//! Flows against a network that is a function: each test says what is published, and looks at every
//! request that was made.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests too"
)]

mod callback;
mod device;
mod documents;
mod dpop;
mod fake;
mod grants;
mod identity;
mod registration;
mod secrets;
mod sign_in;
mod signatures;
