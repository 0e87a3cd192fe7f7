//! The loopback interface of a new network namespace, which begins its life down: netdevice(7).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

// linux/sockios.h; the type of a request is not the same in every C library.
const FLAGS: libc::Ioctl = 0x8913;
const SET_FLAGS: libc::Ioctl = 0x8914;

/// Brings `lo` up in the network namespace that `socket` (of an internet family) was made in.
pub(crate) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: ifreq is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    // SAFETY: the request is a valid ifreq with a nul-terminated name; the kernel writes its flags.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), FLAGS, &raw mut request) })?;
    // SAFETY: the first request filled this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: as above; the kernel only reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SET_FLAGS, &raw const request) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
