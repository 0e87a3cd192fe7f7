//! A local server's program: what is started, where and with which variables, and how it ends.
//!
//! ```text
//!   StdioCommand ── Environment::… ──> StdioCommand ── spawn(Spawner) ──> Running   our ends of its pipes
//!    argv, cleared                      as it gets                          │
//!    environment                        elsewhere                           └──> ServerProcess   waited for, ended
//! ```
//!
//! A command is a program with arguments, never a shell's text; its environment is what was given and nothing of the
//! host's. What is started leads a process group of its own, and ends with all that it started, as far as its
//! [`Spawner`] reaches. Nothing is read from what it writes, and nothing of MCP is known here.
#![forbid(unsafe_code)]

mod brief;
mod command;
pub mod environment;
mod error;
mod exit;
mod grace;
mod group;
mod input;
mod output;
mod spawner;
mod tree;

pub use brief::{Brief, BriefOutput, run_briefly};
pub use command::{Running, StdioCommand};
pub use error::StartFault;
pub use exit::Exit;
pub use grace::Grace;
pub use input::Input;
pub use output::Output;
pub use spawner::{
    HandingOver, ProcessGroups, ServerProcess, ServerStreams, Spawner, Spawning, Waiting,
};
pub use tree::Descendants;
