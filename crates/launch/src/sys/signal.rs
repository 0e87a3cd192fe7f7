//! Signals by waiting instead of handlers, and closing descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Signals that the launcher passes on to the command.
const FORWARDED: [libc::c_int; 8] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// To whom a signal goes: what was sent to one process goes to one, what a terminal sent to a job goes to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Process,
    Group,
}

/// One signal taken from the blocked set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Received {
    /// A child changed state.
    Child,
    /// A signal to pass on.
    Forward { signal: i32, delivery: Delivery },
}

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalMask(libc::sigset_t);

impl SignalMask {
    pub(crate) fn of(signals: &[libc::c_int]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in signals {
            // SAFETY: the set was initialised above and the signal numbers are valid.
            unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
        }
        // SAFETY: initialised by sigemptyset.
        Self(unsafe { set.assume_init() })
    }

    /// The signals in it.
    pub(crate) fn members(&self) -> Vec<i32> {
        const LAST: libc::c_int = 64;
        // SAFETY: the set is initialised and the signal numbers are valid.
        (1..=LAST)
            .filter(|signal| unsafe { libc::sigismember(self.as_ptr(), *signal) } == 1)
            .collect()
    }

    /// Those that [`wait_for_signal`] waits for.
    pub(crate) fn waited() -> Self {
        let mut signals = FORWARDED.to_vec();
        signals.push(libc::SIGCHLD);
        Self::of(&signals)
    }

    /// Makes this the mask of the calling thread.
    pub(super) fn restore(&self) -> io::Result<()> {
        // SAFETY: the set is initialised; nothing is asked back.
        check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, self.as_ptr(), std::ptr::null_mut()) })
    }

    pub(super) fn as_ptr(&self) -> *const libc::sigset_t {
        &raw const self.0
    }
}

/// Blocks everything that [`wait_for_signal`] waits for, so that nothing is lost between start and wait. Returns the
/// mask as it was.
pub(crate) fn block_signals() -> io::Result<SignalMask> {
    let mut before = SignalMask::of(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    let result = unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, SignalMask::waited().as_ptr(), &raw mut before.0)
    };
    if result == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

/// Sets the mask that [`block_signals`] returned.
pub(crate) fn restore_signals(mask: &SignalMask) -> io::Result<()> {
    // SAFETY: the set is initialised and outlives the call; a null pointer asks for no copy of the old one.
    let result =
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask.as_ptr(), std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives SIGCHLD its default action again: a caller that ignored it would make children vanish unseen.
pub(crate) fn restore_child_signal() {
    // SAFETY: SIG_DFL is a valid disposition for SIGCHLD.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// What a terminal or a service manager sends to a whole job no longer ends this process. A program that it starts has
/// the default actions again, as handlers are not inherited.
pub fn outlive_job() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    for signal in FORWARDED {
        // SAFETY: the handler does nothing, which is safe at any time, and the numbers are valid.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Waits for the next blocked signal.
pub(crate) fn wait_for_signal() -> io::Result<Received> {
    let set = SignalMask::waited();
    let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: both pointers are valid for the call; the kernel fills the second.
        let signal = unsafe { libc::sigwaitinfo(set.as_ptr(), information.as_mut_ptr()) };
        if signal == libc::SIGCHLD {
            return Ok(Received::Child);
        }
        if signal > 0 {
            // SAFETY: zeroed is a valid siginfo_t and sigwaitinfo succeeded.
            let information = unsafe { information.assume_init() };
            return Ok(Received::Forward { signal, delivery: delivery_of(&information) });
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

const FROM_KERNEL: libc::c_int = 0x80;

fn delivery_of(information: &libc::siginfo_t) -> Delivery {
    let queued_as_group = information.si_code == libc::SI_QUEUE && {
        // SAFETY: for SI_QUEUE the value member is the one in use.
        let value = unsafe { information.si_value() };
        !value.sival_ptr.is_null()
    };
    if information.si_code == FROM_KERNEL || queued_as_group {
        Delivery::Group
    } else {
        Delivery::Process
    }
}

/// The blocked signals as a descriptor, SIGTSTP among them: for who waits for other things, too.
pub(crate) struct SignalQueue(OwnedFd);

impl SignalQueue {
    pub(crate) fn new() -> io::Result<Self> {
        block(libc::SIGTSTP)?;
        let mut signals = FORWARDED.to_vec();
        signals.extend([libc::SIGCHLD, libc::SIGTSTP]);
        let set = SignalMask::of(&signals);
        // SAFETY: the set is initialised; -1 asks for a new descriptor.
        let descriptor =
            unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next one that has come, if any.
    pub(crate) fn take(&self) -> Option<Received> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut information = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        // SAFETY: the buffer has the size of one entry, which is what the kernel writes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), information.as_mut_ptr().cast(), SIZE) };
        if usize::try_from(read) != Ok(SIZE) {
            return None;
        }
        // SAFETY: zeroed is valid, and the kernel filled it.
        let information = unsafe { information.assume_init() };
        let signal = information.ssi_signo.cast_signed();
        if signal == libc::SIGCHLD {
            return Some(Received::Child);
        }
        let queued_as_group = information.ssi_code == libc::SI_QUEUE && information.ssi_ptr != 0;
        let as_group = information.ssi_code == FROM_KERNEL || queued_as_group;
        let delivery = if as_group { Delivery::Group } else { Delivery::Process };
        Some(Received::Forward { signal, delivery })
    }
}

/// Blocks one signal more.
pub(super) fn block(signal: libc::c_int) -> io::Result<()> {
    let more = SignalMask::of(&[signal]);
    // SAFETY: the set is initialised; nothing is asked back.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, more.as_ptr(), std::ptr::null_mut()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Stops this process group as Ctrl-Z does, and returns when it is continued; at once where nobody could continue it
/// (an orphaned group). SIGTSTP has to be blocked.
pub(crate) fn stop_with_job() -> io::Result<()> {
    let stop = SignalMask::of(&[libc::SIGTSTP]);
    // SAFETY: plain numbers; 0 is the caller's own group.
    check(unsafe { libc::kill(0, libc::SIGTSTP) })?;
    for how in [libc::SIG_UNBLOCK, libc::SIG_BLOCK] {
        // SAFETY: the set is initialised; nothing is asked back. Between the two calls this process stops.
        check(unsafe { libc::sigprocmask(how, stop.as_ptr(), std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// Sends `signal` to the sandbox's init, telling it whether the whole job is meant.
pub(crate) fn deliver(pid: Pid, signal: i32, delivery: Delivery) -> io::Result<()> {
    let mark = usize::from(delivery == Delivery::Group);
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(mark) };
    // SAFETY: plain values; the pointer member carries a number that is never dereferenced.
    let result = unsafe { libc::sigqueue(pid.as_raw_nonzero().get(), signal, value) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Kills every process that this one may signal, itself apart: with Landlock's signal scope, all of its own sandbox.
pub(crate) fn kill_all_others() {
    // SAFETY: plain values. That there is nobody to kill is no failure.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Closes every descriptor from `first` up.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    close_range(first, u32::MAX)
}

/// Closes every descriptor from `first` up, except one.
pub(crate) fn close_all_but(kept: BorrowedFd<'_>, first: u32) -> io::Result<()> {
    let kept = kept.as_raw_fd().cast_unsigned();
    if kept > first {
        close_range(first, kept - 1)?;
    }
    close_range(first.max(kept + 1), u32::MAX)
}

/// Whether the kernel and an outer filter let this process close descriptors so; closes none.
pub(crate) fn may_close() -> io::Result<()> {
    close_range(u32::MAX, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: the caller owns no descriptor of the range any more; close_range touches no memory.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
