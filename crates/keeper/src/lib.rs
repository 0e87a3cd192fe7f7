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
//! A program that is done need not wait for its servers: it hands them over, with what they still write, and their keepers
//! climb the shutdown ladder without it. Before it goes it makes sure that they do: a keeper that does not say that it
//! took over in half a second was stopped or killed, and the program ends everything itself.
//!
//! A server runs as the same user and may stop or kill a keeper. What a killed one loses comes to the keeper above it,
//! and in the end to this program, which waits for nobody longer than a few seconds and then ends what is left itself.
//! A server that kills this program as well as both keepers is not followed, and neither is one that stops or kills both
//! once it was handed over.

mod frame;
mod server;
mod turn;
mod zygote;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plenipo_process::{
    Descendants, Exit, Grace, HandingOver, ServerProcess, ServerStreams, Spawner, Spawning,
    StdioCommand, Waiting,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::Shutdown;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait, waitpid,
};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use frame::{Order, Report};
use turn::Turn;

/// How long the last server's end may take once this program is done with it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what is left then is killed.
const KILLING: Duration = Duration::from_secs(2);
/// How long a keeper may take to read a request. It has nothing else to do.
const SENDING: Duration = Duration::from_secs(5);
const SHORTLY: Duration = Duration::from_millis(2);
/// How long a keeper may take to say that it took over.
const TAKING_OVER: Duration = Duration::from_millis(500);

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
    /// Servers of which something may be left, and that were not handed over.
    servers: Arc<AtomicUsize>,
    /// How long those that were may take, in milliseconds; 0 when there are none.
    handed_over: AtomicU64,
    /// A keeper did not take over: waiting for it would be in vain.
    is_lost: AtomicBool,
    /// Where the locks of servers that are ending are.
    turns: OnceLock<PathBuf>,
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
        Ok(Self(Arc::new(Control {
            socket: Mutex::new(ours),
            process,
            ended,
            servers: Arc::default(),
            handed_over: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            turns: OnceLock::new(),
        })))
    }

    /// Starts no server while one of the same command that was handed over, by whomever, is still ending: it waits, at
    /// most 5 s. `directory` is the user's own, and made when it is needed.
    pub fn take_turns_in(&self, directory: PathBuf) {
        self.0.turns.get_or_init(|| directory);
    }

    async fn begin(
        &self,
        command: &StdioCommand,
        streams: ServerStreams,
    ) -> io::Result<Arc<dyn ServerProcess>> {
        // Without a lock it is waited for when it ends.
        let turn = self.0.turns.get().and_then(|directory| Turn::of(command, directory).ok());
        if let Some(turn) = &turn {
            turn.wait().await;
        }
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
        let counted = Arc::new(Counted {
            servers: Arc::clone(&self.0.servers),
            is_one: AtomicBool::new(true),
        });
        let reading = tokio::spawn({
            let counted = Arc::clone(&counted);
            async move { follow(reader, &sender, &counted).await }
        });
        let (reading, is_over) = (reading.abort_handle(), AtomicBool::new(false));
        let keeper = Arc::clone(&self.0);
        Ok(Arc::new(Kept { orders: ours, seen, reading, counted, is_over, turn, keeper }))
    }
}

impl Spawner for Keeper {
    fn spawn<'a>(&'a self, command: &'a StdioCommand, streams: ServerStreams) -> Spawning<'a> {
        Box::pin(self.begin(command, streams))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.servers.load(Ordering::Relaxed);
        let patience = Duration::from_millis(self.handed_over.load(Ordering::Relaxed));
        let is_told = patience.is_zero() || frame::send_patience(&mut socket, patience).is_ok();
        // Its end is what the keeper waits for; a socket that is gone already says the same.
        socket.shutdown(std::net::Shutdown::Both).unwrap_or_default();
        let is_fine = match (left, patience) {
            // There is nothing that it would have to end.
            (0, Duration::ZERO) => return self.kill(),
            (0, _) => is_told && self.goes_on(),
            _ => !self.is_lost.load(Ordering::Relaxed) && self.ends_in_order(),
        };
        if !is_fine {
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

    /// Whether the keeper is there and not stopped.
    fn goes_on(&self) -> bool {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        matches!(waitpid(Some(self.process), options), Ok(None))
    }

    fn kill(&self) {
        pidfd_send_signal(&self.ended, Signal::KILL).unwrap_or_default();
    }

    /// The keeper was stopped or killed: ends it, what is below it, and what came to us from it.
    fn end_all(&self) {
        let limit = Instant::now() + KILLING;
        loop {
            let below = Descendants::of(self.process);
            below.signal(Signal::STOP);
            below.signal(Signal::KILL);
            self.kill();
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
    /// Its keeper sees to its end.
    taken_over: bool,
}

/// One of the servers of which something may be left.
#[derive(Debug)]
struct Counted {
    servers: Arc<AtomicUsize>,
    is_one: AtomicBool,
}

impl Counted {
    fn no_longer(&self) {
        if self.is_one.swap(false, Ordering::Relaxed) {
            self.servers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A server and everything it started.
#[derive(Debug)]
struct Kept {
    orders: UnixStream,
    seen: watch::Receiver<Seen>,
    reading: AbortHandle,
    counted: Arc<Counted>,
    turn: Option<Turn>,
    /// It was handed over: it is ended no more from here.
    is_over: AtomicBool,
    /// Waits for the keeper's end after this one's.
    keeper: Arc<Control>,
}

impl Kept {
    fn order(&self, order: Order) {
        if !self.is_over.load(Ordering::Relaxed) {
            // A keeper that is gone has nothing left to end.
            order.send(&self.orders).unwrap_or_default();
        }
    }

    /// Whether its keeper took over; false when nothing of it was left.
    async fn taken_over(&self, order: Order) -> io::Result<bool> {
        // Refused when the keeper is gone, with its server or without: its last report tells.
        order.send(&self.orders).unwrap_or_default();
        let mut seen = self.seen.clone();
        let taken = timeout(TAKING_OVER, seen.wait_for(|seen| seen.taken_over || seen.gone)).await;
        match taken {
            Ok(Ok(seen)) if seen.taken_over => Ok(true),
            Ok(_) if !self.counted.is_one.load(Ordering::Relaxed) => Ok(false),
            _ => Err(lost()),
        }
    }
}

impl ServerProcess for Kept {
    fn wait(&self) -> Waiting<'_> {
        let mut seen = self.seen.clone();
        Box::pin(async move {
            if self.keeper.is_lost.load(Ordering::Relaxed) {
                return Err(lost());
            }
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

    fn hand_over(&self, outputs: [OwnedFd; 2], grace: Grace) -> HandingOver<'_> {
        Box::pin(async move {
            let mut outputs = Vec::from(outputs);
            if self.keeper.turns.get().is_some() {
                // Without a lock the next one could not be made to wait.
                let Some(Ok(lock)) = self.turn.as_ref().map(Turn::hold) else { return Ok(false) };
                outputs.push(lock);
            }
            let order = Order::TakeOver { outputs, grace };
            match self.taken_over(order).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.keeper.is_lost.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            self.is_over.store(true, Ordering::Relaxed);
            let time = grace.stdin_closed.saturating_add(grace.terminated).saturating_add(PATIENCE);
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            self.keeper.handed_over.fetch_max(millis, Ordering::Relaxed);
            self.counted.no_longer();
            Ok(true)
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kill();
        rustix::net::shutdown(self.orders.as_fd(), Shutdown::Both).unwrap_or_default();
        self.reading.abort();
    }
}

async fn follow(mut reader: frame::Reader, seen: &watch::Sender<Seen>, counted: &Counted) {
    while let Ok(Some(report)) = reader.next().await {
        match report {
            Report::Ended { status, alone } => {
                if alone {
                    counted.no_longer();
                }
                let exit = Exit::from(ExitStatus::from_raw(status));
                seen.send_modify(|seen| (seen.exit, seen.gone) = (Some(exit), alone));
            }
            Report::TakenOver => seen.send_modify(|seen| seen.taken_over = true),
            Report::Started | Report::Refused(_) => {}
        }
    }
    seen.send_modify(|seen| seen.gone = true);
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that keeps servers is gone")
}
