//! The first keeper: forks one for each server, and takes over what one of them loses.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use plenipo_connect::transport::stdio::Descendants;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper, wait,
};

use super::frame::{Descriptors, Report, receive_request};
use super::server::keep;

/// Between two looks at strays that were killed.
const SHORTLY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

struct Zygote {
    /// Where requests come from; `None` when the program is gone.
    control: Option<UnixStream>,
    keepers: Vec<(Pid, OwnedFd)>,
    /// A keeper died before its server: that is one of our children now.
    strays: bool,
}

/// Serves until the other end of `control` closes and nothing is left.
pub(super) fn run(control: OwnedFd) -> u8 {
    let control = Some(UnixStream::from(control));
    let mut zygote = Zygote { control, keepers: Vec::new(), strays: false };
    // Without it a keeper that is killed loses its server; everything else works.
    set_child_subreaper(Some(getpid())).unwrap_or_default();
    loop {
        let has_children = zygote.reap();
        if zygote.strays {
            zygote.end_strays();
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
        if let Some(control) = &self.control {
            waited.push(PollFd::new(control, PollFlags::IN));
        }
        let limit = (self.strays || waited.is_empty()).then_some(&SHORTLY);
        if poll(&mut waited, limit).is_err() {
            return false;
        }
        let last = waited.last().is_some_and(|last| !last.revents().is_empty());
        self.control.is_some() && last
    }

    fn serve(&mut self) {
        let Some(control) = &mut self.control else { return };
        let Ok(Some(request)) = receive_request(control) else {
            self.control = None;
            return;
        };
        let answer = socket_of(&request.descriptors);
        let forked = plenipo_launch::fork_again(move || keep(request));
        let watched = forked.and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        match (watched, answer) {
            (Ok(keeper), _) => self.keepers.push(keeper),
            (Err(error), Some(mut answer)) => {
                Report::Refused(error).write(&mut answer).unwrap_or_default();
            }
            (Err(_), None) => {}
        }
    }
}

/// A copy for the case that nobody else can answer.
fn socket_of(descriptors: &Descriptors) -> Option<UnixStream> {
    let [.., socket] = descriptors;
    socket.try_clone().ok().map(UnixStream::from)
}
