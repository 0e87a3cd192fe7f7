//! Who starts servers, and ends them with everything they started.
//!
//! The crate's own way, [`ProcessGroups`], needs nothing and reaches what stays in the server's
//! process group or below it. A daemon that left both (a double fork with `setsid`), and whatever
//! runs when the host itself is killed, is out of its reach: a host that wants those too passes a
//! [`Spawner`] of its own, which starts servers below a process that outlives it.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use tokio::process::Child;
use tokio::sync::Mutex;

use crate::command::StdioCommand;
use crate::exit::Exit;
use crate::grace::Grace;
use crate::group::Group;
use crate::tree::Descendants;

/// The server's ends of its three streams.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerStreams {
    /// To read from.
    pub stdin: OwnedFd,
    /// To write to.
    pub stdout: OwnedFd,
    /// To write to.
    pub stderr: OwnedFd,
}

/// A start on its way.
pub type Spawning<'a> =
    Pin<Box<dyn Future<Output = io::Result<Arc<dyn ServerProcess>>> + Send + 'a>>;

/// An end that is waited for.
pub type Waiting<'a> = Pin<Box<dyn Future<Output = io::Result<Exit>> + Send + 'a>>;

/// Starts servers.
pub trait Spawner: Send + Sync {
    /// Starts `command` with exactly its environment, in a process group that it leads, on
    /// `streams` and with no other descriptor of the host.
    ///
    /// An error is the system's reason why the program did not start; of kind
    /// [`NotFound`](io::ErrorKind::NotFound) when it, or its interpreter, is not there.
    fn spawn<'a>(&'a self, command: &'a StdioCommand, streams: ServerStreams) -> Spawning<'a>;
}

/// A server that was started, with everything it started in turn. Dropping it kills all of that.
pub trait ServerProcess: Send + Sync + fmt::Debug {
    /// Waits until the server itself ends; again and again the same. May be dropped at any point.
    fn wait(&self) -> Waiting<'_>;

    /// Asks all of it to end (SIGTERM).
    fn terminate(&self);

    /// Ends all of it (SIGKILL).
    fn kill(&self);

    /// Whether anything of it is left, as far as this can be known.
    fn is_alive(&self) -> bool;

    /// Nothing more is wanted of it: kills what is left and signals nobody after that.
    fn release(&self);

    /// Leaves the rest of its end to somebody who outlives this program. Its stdin is closed; whoever takes it reads
    /// what it still writes to `outputs`, stdout and stderr, and ends it after `grace`, in the same steps. When this
    /// is true, [`kill`](Self::kill), [`release`](Self::release) and dropping it do nothing any more.
    ///
    /// An error means that who keeps it does not answer: it has to be killed. The default is false.
    fn hand_over(&self, outputs: [OwnedFd; 2], grace: Grace) -> HandingOver<'_> {
        let _ = (outputs, grace);
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// Handing a server over: true when somebody else sees to its end from now on, false when nobody does that.
pub type HandingOver<'a> = Pin<Box<dyn Future<Output = io::Result<bool>> + Send + 'a>>;

/// Starts servers as children of this process, each the leader of a process group.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ProcessGroups;

impl ProcessGroups {
    /// The default of every connection.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Spawner for ProcessGroups {
    fn spawn<'a>(&'a self, command: &'a StdioCommand, streams: ServerStreams) -> Spawning<'a> {
        Box::pin(async move {
            let ServerStreams { stdin, stdout, stderr } = streams;
            let mut command = command.prepare();
            command
                .stdin(Stdio::from(stdin))
                .stdout(Stdio::from(stdout))
                .stderr(Stdio::from(stderr));
            let child = command.spawn()?;
            let group = Group::led_by(&child);
            let process =
                GroupProcess { child: Mutex::new(child), reaped: AtomicBool::new(false), group };
            Ok(Arc::new(process) as Arc<dyn ServerProcess>)
        })
    }
}

#[derive(Debug)]
struct GroupProcess {
    child: Mutex<Child>,
    /// Its number may be another's by now.
    reaped: AtomicBool,
    group: Group,
}

impl GroupProcess {
    /// To the group, and to what left it for a session of its own.
    fn signal(&self, signal: Signal) {
        let Some(leader) = self.group.open_leader() else { return };
        let below = match self.reaped.load(Ordering::Acquire) {
            true => Descendants::default(),
            false => Descendants::of(leader),
        };
        self.group.signal(signal);
        below.signal(signal);
    }
}

impl ServerProcess for GroupProcess {
    fn wait(&self) -> Waiting<'_> {
        Box::pin(async {
            let exit = self.child.lock().await.wait().await;
            self.reaped.store(true, Ordering::Release);
            exit.map(Exit::from)
        })
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn is_alive(&self) -> bool {
        self.group.is_alive()
    }

    fn release(&self) {
        self.kill();
        self.group.close();
    }
}

impl Drop for GroupProcess {
    fn drop(&mut self) {
        self.release();
    }
}
