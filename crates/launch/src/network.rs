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
use std::io;
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
    /// The launcher's own, which the command must not be in; Linux 5.13 does not say.
    outside: Option<u64>,
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

    /// # Errors
    /// The kernel does not say which namespace this is, and should.
    pub(crate) fn inside(self, landlock_abi: i32) -> Result<FromElsewhere, LaunchError> {
        // The socket is the launcher's, and so is its namespace.
        let outside = match sys::network_of(self.inside.as_fd()) {
            Ok(outside) => Some(outside),
            Err(error) if is_too_old(&error, landlock_abi) => None,
            Err(error) => return Err(cannot_look(error)),
        };
        Ok(FromElsewhere { channel: self.inside, outside, entered: Cell::new(false) })
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
        self.entered.set(self.is_another()?);
        Ok(())
    }

    /// An outer filter can answer in the kernel's place that all went well.
    fn is_another(&self) -> Result<bool, LaunchError> {
        let Some(outside) = self.outside else { return Ok(true) };
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(Into::into)
            .and_then(|socket| sys::network_of(socket.as_fd()))
            .map(|inside| inside != outside)
            .map_err(cannot_look)
    }

    /// The last look before the command: refuses if [`enter`](Self::enter) was not called, failed, or changed nothing.
    pub(crate) fn verify(&self) -> Result<(), LaunchError> {
        if self.entered.get() {
            return Ok(());
        }
        let message = "the network should be off in the sandbox, and is not";
        Err(LaunchError::new(ErrorKind::SelfCheck, message))
    }
}

/// Linux 5.13, the first with Landlock, is the only one with it that does not know the question.
fn is_too_old(error: &io::Error, landlock_abi: i32) -> bool {
    error.raw_os_error() == Some(libc::ENOPROTOOPT) && landlock_abi == 1
}

fn cannot_look(error: io::Error) -> LaunchError {
    LaunchError::step("look at the network namespace", error)
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
        let left_out = FromElsewhere { channel: inside, outside: None, entered: Cell::new(false) };
        assert_eq!(left_out.verify().unwrap_err().kind(), ErrorKind::SelfCheck);
        left_out.entered.set(true);
        left_out.verify().unwrap();
    }

    #[test]
    fn only_the_oldest_kernel_may_not_know_the_question() {
        let error = io::Error::from_raw_os_error;
        assert!(is_too_old(&error(libc::ENOPROTOOPT), 1));
        assert!(!is_too_old(&error(libc::ENOPROTOOPT), 2));
        assert!(!is_too_old(&error(libc::EPERM), 1));
    }

    #[test]
    fn the_namespace_outside_is_not_another() {
        let flags = SocketFlags::CLOEXEC;
        let (here, _there) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let outside = sys::network_of(here.as_fd()).unwrap();
        let (channel, _writer) = rustix::pipe::pipe().unwrap();
        let among = |outside| FromElsewhere {
            channel: channel.try_clone().unwrap(),
            outside: Some(outside),
            entered: Cell::new(false),
        };
        assert!(!among(outside).is_another().unwrap());
        assert!(among(outside + 1).is_another().unwrap());
    }
}
