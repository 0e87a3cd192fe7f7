//! Being asked which files, programs and addresses a command names to the kernel, itself and through whatever it starts.
//!
//! A seccomp filter asks about each such call, and the answer is always "go on": nothing is enforced, and no answer
//! depends on what was seen. It needs neither privileges nor ptrace(2), and it costs a call some microseconds. Not seen:
//! calls of another ABI (32-bit programs), and whether a call succeeded.

mod calls;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use plenipo_filter::asking;

use crate::sys;

/// What a call does with what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObservedUse {
    /// Opens a file, with these `O_…` flags.
    Open {
        /// As given to open(2).
        flags: u64,
    },
    /// The same, with the flags in the first eight bytes at this address (openat2(2)).
    OpenHow {
        /// In the memory of the thread.
        address: u64,
    },
    /// Asks what it is, or whether it is there.
    Look,
    /// Makes, changes, renames or removes it.
    Change,
    /// Runs it.
    Execute,
    /// Reaches an address, or sends to it.
    Connect,
    /// Takes an address as its own.
    Bind,
}

/// One call. Addresses are of the memory of `thread`, which waits while it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedCall {
    /// The thread that makes it, as a directory in `/proc` is called.
    pub thread: u32,
    /// What it does.
    pub what: ObservedUse,
    /// Descriptor of the directory that a relative path is about; absent: the working directory.
    pub directory: Option<i32>,
    /// Where the path is, ended by a NUL; of [`ObservedUse::Connect`] and [`ObservedUse::Bind`] a `sockaddr`.
    pub address: u64,
    /// Length of the `sockaddr`.
    pub length: u64,
}

/// Where the kernel asks. Ready to be read when a call waits, hung up when nobody is left who could make one. When it is
/// closed, such calls fail with `ENOSYS`.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// From here on this thread, and everything it starts, is asked about, and can gain no privileges.
    ///
    /// # Errors
    /// The kernel has no such filter (Linux 5.5 has), refuses it, or somebody listens already.
    pub fn install() -> io::Result<Self> {
        rustix::thread::set_no_new_privs(true)?;
        sys::install_listener(&asking(calls::numbers())).map(Self)
    }

    /// Takes the next call, tells `see` what it names, and lets it go on. Waits for one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn answer(&self, see: impl FnMut(&ObservedCall)) -> io::Result<()> {
        let Some(notice) = sys::next_notice(self.0.as_fd())? else { return Ok(()) };
        calls::read(&notice).iter().for_each(see);
        sys::go_on(self.0.as_fd(), notice.id)
    }
}

impl From<OwnedFd> for Listener {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
