//! The keeper of one server: its parent, and that of every orphan it leaves.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plenipo_process::Descendants;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper, wait,
};

use crate::frame::{Order, Orders, Report, Request};

/// From the loss of who used the server to SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// Between two looks at what is to end.
const SHORTLY: Duration = Duration::from_millis(5);
/// Between two looks for orphans that ended while the server runs.
const SELDOM: Duration = Duration::from_secs(5);

/// One server, and everything it started.
struct Kept {
    server: Pid,
    ends: OwnedFd,
    /// Orders in, reports out; `None` when nobody is there any more.
    orders: Option<Orders>,
    /// What the server still writes, once nobody else reads it.
    outputs: Vec<OwnedFd>,
    /// Open as long as the server ends.
    lock: Option<OwnedFd>,
    /// How the server ended.
    status: Option<i32>,
    told: bool,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// Its stdin is closed: it may end by itself until then, and after SIGTERM for so long.
    Leaving {
        until: Instant,
        terminated: Duration,
    },
    /// Asked to end until then.
    Ending(Instant),
    Killing,
}

/// Starts the server and stays until nothing of it is left. One thread does it all: it can wait for orders and for ends
/// at the same time, and starting another one would cost as much as starting a server.
pub(crate) fn keep(request: Request) -> u8 {
    let Request { command, descriptors: [stdin, stdout, stderr, socket] } = request;
    let mut socket = UnixStream::from(socket);
    #[expect(clippy::disallowed_methods, reason = "servers of the command line start here")]
    let mut start = Command::new(command.program());
    start.args(command.arguments()).env_clear().envs(command.variables()).process_group(0);
    start.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    if let Some(directory) = command.directory() {
        start.current_dir(directory);
    }
    let started = set_child_subreaper(Some(getpid())).map_err(io::Error::from);
    let started = started.and_then(|()| start.spawn());
    // Its copies of the server's streams would keep them open.
    drop(start);
    let kept = started.and_then(|child| {
        let server = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let server = server.ok_or(io::ErrorKind::Other)?;
        let ends = pidfd_open(server, PidfdFlags::empty()).and_then(|ends| {
            rustix::io::ioctl_fionbio(&socket, true)?;
            Ok(ends)
        });
        Ok((server, ends.inspect_err(|_| end())?))
    });
    let (server, ends) = match kept {
        Ok(kept) => kept,
        Err(error) => {
            Report::Refused(error).write(&mut socket).unwrap_or_default();
            return 0;
        }
    };
    // Who is not there to read it shows it by closing the socket.
    Report::Started.write(&mut socket).unwrap_or_default();
    let orders = Some(Orders::new(socket));
    let (outputs, status, told, phase) = (Vec::new(), None, false, Phase::Running);
    Kept { server, ends, orders, outputs, lock: None, status, told, phase }.stay()
}

impl Kept {
    fn stay(mut self) -> u8 {
        while self.reap() {
            match self.phase {
                Phase::Ending(limit) if Instant::now() >= limit => self.phase = Phase::Killing,
                Phase::Killing => kill_all(),
                // What it left behind has no stdin that would end it.
                Phase::Leaving { until, terminated }
                    if Instant::now() >= until || self.status.is_some() =>
                {
                    self.terminate(terminated);
                }
                Phase::Running | Phase::Leaving { .. } | Phase::Ending(_) => {}
            }
            self.wait();
            self.obey();
            self.outputs.retain(goes_on);
        }
        0
    }

    /// Takes note of who ended, and tells of the server; false when nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => {
                    self.status = Some(status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => {
                    if !self.told {
                        self.told = self.report(false);
                    }
                    return true;
                }
                Err(_) => {
                    self.report(true);
                    return false;
                }
            }
        }
    }

    /// Whether there is an end to tell.
    fn report(&mut self, alone: bool) -> bool {
        let Some(status) = self.status else { return false };
        if let Some(orders) = &mut self.orders {
            Report::Ended { status, alone }.write(&mut orders.socket).unwrap_or_default();
        }
        true
    }

    /// Until there is an order, the server ends, or it is time to look again.
    fn wait(&self) {
        let mut waited = Vec::with_capacity(4);
        if let Some(orders) = &self.orders {
            waited.push(PollFd::new(&orders.socket, PollFlags::IN));
        }
        waited.extend(self.outputs.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        if self.status.is_none() {
            waited.push(PollFd::new(&self.ends, PollFlags::IN));
        }
        let limit = match self.phase {
            Phase::Running if self.status.is_none() => SELDOM,
            Phase::Leaving { until, .. } if self.status.is_none() => {
                until.saturating_duration_since(Instant::now())
            }
            _ => SHORTLY,
        };
        let limit = Timespec::try_from(limit).ok();
        // Interrupted or not: everything is looked at again.
        poll(&mut waited, limit.as_ref()).unwrap_or_default();
    }

    /// Does as it is told, and ends everything when nobody is left to tell it.
    fn obey(&mut self) {
        while let Some(orders) = &mut self.orders {
            match orders.next() {
                Ok(Some(Order::Terminate)) => Descendants::of(getpid()).signal(Signal::TERM),
                Ok(Some(Order::Kill)) => self.phase = Phase::Killing,
                Ok(Some(Order::TakeOver { outputs, grace })) => {
                    let mut outputs = outputs.into_iter();
                    self.outputs = outputs.by_ref().take(2).collect();
                    self.lock = outputs.next();
                    self.outputs.retain(|pipe| rustix::io::ioctl_fionbio(pipe, true).is_ok());
                    if matches!(self.phase, Phase::Running) {
                        let (until, terminated) =
                            (Instant::now() + grace.stdin_closed, grace.terminated);
                        self.phase = Phase::Leaving { until, terminated };
                    }
                    Report::TakenOver.write(&mut orders.socket).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => {
                    self.orders = None;
                    if matches!(self.phase, Phase::Running) {
                        // Its stdin is closed by now: a server with manners ends by itself.
                        self.terminate(GRACE);
                    }
                }
            }
        }
    }

    fn terminate(&mut self, grace: Duration) {
        Descendants::of(getpid()).signal(Signal::TERM);
        self.phase = Phase::Ending(Instant::now() + grace);
    }
}

/// Whether there is more to come of a pipe that is read to nowhere.
fn goes_on(output: &OwnedFd) -> bool {
    let mut nowhere = [0; 4096];
    match rustix::io::read(output, &mut nowhere) {
        Ok(count) => count > 0,
        Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
    }
}

/// Stopped first: what is stopped starts nothing that would be missed.
fn kill_all() {
    let left = Descendants::of(getpid());
    left.signal(Signal::STOP);
    left.signal(Signal::KILL);
}

/// Kills until nobody is left.
fn end() {
    while !Descendants::of(getpid()).is_empty() {
        kill_all();
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
    }
}
