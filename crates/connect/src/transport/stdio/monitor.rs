//! Watches over one child: notices its end, ends it when asked to, leaves nothing behind.
//!
//! Ladder: close stdin → wait → SIGTERM to the group → wait → SIGKILL to the group. When the
//! leader is gone by itself, what it left in its group is treated the same way, without stdin.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plenipo_process::{Exit, Grace, Output, ServerProcess};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::Tail;
use crate::error::Fault;
use crate::peer::Peer;
use crate::pending::Closed;

/// How long output may still come in after the process is gone, and the process may live on after
/// it closed its output.
const DRAIN: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_millis(5);
/// How long the end of a process that was killed is waited for.
const KILLED: Duration = Duration::from_secs(1);

/// What it took to end a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// How the process ended; `None` when that could not be learnt.
    pub exit: Option<Exit>,
    /// SIGTERM was needed.
    pub terminated: bool,
    /// SIGKILL was needed.
    pub killed: bool,
    /// Who keeps servers sees to the rest: how it ended is not known here.
    pub handed_over: bool,
}

/// How a server is to be ended.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Ladder(Grace),
    HandOver(Grace),
}

/// The task's state.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) process: Arc<dyn ServerProcess>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) outputs: [Output; 2],
    pub(crate) reader: JoinHandle<()>,
    pub(crate) stderr: JoinHandle<()>,
}

/// Held by the connection. Dropping it kills the server and what it started at once.
#[derive(Debug)]
pub(crate) struct MonitorHandle {
    process: Arc<dyn ServerProcess>,
    request: Mutex<Option<oneshot::Sender<Wish>>>,
    report: watch::Receiver<Option<ShutdownReport>>,
}

impl Monitor {
    pub(crate) fn start(self) -> MonitorHandle {
        let process = Arc::clone(&self.process);
        let (request, requested) = oneshot::channel();
        let (reported, report) = watch::channel(None);
        tokio::spawn(async move {
            let report = self.run(requested).await;
            reported.send_replace(Some(report));
        });
        MonitorHandle { process, request: Mutex::new(Some(request)), report }
    }

    async fn run(mut self, requested: oneshot::Receiver<Wish>) -> ShutdownReport {
        // If the runtime goes away, this future is dropped and the server with it.
        let _end_on_drop = EndOnDrop(Arc::clone(&self.process), Arc::clone(&self.peer));
        let mut report = ShutdownReport::default();
        tokio::select! {
            exit = self.process.wait() => {
                report.exit = exit.ok();
                self.drain().await;
            }
            _ = &mut self.reader => {
                report.exit = self.exit_within(DRAIN).await;
            }
            request = requested => {
                match request {
                    Ok(Wish::Ladder(grace)) => self.climb(grace, &mut report).await,
                    Ok(Wish::HandOver(grace)) => self.hand_over(grace, &mut report).await,
                    Err(_) => self.kill(&mut report).await,
                }
                self.close_peer(Fault::ShutDown);
                return report;
            }
        }
        self.close_after_end(report.exit);
        if report.exit.is_some() {
            self.end_rest(Grace::default().terminated, &mut report).await;
        } else {
            self.climb(Grace::default(), &mut report).await;
        }
        report
    }

    /// The process ended, or its output did: every call that waits hears of it now.
    fn close_after_end(&self, exit: Option<Exit>) {
        self.close_peer(match exit {
            Some(how) => Fault::Exited { how },
            None => Fault::OutputClosed,
        });
    }

    fn close_peer(&self, fault: Fault) {
        self.peer.close(Closed { fault, stderr_tail: self.tail.lines() });
    }

    /// Lets the last output come in; a descendant that holds the pipes cannot delay it for long.
    async fn drain(&mut self) {
        let all = async {
            (&mut self.reader).await.ok();
            (&mut self.stderr).await.ok();
        };
        timeout(DRAIN, all).await.ok();
    }

    async fn exit_within(&mut self, limit: Duration) -> Option<Exit> {
        let exit = timeout(limit, self.process.wait()).await.ok()?.ok()?;
        timeout(DRAIN, &mut self.stderr).await.ok();
        Some(exit)
    }

    /// Lets who outlives this program climb, if there is somebody.
    async fn hand_over(&mut self, grace: Grace, report: &mut ShutdownReport) {
        self.peer.close_input().await;
        let [stdout, stderr] = &self.outputs;
        let handed = match (stdout.copy(), stderr.copy()) {
            (Ok(stdout), Ok(stderr)) => self.process.hand_over([stdout, stderr], grace).await,
            _ => Ok(false),
        };
        match handed {
            Ok(true) => {
                report.handed_over = true;
                // Who has it reads the rest.
                self.reader.abort();
                self.stderr.abort();
            }
            Ok(false) => self.climb(grace, report).await,
            Err(_) => self.kill(report).await,
        }
    }

    async fn climb(&mut self, grace: Grace, report: &mut ShutdownReport) {
        self.peer.close_input().await;
        report.exit = self.exit_within(grace.stdin_closed).await;
        if report.exit.is_none() {
            report.terminated = true;
            self.process.terminate();
            report.exit = self.exit_within(grace.terminated).await;
        }
        match report.exit {
            Some(_) => self.end_rest(grace.terminated, report).await,
            None => self.kill(report).await,
        }
    }

    /// The leader is gone; ends what is left of its group.
    async fn end_rest(&mut self, limit: Duration, report: &mut ShutdownReport) {
        if self.process.is_alive() {
            report.terminated = true;
            self.process.terminate();
            let end = Instant::now() + limit;
            while self.process.is_alive() && Instant::now() < end {
                sleep(POLL).await;
            }
            report.killed |= self.process.is_alive();
        }
        self.process.release();
    }

    async fn kill(&mut self, report: &mut ShutdownReport) {
        report.killed = true;
        self.process.kill();
        // Whoever keeps it may be stopped, or it may be stuck in the system.
        report.exit = self.exit_within(KILLED).await;
        self.process.release();
    }
}

impl MonitorHandle {
    /// Asks for the ladder and waits for its end; later calls wait for the same end.
    pub(crate) async fn shut_down(&self, grace: Grace) -> ShutdownReport {
        self.end(Wish::Ladder(grace)).await
    }

    /// The same, and who keeps servers climbs the ladder, if there is somebody.
    pub(crate) async fn hand_over(&self, grace: Grace) -> ShutdownReport {
        self.end(Wish::HandOver(grace)).await
    }

    async fn end(&self, wish: Wish) -> ShutdownReport {
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(request) = request {
            // Refused when the process is already gone: its report is there or about to be.
            request.send(wish).ok();
        }
        let mut report = self.report.clone();
        match report.wait_for(Option::is_some).await {
            Ok(report) => report.unwrap_or_default(),
            Err(_) => ShutdownReport::default(),
        }
    }
}

impl Drop for MonitorHandle {
    fn drop(&mut self) {
        self.process.kill();
    }
}

struct EndOnDrop(Arc<dyn ServerProcess>, Arc<Peer>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let Self(process, peer) = self;
        process.release();
        // Of no consequence where another end came before.
        peer.close(Closed { fault: Fault::ShutDown, stderr_tail: Vec::new() });
    }
}
