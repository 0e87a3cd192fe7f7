//! A server as a child process: what it writes, and the watch over its end. How it is started is [`plenipo_process`]'s.

mod monitor;
pub(crate) mod space;
mod tail;

pub use plenipo_process::{
    Descendants, Exit, Grace, HandingOver, ProcessGroups, ServerProcess, ServerStreams, Spawner,
    Spawning, StdioCommand, Waiting, environment,
};

pub use monitor::ShutdownReport;
pub(crate) use monitor::{Monitor, MonitorHandle};
pub(crate) use tail::{Tail, read_stderr};
