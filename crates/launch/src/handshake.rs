//! What a sandbox's first process tells its launcher over a pipe: that it is complete, or why it is not.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::error::{ErrorKind, LaunchError};

/// A refusal is short; more than this is not one.
const MAX_BYTES: u64 = 64 * 1024;
/// In place of a refusal.
const STARTED: &str = "started";

/// The first process's end.
pub(crate) struct ToLauncher(OwnedFd);

/// The launcher's end.
pub(crate) struct FromFirst(OwnedFd);

/// How the building ended.
pub(crate) enum Answer {
    /// The sandbox is complete; the command starts now.
    Started,
    Refused(LaunchError),
    /// The first process ended without a word.
    Nothing,
}

/// Both ends, closed on exec.
pub(crate) fn pair() -> Result<(FromFirst, ToLauncher), LaunchError> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| LaunchError::step("make a pipe", error))?;
    Ok((FromFirst(ours), ToLauncher(theirs)))
}

impl FromFirst {
    /// Waits until the first process has closed its end.
    pub(crate) fn wait(self) -> Answer {
        let mut text = String::new();
        match std::fs::File::from(self.0).take(MAX_BYTES).read_to_string(&mut text) {
            Ok(0) => return Answer::Nothing,
            Ok(_) if text == STARTED => return Answer::Started,
            _ => {}
        }
        let refusal = serde_json::from_str(&text).map(LaunchError::from_refusal);
        Answer::Refused(refusal.unwrap_or_else(|_| ended_early()))
    }
}

/// The first process was killed, or said something that cannot be read.
pub(crate) fn ended_early() -> LaunchError {
    LaunchError::new(ErrorKind::Setup, "build the sandbox: its first process ended early")
}

impl ToLauncher {
    pub(crate) fn over(pipe: OwnedFd) -> Self {
        Self(pipe)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The kernel sends `signal` to this process when the launcher ends; if it ended before that was set, the pipe shows
    /// it.
    pub(crate) fn die_with_launcher(&self, signal: Signal) -> Result<(), LaunchError> {
        rustix::process::set_parent_process_death_signal(Some(signal))
            .map_err(|error| LaunchError::step("tie the sandbox to its launcher", error))?;
        let mut ends = [PollFd::new(&self.0, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut ends, Some(&now)).map_err(|error| LaunchError::step("look at a pipe", error))?;
        if ends.iter().any(|end| end.revents().contains(PollFlags::ERR)) {
            return Err(LaunchError::new(
                ErrorKind::Setup,
                "the launcher ended while the sandbox was being built",
            ));
        }
        Ok(())
    }

    /// The last word of a first process that goes on.
    pub(crate) fn started(self) {
        self.say(STARTED);
    }

    /// The last word of one that does not.
    pub(crate) fn refuse(self, error: &LaunchError) {
        self.say(&serde_json::to_string(&error.to_refusal()).unwrap_or_default());
    }

    /// If the launcher is gone there is nobody to tell, and the kernel ends this process too.
    fn say(self, text: &str) {
        drop(std::fs::File::from(self.0).write_all(text.as_bytes()));
    }
}
