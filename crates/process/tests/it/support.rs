//! Commands of a shell, each with a mark by which everything that it starts is found.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plenipo_process::StdioCommand;
use plenipo_testkit::{Deadline, processes_with_marker};

pub(crate) struct Marked {
    pub(crate) command: StdioCommand,
    mark: String,
}

impl Marked {
    pub(crate) fn new(script: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let value = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = StdioCommand::new("sh");
        command.args(["-c", script]);
        command.environment([("PATH", "/usr/bin:/bin"), ("PROCESS_MARK", &value)]);
        Self { command, mark: format!("PROCESS_MARK={value}") }
    }

    pub(crate) fn count(&self) -> usize {
        processes_with_marker(&self.mark).len()
    }

    /// Whether so many run, at once or soon.
    pub(crate) fn comes_to(&self, count: usize) -> bool {
        Deadline::poll_until(Duration::from_secs(20), || self.count() == count)
    }
}
