//! Being asked about the system calls of others: seccomp_unotify(2).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use plenipo_filter::Instruction;

use super::filter::Program;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice {
    pub(crate) id: u64,
    /// The thread that makes it.
    pub(crate) thread: u32,
    pub(crate) number: i32,
    pub(crate) arguments: [u64; 6],
}

/// Installs the program for this thread and everything it starts; whoever has the descriptor is asked. Needs
/// `no_new_privs`.
pub(crate) fn install_listener(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let program = Program::of(instructions)?;
    // SAFETY: the program points at its instructions, which outlive the call; the kernel copies and checks them.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    match i32::try_from(descriptor) {
        // SAFETY: a new descriptor, which nobody else owns.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The next call. Waits for one; `None` when its process is gone by now.
pub(crate) fn next_notice(listener: BorrowedFd<'_>) -> io::Result<Option<Notice>> {
    // The kernel wants it zeroed.
    let mut notice = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the descriptor is open and the kernel writes one seccomp_notif to the pointer.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, notice.as_mut_ptr())
    };
    if result != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: zeroed is a valid seccomp_notif, and the kernel filled it in.
    let notice = unsafe { notice.assume_init() };
    let (thread, data) = (notice.pid, notice.data);
    Ok(Some(Notice { id: notice.id, thread, number: data.nr, arguments: data.args }))
}

/// Lets the kernel make the call as if nobody had been asked. Nothing to do where its process is gone by now.
pub(crate) fn go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the descriptor is open and the kernel reads one seccomp_notif_resp, which outlives the call.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
    };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if result == 0 => Ok(()),
        Some(libc::ENOENT) => Ok(()),
        _ => Err(error),
    }
}
