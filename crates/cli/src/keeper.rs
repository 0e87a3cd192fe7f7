//! Keeps local servers, so that none of them and nothing they started outlives its use.
//!
//! ```text
//! plenipo ── control ── keeper ─┬─ keeper of server A ─ A ─ whatever A starts
//!    │                          └─ keeper of server B ─ B ─ …
//!    └─ one socket for each server ──────┘
//! ```
//!
//! The keeper is a fork of this program, made when the first server is about to start; it forks once more for each. That
//! fork is the server's parent, and the one to whom orphans come, daemons in sessions of their own too: everything the
//! server started is below it. It ends all of that when it is told to, and when its socket closes, however this program
//! ended.

mod frame;
mod server;
mod zygote;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plenipo_connect::transport::stdio::{ServerStreams, Spawning, Waiting};
use plenipo_connect::{Exit, ServerProcess, Spawner, StdioCommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use frame::{Order, Report};

/// How long the last server's end may take once this program is done with it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Starts servers below a process that outlives this one. Dropping it, and every server, waits for the end of all.
#[derive(Debug, Clone)]
pub(crate) struct Keeper(Arc<Control>);

#[derive(Debug)]
struct Control {
    socket: Mutex<UnixStream>,
    process: Pid,
    ended: OwnedFd,
}

impl Keeper {
    /// Forks the keeper.
    ///
    /// # Errors
    /// When this process has more than one thread, or the system refuses.
    pub(crate) fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let process = plenipo_launch::fork_helper(theirs.into(), zygote::run)?;
        let ended = pidfd_open(process, PidfdFlags::empty())?;
        Ok(Self(Arc::new(Control { socket: Mutex::new(ours), process, ended })))
    }

    async fn begin(
        &self,
        command: &StdioCommand,
        streams: ServerStreams,
    ) -> io::Result<Arc<dyn ServerProcess>> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let ServerStreams { stdin, stdout, stderr, .. } = streams;
        {
            let mut socket = self.0.socket.lock().unwrap_or_else(PoisonError::into_inner);
            frame::send_request(&mut socket, command, [stdin, stdout, stderr, theirs.into()])?;
        }
        let reports = tokio::net::UnixStream::from_std(ours.try_clone()?)?;
        let mut reader = frame::Reader::new(reports);
        match reader.next().await? {
            Some(Report::Started) => {}
            Some(Report::Refused(error)) => return Err(error),
            _ => return Err(lost()),
        }
        let (sender, seen) = watch::channel(Seen::default());
        let reading = tokio::spawn(async move { follow(reader, &sender).await });
        let reading = reading.abort_handle();
        Ok(Arc::new(Kept { orders: ours, seen, reading, _keeper: Arc::clone(&self.0) }))
    }
}

impl Spawner for Keeper {
    fn spawn<'a>(&'a self, command: &'a StdioCommand, streams: ServerStreams) -> Spawning<'a> {
        Box::pin(self.begin(command, streams))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        // Its end is what the keeper waits for; a socket that is gone already says the same.
        socket.shutdown(std::net::Shutdown::Both).unwrap_or_default();
        let limit = Timespec::try_from(PATIENCE).ok();
        let mut waited = [PollFd::new(&self.ended, PollFlags::IN)];
        if poll(&mut waited, limit.as_ref()).is_ok_and(|ready| ready > 0) {
            rustix::process::waitpid(Some(self.process), WaitOptions::NOHANG).unwrap_or_default();
        }
    }
}

/// What is known of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    exit: Option<Exit>,
    /// Nothing of it is left.
    gone: bool,
}

/// A server and everything it started.
#[derive(Debug)]
struct Kept {
    orders: UnixStream,
    seen: watch::Receiver<Seen>,
    reading: AbortHandle,
    /// Waits for the keeper's end after this one's.
    _keeper: Arc<Control>,
}

impl Kept {
    fn order(&self, order: Order) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // A keeper that is gone has nothing left to end.
        rustix::net::send(&self.orders, &[order.byte()], flags).unwrap_or_default();
    }
}

impl ServerProcess for Kept {
    fn wait(&self) -> Waiting<'_> {
        let mut seen = self.seen.clone();
        Box::pin(async move {
            let known = seen.wait_for(|seen| seen.exit.is_some() || seen.gone).await;
            known.ok().and_then(|seen| seen.exit).ok_or_else(lost)
        })
    }

    fn terminate(&self) {
        self.order(Order::Terminate);
    }

    fn kill(&self) {
        self.order(Order::Kill);
    }

    fn is_alive(&self) -> bool {
        !self.seen.borrow().gone
    }

    fn release(&self) {
        self.kill();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kill();
        rustix::net::shutdown(self.orders.as_fd(), Shutdown::Both).unwrap_or_default();
        self.reading.abort();
    }
}

async fn follow(mut reader: frame::Reader, seen: &watch::Sender<Seen>) {
    while let Ok(Some(report)) = reader.next().await {
        if let Report::Ended { status, alone } = report {
            let exit = Exit::from(ExitStatus::from_raw(status));
            seen.send_modify(|seen| *seen = Seen { exit: Some(exit), gone: alone });
        }
    }
    seen.send_modify(|seen| seen.gone = true);
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that keeps servers is gone")
}
