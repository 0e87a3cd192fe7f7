//! `clone3(2)` as a fork into new namespaces, and leaving without clean-up.

use std::io;

use rustix::process::Pid;

/// Which new namespaces the child gets. Mount, PID, IPC and UTS are always new.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Namespaces {
    /// A user namespace: needed by a caller without `CAP_SYS_ADMIN`.
    pub(crate) user: bool,
    /// A network namespace: no interface, no route, no abstract socket of the host.
    pub(crate) network: bool,
}

/// Which side of the fork returned.
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks this process into new namespaces. The caller must have one thread only (`launch` checks).
pub(crate) fn fork_into(namespaces: Namespaces) -> io::Result<Fork> {
    let mut flags =
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    if namespaces.user {
        flags |= libc::CLONE_NEWUSER;
    }
    if namespaces.network {
        flags |= libc::CLONE_NEWNET;
    }
    let arguments = CloneArguments {
        flags: u64::from(flags.cast_unsigned()),
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        ..CloneArguments::default()
    };
    // SAFETY: the struct is laid out as clone_args v2 and outlives the call; no CLONE_VM, so the child has its own copy
    // of this single-threaded process's memory and goes on like after fork(2).
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    };
    match i32::try_from(pid) {
        Ok(0) => Ok(Fork::Child),
        Ok(child) if child > 0 => {
            Pid::from_raw(child).map(Fork::Parent).ok_or_else(|| io::ErrorKind::Other.into())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// fork(2): no new namespace. The caller must have one thread only (`launch` checks).
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the child has its own copy of this single-threaded process's memory, and no lock is held by another thread.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        child if child > 0 => {
            Pid::from_raw(child).map(Fork::Parent).ok_or_else(|| io::ErrorKind::Other.into())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// setsid(2), with the number that it answers: a new session has its leader's own.
pub(crate) fn start_session() -> io::Result<i32> {
    // SAFETY: setsid has no preconditions.
    match unsafe { libc::setsid() } {
        -1 => Err(io::Error::last_os_error()),
        session => Ok(session),
    }
}

/// `_exit(2)`: ends a forked child without running the parent's exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}
