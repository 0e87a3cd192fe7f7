//! Stores and token sources, against a strict authorization server on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "test support: ground that is missing is a failed test"
)]

mod http;
mod issuer;
#[cfg(feature = "keyring")]
mod keyring;
#[cfg(feature = "postgres")]
mod postgres;
mod processes;
mod source;
mod stores;
mod support;
