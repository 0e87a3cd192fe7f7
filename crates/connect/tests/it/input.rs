//! What servers ask back: rounds of a modern server, requests of a legacy one.

mod legacy;
pub(crate) mod puppet;
mod rounds;
