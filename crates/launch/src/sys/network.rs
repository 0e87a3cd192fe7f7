//! Network namespaces that one process makes and another enters.
//!
//! What goes from the one to the other is a socket: it belongs to the namespace it was made in, and needs no `/proc`.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags};

/// A few system calls, in a build without optimisation too.
const STACK_BYTES: usize = 16 * 1024;
const STACK_ALIGNMENT: usize = 16;
/// linux/sockios.h, `SIOCGSKNS`; the type of a request is not the same in every C library.
const NAMESPACE_OF_SOCKET: libc::Ioctl = 0x894C;

/// asm-generic/socket.h, `SO_NETNS_COOKIE`, since Linux 5.14.
const COOKIE_OF_NETWORK: c_int = 71;

/// What the task is asked, and what it answers.
struct Task<'a> {
    user_namespace_of: Option<BorrowedFd<'a>>,
    answer: rustix::io::Result<OwnedFd>,
}

/// Makes a network namespace that the calling process stays out of, and gives a socket in it. It belongs to the user
/// namespace of the process that a descriptor (pidfd_open(2)) is given of, or else to the caller's. It is gone with the
/// last socket and process in it.
///
/// # Errors
/// The kernel's.
pub(crate) fn make_network(user_namespace_of: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let mut stack = Vec::<u8>::with_capacity(STACK_BYTES);
    let end = stack.spare_capacity_mut().as_mut_ptr_range().end;
    let top = end.map_addr(|address| address & !(STACK_ALIGNMENT - 1));
    let mut task = Task { user_namespace_of, answer: Err(rustix::io::Errno::CHILD) };
    // Like vfork(2): the caller stands still until the task has ended, so what they share is used by one at a time.
    const FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    // SAFETY: `carry_out` gets a stack of its own that is aligned and big enough and the `Task` that it expects. Both outlive
    // it, as the call returns when it has ended.
    let id = unsafe { libc::clone(carry_out, top.cast(), FLAGS, (&raw mut task).cast()) };
    if id < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: asks for no status; the task is this process's own child, and has ended.
    while unsafe { libc::waitpid(id, std::ptr::null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    Ok(task.answer?)
}

extern "C" fn carry_out(task: *mut c_void) -> c_int {
    // SAFETY: `make_network` passes its own `Task`, and does not touch it before this has ended.
    let task = unsafe { &mut *task.cast::<Task<'_>>() };
    task.answer = socket_in_new_network(task.user_namespace_of);
    0
}

fn socket_in_new_network(user_namespace_of: Option<BorrowedFd<'_>>) -> rustix::io::Result<OwnedFd> {
    if let Some(process) = user_namespace_of {
        rustix::thread::move_into_thread_name_spaces(process, ThreadNameSpaceType::USER)?;
    }
    unshare_network()?;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Moves the calling process into a new network namespace.
///
/// # Errors
/// The kernel's.
pub(crate) fn unshare_network() -> rustix::io::Result<()> {
    // SAFETY: no memory and no descriptor depends on the network namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// Moves the calling process into the network namespace that `socket` was made in.
///
/// # Errors
/// The kernel's.
pub(crate) fn enter_network(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    let namespace = unsafe { libc::ioctl(socket.as_raw_fd(), NAMESPACE_OF_SOCKET) };
    if namespace < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and owned by nobody else.
    let namespace = unsafe { OwnedFd::from_raw_fd(namespace) };
    let kind = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)?)
}

/// A number that only the network namespace `socket` was made in has.
///
/// # Errors
/// The kernel's; one before 5.14 does not say.
pub(crate) fn network_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes, which is what `cookie` has, and the new size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            COOKIE_OF_NETWORK,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
