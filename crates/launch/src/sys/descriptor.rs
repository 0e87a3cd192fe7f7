//! Taking over a descriptor that the caller left open under a number.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::FdFlags;

/// A copy (close-on-exec) of the inherited descriptor `number`.
pub(crate) fn copy_inherited(number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1; if the number is not open, the copy below fails with EBADF and nothing else is done with it.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    inherited.try_clone_to_owned()
}

/// The inherited descriptor `number` itself, close-on-exec from now on; of a standard stream, which stays open, a copy.
///
/// A number that is not inherited is EBADF: what this process opened itself has an owner.
pub(crate) fn take_inherited(number: i32) -> io::Result<OwnedFd> {
    let copy = copy_inherited(number)?;
    if number <= libc::STDERR_FILENO {
        return Ok(copy);
    }
    // SAFETY: open, or there would be no copy of it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    if rustix::io::fcntl_getfd(borrowed)?.contains(FdFlags::CLOEXEC) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: open; without close-on-exec it came over exec(2), as everything that std and rustix open has the flag, and
    // of an inherited number this process has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(copy)
}
