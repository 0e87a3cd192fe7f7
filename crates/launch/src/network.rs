//! The network namespace of a sandbox whose network is off. Making it takes the kernel as long as all the mounts
//! together, so the launcher, which has nothing to do meanwhile, makes it while its child builds the rest:
//!
//! ```text
//! launcher        fork ── a network namespace, a socket in it ──┐
//! first process     └──── mounts, self-check, Landlock ──────── enters it, drops its capabilities …
//! ```
//!
//! Where that fails, the first process makes one itself; where that fails too, the launch is refused.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};

use plenipo_policy::Network;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags};

use crate::error::{ErrorKind, LaunchError};
use crate::ladder::Attempt;
use crate::sys;
use crate::terminal::{receive, send};

/// Both ends of the way, before the fork.
pub(crate) struct Elsewhere {
    outside: OwnedFd,
    inside: OwnedFd,
}

/// The first process's end.
pub(crate) struct FromElsewhere {
    channel: OwnedFd,
    entered: Cell<bool>,
}

impl Elsewhere {
    /// Present if the network is off and there is a second processor: with one, the two would only take turns.
    pub(crate) fn of(attempt: &Attempt<'_>) -> Result<Option<Self>, LaunchError> {
        if attempt.request.policy.network != Network::Restricted || !has_processors() {
            return Ok(None);
        }
        let flags = SocketFlags::CLOEXEC;
        let (outside, inside) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(|error| LaunchError::step("make a channel", error))?;
        Ok(Some(Self { outside, inside }))
    }

    pub(crate) fn inside(self) -> FromElsewhere {
        FromElsewhere { channel: self.inside, entered: Cell::new(false) }
    }

    /// Makes the namespace and hands it over. `user`: it is to belong to the user namespace of `first`.
    ///
    /// An error is nobody's: the first process, which finds the channel closed, tries itself and says what it meets.
    pub(crate) fn make(self, first: Pid, user: bool) {
        drop(self.inside);
        let process = user.then(|| rustix::process::pidfd_open(first, PidfdFlags::empty()));
        let Ok(process) = process.transpose() else { return };
        if let Ok(socket) = sys::make_network(process.as_ref().map(AsFd::as_fd)) {
            send(self.outside.as_fd(), socket.as_fd()).unwrap_or(());
        }
    }
}

impl FromElsewhere {
    /// Waits for the namespace and enters it.
    pub(crate) fn enter(&self) -> Result<(), LaunchError> {
        let handed = receive(self.channel.as_fd()).map_err(Into::into);
        handed
            .and_then(|socket| sys::enter_network(socket.as_fd()))
            .or_else(|_| sys::unshare_network())
            .map_err(|error| {
                LaunchError::unsupported("make a network namespace", error).with_hint(
                    "this container's own filter may refuse new namespaces, or there are too many (sysctl \
                     user.max_net_namespaces); `plenipo doctor` says more",
                )
            })?;
        self.entered.set(true);
        Ok(())
    }

    /// The last look before the command: refuses if [`enter`](Self::enter) was not called or failed.
    pub(crate) fn verify(&self) -> Result<(), LaunchError> {
        if self.entered.get() {
            return Ok(());
        }
        let message = "the network should be off in the sandbox, and is not";
        Err(LaunchError::new(ErrorKind::SelfCheck, message))
    }
}

fn has_processors() -> bool {
    rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_nobody_entered_is_a_refusal() {
        let (_outside, inside) = rustix::pipe::pipe().unwrap();
        let left_out = FromElsewhere { channel: inside, entered: Cell::new(false) };
        assert_eq!(left_out.verify().unwrap_err().kind(), ErrorKind::SelfCheck);
        left_out.entered.set(true);
        left_out.verify().unwrap();
    }
}
