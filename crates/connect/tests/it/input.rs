//! What servers ask back: rounds of a modern server, requests of a legacy one.

mod legacy;
mod puppet;
mod rounds;
