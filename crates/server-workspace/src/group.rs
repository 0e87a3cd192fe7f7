//! The process group of one command.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A group led by a child of ours; killed when dropped.
///
/// The group's id is the child's. As long as the child is not reaped, nobody else can have it;
/// whoever reaps the child calls [`kill`](Self::kill) right after, long before Linux, which hands
/// out ids in turn, could come back to it.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group of a child that was started as its leader.
    pub(crate) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Asks every member to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends every member. Later calls, and dropping, do nothing.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // Fails only when no member is left.
            kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
