//! The launcher's side: bytes both ways, signals, size, and the person's terminal set raw meanwhile.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use rustix::termios::{OptionalActions, Termios};

use super::{ENDED, Outside, STOPPED, receive, size};
use crate::error::LaunchError;
use crate::init::exit_code;
use crate::sys::{Delivery, Received, SignalQueue, deliver, stop_with_job};

/// Bytes passed on at a time; a pipe takes as many without blocking once it is ready.
const CHUNK: usize = 4096;
/// What is read after the command's end; a pseudo-terminal holds less.
const MAX_REST: usize = 1024 * 1024;
/// End of input, as a person types it.
const END_OF_INPUT: u8 = 4;

/// Relays until `child` ends, and returns its exit code. It has opened its terminal before.
pub(crate) fn relay(outside: Outside, child: Pid) -> Result<u8, LaunchError> {
    let failed = |error: Errno| LaunchError::step("relay a terminal", error);
    let master = receive(outside.channel.as_fd()).map_err(failed)?;
    rustix::io::ioctl_fionbio(&master, true).map_err(failed)?;
    let signals =
        SignalQueue::new().map_err(|error| LaunchError::step("wait for signals", error))?;
    let mut relay = Relay {
        child,
        master: Some(master),
        channel: Some(outside.channel),
        signals,
        raw: RawMode { settings: outside.settings },
        input: Some(Vec::new()),
        to_command: Vec::new(),
        to_person: Vec::new(),
    };
    relay.raw.enter();
    loop {
        if let Some(code) = relay.turn().map_err(failed)? {
            relay.read_rest();
            return Ok(code);
        }
    }
}

/// The person's terminal, raw until this is dropped.
struct RawMode {
    settings: Option<Termios>,
}

impl RawMode {
    fn enter(&self) {
        let Some(mut settings) = self.settings.clone() else { return };
        settings.make_raw();
        // A terminal that cannot be set is one that is gone.
        rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &settings).unwrap_or(());
    }

    fn leave(&self) {
        if let Some(settings) = &self.settings {
            rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, settings)
                .unwrap_or(());
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.leave();
    }
}

struct Relay {
    child: Pid,
    /// Closed once nobody has the other side open.
    master: Option<OwnedFd>,
    /// Closed when the command has ended.
    channel: Option<OwnedFd>,
    signals: SignalQueue,
    raw: RawMode,
    /// The last chunk of input; `None` after its end.
    input: Option<Vec<u8>>,
    to_command: Vec<u8>,
    to_person: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Channel,
    Master,
    Input,
    Output,
}

impl Relay {
    /// Waits once and does what is due; the exit code when the sandbox has ended.
    fn turn(&mut self) -> Result<Option<u8>, Errno> {
        for source in self.wait()? {
            match source {
                Source::Signals => {
                    if let Some(code) = self.take_signals()? {
                        return Ok(Some(code));
                    }
                }
                Source::Channel => self.take_news(),
                Source::Master => self.exchange(),
                Source::Input => self.take_input(),
                Source::Output => self.write_output(),
            }
        }
        Ok(None)
    }

    fn wait(&self) -> Result<Vec<Source>, Errno> {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let mut wanted = vec![(Source::Signals, self.signals.as_fd(), PollFlags::IN)];
        if let Some(channel) = &self.channel {
            wanted.push((Source::Channel, channel.as_fd(), PollFlags::IN));
        }
        if let Some(master) = &self.master {
            let reads = if self.to_person.is_empty() { PollFlags::IN } else { PollFlags::empty() };
            let writes =
                if self.to_command.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            if !(reads | writes).is_empty() {
                wanted.push((Source::Master, master.as_fd(), reads | writes));
            }
        }
        if self.input.is_some() && self.to_command.is_empty() {
            wanted.push((Source::Input, stdin.as_fd(), PollFlags::IN));
        }
        if !self.to_person.is_empty() {
            wanted.push((Source::Output, stdout.as_fd(), PollFlags::OUT));
        }
        let mut ends: Vec<PollFd<'_>> =
            wanted.iter().map(|(_, end, flags)| PollFd::from_borrowed_fd(*end, *flags)).collect();
        match poll(&mut ends, None::<&Timespec>) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let ready = wanted.iter().zip(&ends).filter(|(_, end)| !end.revents().is_empty());
        Ok(ready.map(|((source, _, _), _)| *source).collect())
    }

    fn take_signals(&mut self) -> Result<Option<u8>, Errno> {
        while let Some(received) = self.signals.take() {
            match received {
                Received::Child => {
                    let waited = rustix::process::waitpid(Some(self.child), WaitOptions::NOHANG)?;
                    if let Some((_, status)) = waited {
                        return Ok(Some(exit_code(status)));
                    }
                }
                Received::Forward { signal: libc::SIGWINCH, .. } => self.resize(),
                Received::Forward { signal: libc::SIGTSTP, .. } => self.suspend(),
                Received::Forward { signal, delivery } => {
                    drop(deliver(self.child, signal, delivery));
                }
            }
        }
        Ok(None)
    }

    /// The kernel tells the foreground group inside.
    fn resize(&self) {
        if let (Some(master), Some(size)) = (&self.master, size()) {
            rustix::termios::tcsetwinsize(master, size).unwrap_or(());
        }
    }

    /// Stops the launcher's job as Ctrl-Z would have, and goes on when it is continued.
    fn suspend(&mut self) {
        self.write_output();
        self.raw.leave();
        drop(stop_with_job());
        self.raw.enter();
        self.resize();
        drop(deliver(self.child, libc::SIGCONT, Delivery::Group));
    }

    fn take_news(&mut self) {
        let mut news = [0; 16];
        let read = self.channel.as_ref().map(|channel| rustix::io::read(channel, &mut news));
        let news = news.get(..read.and_then(Result::ok).unwrap_or(0)).unwrap_or_default();
        if news.contains(&STOPPED) {
            self.suspend();
        }
        if news.is_empty() || news.contains(&ENDED) {
            self.read_rest();
            self.channel = None;
        }
    }

    /// Both ways between the buffers and the master.
    fn exchange(&mut self) {
        let Some(master) = &self.master else { return };
        if !self.to_command.is_empty()
            && let Ok(written) = rustix::io::write(master, &self.to_command)
        {
            self.to_command.drain(..written.min(self.to_command.len()));
        }
        if self.to_person.is_empty() {
            let mut chunk = vec![0; CHUNK];
            match rustix::io::read(master, &mut chunk) {
                Ok(0) => self.master = None,
                Ok(read) => {
                    chunk.truncate(read);
                    self.to_person = chunk;
                    self.write_output();
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => self.master = None, // EIO: nobody has the other side open
            }
        }
    }

    fn take_input(&mut self) {
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(std::io::stdin(), &mut chunk) {
            Ok(read) if read > 0 => {
                chunk.truncate(read);
                self.to_command.clone_from(&chunk);
                self.input = Some(chunk);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            _ => {
                let last = self.input.take().unwrap_or_default();
                // After an unfinished line the first one only ends the line.
                let finished = last.last().is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
                self.to_command = vec![END_OF_INPUT; if finished { 1 } else { 2 }];
            }
        }
    }

    /// Nobody who reads: what the command says is lost, and it goes on.
    fn write_output(&mut self) {
        match rustix::io::write(std::io::stdout(), &self.to_person) {
            Ok(written) => drop(self.to_person.drain(..written.min(self.to_person.len()))),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.to_person.clear(),
        }
    }

    fn read_rest(&mut self) {
        let mut rest = MAX_REST;
        loop {
            while !self.to_person.is_empty() {
                self.write_output();
            }
            let Some(master) = &self.master else { return };
            let mut chunk = vec![0; CHUNK];
            match rustix::io::read(master, &mut chunk) {
                Ok(read) if read > 0 && rest > 0 => {
                    rest = rest.saturating_sub(read);
                    chunk.truncate(read);
                    self.to_person = chunk;
                }
                _ => return,
            }
        }
    }
}
