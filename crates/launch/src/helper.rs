//! A second process of this program, for what has to outlive the first: a fork, which costs a tenth of a start.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;

use crate::launcher::has_one_thread;
use crate::sys::{self, Fork};

/// What a helper says when its work panicked.
const PANICKED: u8 = 101;

/// Forks; the child does `work`, exits with what it returns, and never comes back here.
///
/// It leads a process group of its own, is not ended by the signals of a job, has `/dev/null` for its standard streams and
/// of all descriptors only `kept` (which it is given back): `work` must not use any other that it captured.
///
/// # Errors
/// When the process has more than one thread, or cannot be forked.
pub fn fork_helper(kept: OwnedFd, work: impl FnOnce(OwnedFd) -> u8) -> io::Result<Pid> {
    forked(move || {
        rustix::process::setpgid(None, None).unwrap_or_default();
        sys::outlive_job();
        sys::restore_child_signal();
        match detach(&kept) {
            Ok(()) => work(kept),
            Err(_) => PANICKED,
        }
    })
}

/// Forks a helper once more; the child has its descriptors and its other properties too.
///
/// # Errors
/// As for [`fork_helper`].
pub fn fork_again(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    forked(work)
}

fn forked(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    if !has_one_thread()? {
        return Err(io::Error::other("this process has more than one thread"));
    }
    match sys::fork()? {
        Fork::Parent(child) => Ok(child),
        // The frames below belong to the parent: nothing may unwind into them.
        Fork::Child => {
            sys::exit_now(catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED).into())
        }
    }
}

fn detach(kept: &OwnedFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    sys::close_all_but(kept.as_fd(), 3)?;
    // Closed above with all others.
    std::mem::forget(null);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv().ok());
        let refused = fork_helper(ours.into(), |_| 0).unwrap_err();
        assert_eq!(refused.to_string(), "this process has more than one thread");
        drop(stop);
        thread.join().unwrap();
    }
}
