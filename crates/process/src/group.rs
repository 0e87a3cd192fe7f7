//! A process group that is ours to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// The group a child leads. Once [`close`](Self::close)d it is never signalled again, since its
/// number may then belong to somebody else.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    leader: Option<Pid>,
    closed: Arc<AtomicBool>,
}

impl Group {
    pub(crate) fn led_by(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: number.and_then(Pid::from_raw), closed: Arc::default() }
    }

    /// Whether a process of the group is left. A zombie that nobody reaps counts.
    pub(crate) fn is_alive(&self) -> bool {
        self.open_leader().is_some_and(|leader| test_kill_process_group(leader).is_ok())
    }

    /// Kills what is left and never signals the group again.
    pub(crate) fn close(&self) {
        self.signal(Signal::KILL);
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.open_leader() {
            // ESRCH: nobody is left, which is what was wanted.
            kill_process_group(leader, signal).unwrap_or_default();
        }
    }

    /// Its leader, while the group may be signalled.
    pub(crate) fn open_leader(&self) -> Option<Pid> {
        self.leader.filter(|_| !self.closed.load(Ordering::Acquire))
    }
}
