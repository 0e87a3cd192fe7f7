//! Waiting for a sandbox, and passing signals on to it.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::error::LaunchError;
use crate::init;
use crate::sys::{self, Received};

/// Waits until `child` ends and returns its exit code; signals go to `first`, the sandbox's first process.
pub(crate) fn supervise(child: Pid, first: Pid) -> Result<u8, LaunchError> {
    loop {
        match sys::wait_for_signal()
            .map_err(|error| LaunchError::step("wait for a signal", error))?
        {
            Received::Child => {
                let waited = rustix::process::waitpid(Some(child), WaitOptions::NOHANG)
                    .map_err(|error| LaunchError::step("wait for the sandbox", error))?;
                if let Some((_, status)) = waited {
                    return Ok(init::exit_code(status));
                }
            }
            Received::Forward { signal, delivery } => {
                // Too late is fine: SIGCHLD follows.
                drop(sys::deliver(first, signal, delivery));
            }
        }
    }
}

/// Waits for a child that has said why it ends.
pub(crate) fn reap(child: Pid) {
    // Its status says nothing that it has not said.
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(child), WaitOptions::empty()) {}
}

/// What a sandbox without a PID namespace may leave behind when its init is killed from inside: it becomes this
/// process's children.
pub(crate) struct Orphans {
    /// Children that this process had before.
    own: Vec<i32>,
}

impl Orphans {
    pub(crate) fn adopt() -> Result<Self, LaunchError> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| LaunchError::step("adopt what the command leaves", error))?;
        Ok(Self { own: children() })
    }

    /// Kills them, those that appear meanwhile too, until there is none.
    pub(crate) fn end(self) {
        loop {
            let left = children().into_iter().filter(|child| !self.own.contains(child));
            let left: Vec<Pid> = left.filter_map(Pid::from_raw).collect();
            if left.is_empty() {
                return;
            }
            for child in left {
                rustix::process::kill_process(child, Signal::KILL).unwrap_or(());
                reap(child);
            }
        }
    }
}

/// Of this process's one thread; see proc_pid_task_children(5).
fn children() -> Vec<i32> {
    let thread = rustix::process::getpid().as_raw_nonzero();
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|child| child.parse().ok()).collect()
}
