//! Configuration files of five programs, read into values.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what cannot go on in a test has failed it"
)]

mod credentials;
mod enterprise;
mod environments;
mod parse;
