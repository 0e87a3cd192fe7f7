//! The person at the terminal: what is printed, drawn and asked there, and how a failure is told.
//!
//! Standard output is the answer and nothing else; everything beside it goes to standard error. What others wrote, servers
//! above all, has no say over the terminal.
#![forbid(unsafe_code)]

mod env;
pub mod failure;
pub mod person;
pub mod progress;
pub mod terminal;
