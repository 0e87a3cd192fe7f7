//! One running command, from its start to the end of everything it started.

use std::io;
use std::process::ExitStatus;

use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, sleep_until};

use crate::output::{CAPTURED_BYTES, Captured, Stream};
use crate::progress::{Progress, Source};
use crate::spawn::Started;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// How long pipes are read once the group is gone; only a process that left the group holds them.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a killed child may take to be gone.
const REAP: Duration = Duration::from_secs(5);

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) end: End,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) report: Captured,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, or by somebody else's signal.
    Exited(ExitStatus),
    /// Ended after this time.
    TimedOut(Duration),
    /// Ended because the caller no longer wants it.
    Cancelled,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Until the timeout.
    Running,
    /// SIGTERM was sent. The child is not reaped, so that its group keeps its id.
    Ending,
    /// SIGKILL was sent; the child is about to be gone.
    Reaping,
    /// The child is gone, its pipes are read to their end.
    Draining,
}

struct Watch {
    started: Started,
    phase: Phase,
    deadline: Instant,
    end: Option<End>,
    /// All pipes were closed before SIGTERM, so their closing says nothing about its effect.
    closed_early: bool,
}

/// Watches `started` until its group is gone and its pipes are read.
///
/// # Errors
/// When the child cannot be waited for; its group is killed then.
pub(crate) async fn watch(
    mut started: Started,
    limits: Limits,
    cancelled: &mut oneshot::Receiver<()>,
    mut progress: Progress,
) -> io::Result<Watched> {
    let mut stdout: Stream<ChildStdout> = Stream::new(started.stdout.take(), CAPTURED_BYTES);
    let mut stderr: Stream<ChildStderr> = Stream::new(started.stderr.take(), CAPTURED_BYTES);
    let mut report = Stream::new(started.report.take(), limits.report_bytes);
    let mut watch = Watch::new(started, limits.timeout);
    loop {
        let closed = stdout.is_closed() && stderr.is_closed() && report.is_closed();
        if watch.is_over(closed) {
            break;
        }
        tokio::select! {
            _ = &mut *cancelled, if watch.phase == Phase::Running => {
                watch.terminate(End::Cancelled, closed);
            }
            () = sleep_until(watch.deadline) => watch.deadline_passed(limits.timeout, closed),
            status = watch.started.child.wait(), if watch.is_waiting() => watch.reaped(status?),
            chunk = stdout.more() => progress.note(Source::Stdout, chunk),
            chunk = stderr.more() => progress.note(Source::Stderr, chunk),
            _ = report.more() => {}
            () = progress.due(), if watch.phase == Phase::Running => progress.send(),
        }
    }
    Ok(Watched {
        end: watch.end.unwrap_or(End::Cancelled),
        stdout: stdout.into_captured(),
        stderr: stderr.into_captured(),
        report: report.into_captured(),
    })
}

/// How far a command may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) report_bytes: usize,
}

impl Watch {
    fn new(started: Started, timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self { started, phase: Phase::Running, deadline, end: None, closed_early: false }
    }

    fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Reaping)
    }

    /// Whether there is nothing left to wait for, given whether all pipes are `closed`.
    fn is_over(&mut self, closed: bool) -> bool {
        if self.phase == Phase::Ending && closed && !self.closed_early {
            self.kill();
        }
        self.phase == Phase::Draining && (closed || Instant::now() >= self.deadline)
    }

    fn terminate(&mut self, end: End, closed: bool) {
        self.started.group.terminate();
        self.end = Some(end);
        self.closed_early = closed;
        self.enter(Phase::Ending, GRACE);
    }

    fn kill(&mut self) {
        self.started.group.kill();
        self.enter(Phase::Reaping, REAP);
    }

    fn reaped(&mut self, status: ExitStatus) {
        self.started.group.kill();
        self.end.get_or_insert(End::Exited(status));
        self.enter(Phase::Draining, DRAIN);
    }

    fn deadline_passed(&mut self, timeout: Duration, closed: bool) {
        match self.phase {
            Phase::Running => self.terminate(End::TimedOut(timeout), closed),
            Phase::Ending => self.kill(),
            // Not even SIGKILL ended it, or a stranger holds its pipes: let go of both.
            Phase::Reaping | Phase::Draining => self.enter(Phase::Draining, Duration::ZERO),
        }
    }

    fn enter(&mut self, phase: Phase, limit: Duration) {
        self.phase = phase;
        self.deadline = Instant::now() + limit;
    }
}
