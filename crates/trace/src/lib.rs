//! What a server needs: one watched run, and the smallest profile that follows from it.
//!
//! ```text
//! plenipo doctor SERVER ── Collector ◀── a socket ◀── plenipo trace ── the server, and whatever it starts
//!                             │                            └ asked by the kernel, says "go on"
//!                          Survey ── propose ── Proposal ── TOML
//! ```
//!
//! Nothing here prints, reads configuration or knows MCP. A proposal is made of what *one* run touched: what needs
//! judgement is a comment in it, and secrets are never granted.
#![forbid(unsafe_code)]

mod channel;
mod memory;
mod places;
mod propose;
mod record;
mod run;
mod secrets;
mod survey;

pub use channel::Collector;
pub use places::Surroundings;
pub use propose::Proposal;
pub use record::Record;
pub use run::run;
pub use survey::Survey;
