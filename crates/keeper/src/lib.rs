#![forbid(unsafe_code)]
//! Keeps local servers, so that none of them and nothing they started outlives its use.
//!
//! ```text
//! program ── control ── keeper ─┬─ keeper of server A ─ A ─ whatever A starts
//!    │                          └─ keeper of server B ─ B ─ …
//!    └─ one socket for each server ──────┘
//! ```
//!
//! The keeper is a fork of this program, made when the first server is about to start; it forks once more for each. That
//! fork is the server's parent, and the one to whom orphans come, daemons in sessions of their own too: everything the
//! server started is below it. It ends all of that when it is told to, and when its socket closes, however this program
//! ended.
//!
//! A server runs as the same user and may stop or kill a keeper. What a killed one loses comes to the keeper above it,
//! and in the end to this program, which waits for nobody longer than a few seconds and then ends what is left itself.
//! A server that kills this program as well as both keepers is not followed.

mod frame;
mod server;
mod zygote;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plenipo_connect::transport::stdio::{Descendants, ServerStreams, Spawning, Waiting};
use plenipo_connect::{Exit, ServerProcess, Spawner, StdioCommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, Shutdown};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait, waitpid,
};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use frame::{Order, Report};

/// How long the last server's end may take once this program is done with it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what is left then is killed.
const KILLING: Duration = Duration::from_secs(2);
/// How long a keeper may take to read a request. It has nothing else to do.
const SENDING: Duration = Duration::from_secs(5);
const SHORTLY: Duration = Duration::from_millis(2);

/// This program started one that may go on without it.
static BEFRIENDED: AtomicBool = AtomicBool::new(false);

/// A program is about to be started that may outlive this one, such as a browser.
pub fn befriend() {
    BEFRIENDED.store(true, Ordering::Relaxed);
}

/// Starts servers below a process that outlives this one. Dropping it, and every server, waits for the end of all.
#[derive(Debug, Clone)]
pub struct Keeper(Arc<Control>);

#[derive(Debug)]
struct Control {
    socket: Mutex<UnixStream>,
    process: Pid,
    ended: OwnedFd,
    /// Servers of which something may be left.
    servers: Arc<AtomicUsize>,
}

impl Keeper {
    /// Forks the keeper.
    ///
    /// # Errors
    /// When this process has more than one thread, or the system refuses.
    pub fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_write_timeout(Some(SENDING))?;
        // What a killed keeper loses comes to us; where that is not possible it is lost.
        set_child_subreaper(Some(getpid())).unwrap_or_default();
        let process = plenipo_launch::fork_helper(theirs.into(), zygote::run)?;
        let ended = pidfd_open(process, PidfdFlags::empty())?;
        let (socket, servers) = (Mutex::new(ours), Arc::default());
        Ok(Self(Arc::new(Control { socket, process, ended, servers })))
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
            self.0.servers.fetch_add(1, Ordering::Relaxed);
            frame::send_request(&mut socket, command, [stdin, stdout, stderr, theirs.into()])?;
        }
        let reports = tokio::net::UnixStream::from_std(ours.try_clone()?)?;
        let mut reader = frame::Reader::new(reports);
        match reader.next().await? {
            Some(Report::Started) => {}
            Some(Report::Refused(error)) => {
                self.0.servers.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
            _ => return Err(lost()),
        }
        let (sender, seen) = watch::channel(Seen::default());
        let servers = Arc::clone(&self.0.servers);
        let reading = tokio::spawn(async move { follow(reader, &sender, &servers).await });
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
        if self.servers.load(Ordering::Relaxed) == 0 {
            // There is nothing that it would have to end.
            pidfd_send_signal(&self.ended, Signal::KILL).unwrap_or_default();
        } else if !self.ends_in_order() {
            self.end_all();
        }
    }
}

impl Control {
    /// Whether the keeper ends and says that nothing is left.
    fn ends_in_order(&self) -> bool {
        let limit = Timespec::try_from(PATIENCE).ok();
        let mut waited = [PollFd::new(&self.ended, PollFlags::IN)];
        let ended = poll(&mut waited, limit.as_ref()).is_ok_and(|ready| ready > 0);
        ended
            && matches!(waitpid(Some(self.process), WaitOptions::NOHANG),
                Ok(Some((_, status))) if status.exit_status() == Some(0))
    }

    /// The keeper was stopped or killed: ends it, what is below it, and what came to us from it.
    fn end_all(&self) {
        let limit = Instant::now() + KILLING;
        loop {
            let below = Descendants::of(self.process);
            below.signal(Signal::STOP);
            below.signal(Signal::KILL);
            pidfd_send_signal(&self.ended, Signal::KILL).unwrap_or_default();
            while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
            if BEFRIENDED.load(Ordering::Relaxed) {
                // Whose the others are cannot be told.
                return;
            }
            let ours = Descendants::of(getpid());
            if ours.is_empty() || Instant::now() > limit {
                return;
            }
            ours.signal(Signal::STOP);
            ours.signal(Signal::KILL);
            thread::sleep(SHORTLY);
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

async fn follow(mut reader: frame::Reader, seen: &watch::Sender<Seen>, servers: &AtomicUsize) {
    while let Ok(Some(report)) = reader.next().await {
        if let Report::Ended { status, alone } = report {
            if alone {
                servers.fetch_sub(1, Ordering::Relaxed);
            }
            let exit = Exit::from(ExitStatus::from_raw(status));
            seen.send_modify(|seen| *seen = Seen { exit: Some(exit), gone: alone });
        }
    }
    seen.send_modify(|seen| seen.gone = true);
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that keeps servers is gone")
}
