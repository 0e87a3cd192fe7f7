//! The first keeper: forks one for each server, and takes over what one of them loses.
//!
//! The first of these is forked before it is asked for, while the program still reads its configuration: the fork then
//! takes no time of the start.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use plenipo_process::Descendants;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper, wait,
};

use crate::frame::{Asked, Descriptors, Report, receive_request};
use crate::server::keep;

/// Between two looks at strays that were killed.
const SHORTLY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// How long keepers may take to end their servers once the program is gone; one that was stopped takes for ever.
const PATIENCE: Duration = Duration::from_secs(2);

struct Zygote {
    /// Where requests come from; `None` when the program is gone.
    control: Option<UnixStream>,
    /// Open as long as the keeper that was forked beforehand waits for the first of them.
    spare: Option<PipeReader>,
    /// When the program went away.
    alone_since: Option<Instant>,
    patience: Duration,
    keepers: Vec<(Pid, OwnedFd)>,
    /// A keeper died before its server: that is one of our children now.
    strays: bool,
}

/// Serves until the other end of `control` closes and nothing is left.
pub(crate) fn run(control: OwnedFd) -> u8 {
    let control = Some(UnixStream::from(control));
    let (spare, alone_since, keepers) = (None, None, Vec::new());
    let patience = PATIENCE;
    let mut zygote = Zygote { control, spare, alone_since, patience, keepers, strays: false };
    // Without it a keeper that is killed loses its server; everything else works.
    set_child_subreaper(Some(getpid())).unwrap_or_default();
    zygote.prepare();
    loop {
        let has_children = zygote.reap();
        if zygote.strays {
            zygote.end_strays();
        }
        if zygote.alone_since.is_some_and(|since| since.elapsed() > zygote.patience) {
            end_all();
        }
        if zygote.control.is_none() && !has_children {
            return 0;
        }
        if zygote.is_asked() {
            zygote.serve();
        }
    }
}

impl Zygote {
    /// Takes note of who ended; false when there is nobody left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let known = self.keepers.len();
                    self.keepers.retain(|(keeper, _)| *keeper != pid);
                    self.strays |= known != self.keepers.len() && status.exit_status() != Some(0);
                }
                Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => {
                    self.strays = false;
                    return false;
                }
            }
        }
    }

    fn end_strays(&mut self) {
        let keepers: Vec<Pid> = self.keepers.iter().map(|(keeper, _)| *keeper).collect();
        let strays = Descendants::beside(getpid(), &keepers);
        strays.signal(Signal::KILL);
        self.strays = !strays.is_empty();
    }

    /// Waits for a request or the end of somebody; true for a request, or the end of those.
    fn is_asked(&self) -> bool {
        let keepers = self.keepers.iter().map(|(_, descriptor)| descriptor);
        let mut waited: Vec<_> =
            keepers.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        let asking = self.spare.as_ref().map(PipeReader::as_fd);
        let asking = asking.or(self.control.as_ref().map(UnixStream::as_fd));
        waited.extend(asking.map(|asking| PollFd::from_borrowed_fd(asking, PollFlags::IN)));
        let short = self.strays || waited.is_empty() || self.alone_since.is_some();
        if poll(&mut waited, short.then_some(&SHORTLY)).is_err() {
            return false;
        }
        let last = waited.last().is_some_and(|last| !last.revents().is_empty());
        asking.is_some() && last
    }

    /// Forks the keeper of the first server. If that fails it is forked when it is needed.
    fn prepare(&mut self) {
        let Some(Ok(control)) = self.control.as_ref().map(UnixStream::try_clone) else { return };
        let Ok((spare, taken)) = pipe() else { return };
        let mut serve = Some((control, taken));
        let forked = plenipo_launch::fork_again(move || match serve.take() {
            Some((control, taken)) => keep_first(control, taken),
            None => 0,
        });
        if self.watch(forked).is_ok() {
            self.spare = Some(spare);
        }
    }

    fn watch(&mut self, forked: io::Result<Pid>) -> io::Result<()> {
        let pid = forked?;
        self.keepers.push((pid, pidfd_open(pid, PidfdFlags::empty())?));
        Ok(())
    }

    fn serve(&mut self) {
        if self.spare.take().is_some() {
            // It has the first request, or is gone: the next one is for us.
            return;
        }
        let Some(control) = &mut self.control else { return };
        let request = match receive_request(control) {
            Ok(Some(Asked::Start(request))) => request,
            Ok(Some(Asked::Patience(patience))) => {
                self.patience = patience;
                return;
            }
            _ => {
                (self.control, self.alone_since) = (None, Some(Instant::now()));
                return;
            }
        };
        let answer = socket_of(&request.descriptors);
        let forked = plenipo_launch::fork_again(move || keep(request));
        if let (Err(error), Some(mut answer)) = (self.watch(forked), answer) {
            Report::Refused(error).write(&mut answer).unwrap_or_default();
        }
    }
}

/// Waits for the first request and keeps its server.
fn keep_first(mut control: UnixStream, taken: PipeWriter) -> u8 {
    let Ok(Some(Asked::Start(request))) = receive_request(&mut control) else { return 0 };
    drop((control, taken));
    keep(request)
}

/// The keepers too.
fn end_all() {
    let all = Descendants::of(getpid());
    all.signal(Signal::STOP);
    all.signal(Signal::KILL);
}

/// A copy for the case that nobody else can answer.
fn socket_of(descriptors: &Descriptors) -> Option<UnixStream> {
    let [.., socket] = descriptors;
    socket.try_clone().ok().map(UnixStream::from)
}
