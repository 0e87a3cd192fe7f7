//! What a sandbox's first process tells its launcher over a pipe: that it is complete, or why it is not.
//!
//! If there is a report to write, a second pipe holds the command back until the launcher has written and closed it:
//!
//! ```text
//! first process  complete ──▶ launcher  writes the report, closes it ──▶ first process  starts the command
//! ```

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::error::{ErrorKind, LaunchError};

/// A refusal is short; more than this is not one.
const MAX_BYTES: u64 = 64 * 1024;
/// In place of a refusal.
const STARTED: &str = "started";

/// In the other direction, when the report is written.
const GO_ON: [u8; 1] = [1];

/// The first process's ends.
pub(crate) struct ToLauncher {
    pipe: OwnedFd,
    gate: Option<OwnedFd>,
}

/// The launcher's ends.
pub(crate) struct FromFirst {
    pipe: OwnedFd,
    gate: Option<OwnedFd>,
}

/// What the command waits for; dropped without being opened, it never starts.
#[must_use]
pub(crate) struct Gate(Option<OwnedFd>);

/// How the building ended.
pub(crate) enum Answer {
    /// The sandbox is complete; the command starts as soon as the gate is open.
    Started(Gate),
    Refused(LaunchError),
    /// The first process ended without a word.
    Nothing,
}

/// Both sides' ends, closed on exec; `gated` if the command has to wait for the launcher.
pub(crate) fn pair(gated: bool) -> Result<(FromFirst, ToLauncher), LaunchError> {
    let pipe = || {
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|error| LaunchError::step("make a pipe", error))
    };
    let (ours, theirs) = pipe()?;
    let (waiting, opening) = if gated { Some(pipe()?) } else { None }.unzip();
    let launcher = ToLauncher { pipe: theirs, gate: waiting };
    Ok((FromFirst { pipe: ours, gate: opening }, launcher))
}

impl FromFirst {
    /// Waits until the first process has closed its end.
    pub(crate) fn wait(self) -> Answer {
        let mut text = String::new();
        match std::fs::File::from(self.pipe).take(MAX_BYTES).read_to_string(&mut text) {
            Ok(0) => return Answer::Nothing,
            Ok(_) if text == STARTED => return Answer::Started(Gate(self.gate)),
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

impl Gate {
    /// Lets the command start.
    pub(crate) fn open(self) {
        if let Some(gate) = self.0 {
            // A first process that is gone needs no word; its end says so.
            drop(std::fs::File::from(gate).write_all(&GO_ON));
        }
    }
}

impl ToLauncher {
    pub(crate) fn over(pipe: OwnedFd, gate: Option<OwnedFd>) -> Self {
        Self { pipe, gate }
    }

    pub(crate) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    pub(crate) fn gate(&self) -> Option<BorrowedFd<'_>> {
        self.gate.as_ref().map(AsFd::as_fd)
    }

    /// The kernel sends `signal` to this process when the launcher ends; if it ended before that was set, the pipe shows
    /// it.
    pub(crate) fn die_with_launcher(&self, signal: Signal) -> Result<(), LaunchError> {
        rustix::process::set_parent_process_death_signal(Some(signal))
            .map_err(|error| LaunchError::step("tie the sandbox to its launcher", error))?;
        let mut ends = [PollFd::new(&self.pipe, PollFlags::empty())];
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

    /// The last word of a first process that goes on, once the launcher lets it. `false`: the launch is refused after all,
    /// or the launcher is gone.
    pub(crate) fn started(mut self) -> bool {
        let gate = self.gate.take();
        self.say(STARTED);
        let opened = |gate: OwnedFd| std::fs::File::from(gate).read_exact(&mut [0; GO_ON.len()]);
        gate.is_none_or(|gate| opened(gate).is_ok())
    }

    /// The last word of one that does not.
    pub(crate) fn refuse(self, error: &LaunchError) {
        self.say(&serde_json::to_string(&error.to_refusal()).unwrap_or_default());
    }

    /// If the launcher is gone there is nobody to tell, and the kernel ends this process too.
    fn say(self, text: &str) {
        drop(std::fs::File::from(self.pipe).write_all(text.as_bytes()));
    }
}
