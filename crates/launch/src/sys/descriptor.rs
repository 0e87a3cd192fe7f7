//! Taking over a descriptor that the caller left open under a number.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A copy (close-on-exec) of the inherited descriptor `number`.
pub(crate) fn copy_inherited(number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1; if the number is not open, the copy below fails with EBADF and nothing else is done with it.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    inherited.try_clone_to_owned()
}
