//! `--tty`: the command gets a pseudo-terminal of the sandbox's own, and the launcher relays between that and its own
//! standard streams.
//!
//! ```text
//! person's terminal (raw) ⇄ launcher ⇄ master │ slave ⇄ session of init, foreground group of the command
//!                              └── channel: the master comes out, news of the command follow ──┘
//! ```
//!
//! The person's terminal never enters the sandbox. Keys become signals inside (Ctrl-C, Ctrl-\, Ctrl-Z), the window's size
//! is passed on, and a command that is stopped stops the launcher's job, too. The terminal's settings are restored however
//! the launch ends, but by SIGKILL to the launcher.

mod relay;

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, Winsize};

use crate::error::LaunchError;

pub(crate) use relay::relay;

/// The command was stopped, by Ctrl-Z for example.
const STOPPED: u8 = b'Z';
/// The command has ended, and what it wrote is to be read before init ends, too.
const ENDED: u8 = b'E';

/// What is worked out before the fork: both ends of the channel, and how the person's terminal is set.
pub(crate) struct Terminal {
    outside: OwnedFd,
    inside: OwnedFd,
    settings: Option<Termios>,
    size: Option<Winsize>,
}

/// The launcher's side after the fork.
pub(crate) struct Outside {
    channel: OwnedFd,
    settings: Option<Termios>,
}

/// The sandbox's side after the fork.
pub(crate) struct Inside {
    channel: OwnedFd,
    settings: Option<Termios>,
    size: Option<Winsize>,
}

impl Terminal {
    pub(crate) fn new() -> Result<Self, LaunchError> {
        let flags = SocketFlags::CLOEXEC;
        let (outside, inside) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(|error| LaunchError::step("make a channel", error))?;
        let settings = rustix::termios::tcgetattr(std::io::stdin()).ok();
        Ok(Self { outside, inside, settings, size: size() })
    }

    pub(crate) fn outside(self) -> Outside {
        Outside { channel: self.outside, settings: self.settings }
    }

    pub(crate) fn inside(self) -> Inside {
        Inside { channel: self.inside, settings: self.settings, size: self.size }
    }
}

/// The window's size, from the first standard stream that is a terminal.
fn size() -> Option<Winsize> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    streams.into_iter().find_map(|stream| rustix::termios::tcgetwinsize(stream).ok())
}

impl Inside {
    /// Opens a pseudo-terminal in the sandbox's own `/dev/pts`, makes it this session's and the standard streams, and
    /// hands the master out.
    pub(crate) fn take_over(&self) -> Result<(), LaunchError> {
        let take = || {
            let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            rustix::pty::unlockpt(&master)?;
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
            let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
            if let Some(settings) = &self.settings {
                rustix::termios::tcsetattr(&slave, OptionalActions::Now, settings)?;
            }
            if let Some(size) = self.size {
                rustix::termios::tcsetwinsize(&slave, size)?;
            }
            rustix::process::ioctl_tiocsctty(&slave)?;
            rustix::stdio::dup2_stdin(&slave)?;
            rustix::stdio::dup2_stdout(&slave)?;
            rustix::stdio::dup2_stderr(&slave)?;
            send(self.channel.as_fd(), master.as_fd())
        };
        take().map_err(|error: Errno| LaunchError::step("open a terminal", error))
    }

    pub(crate) fn into_news(self) -> News {
        News { channel: std::fs::File::from(self.channel) }
    }
}

/// How init tells the launcher of the command.
pub(crate) struct News {
    channel: std::fs::File,
}

impl News {
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// If the launcher is gone, so is this process in a moment.
    pub(crate) fn stopped(&mut self) {
        drop(self.channel.write_all(&[STOPPED]));
    }

    /// Returns when the launcher has read what is left: the end of a session empties its terminal.
    pub(crate) fn ended(mut self) {
        if self.channel.write_all(&[ENDED]).is_ok() {
            drop(self.channel.read(&mut [0]));
        }
    }
}

pub(crate) fn send(channel: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let byte = [IoSlice::new(&[0])];
    rustix::net::sendmsg(channel, &byte, &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

pub(crate) fn receive(channel: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let received = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or(Errno::CONNRESET)
}
