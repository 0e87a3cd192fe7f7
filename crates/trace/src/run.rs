//! `plenipo trace`: runs a command and reports what it touches.
//!
//! When this process ends, however it ends, the kernel kills the command; when the command ends, so does this process,
//! with its exit code.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plenipo_launch::{Listener, ObservedCall, ObservedUse, fork_again, outlive_job};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, waitpid};

use crate::Record;
use crate::channel::Reporter;
use crate::memory::{Memory, tidy};

/// The child's code when it could not become the command; its parent says why.
const NOT_STARTED: u8 = 125;
/// How many scripts may be each other's interpreters; the kernel takes fewer.
const MOST_INTERPRETERS: usize = 5;

/// Runs `command` (program and arguments) with this process's environment, directory and streams, and tells the
/// [`Collector`](crate::Collector) called `name` what it touches. Returns the command's exit code; 128+n when signal n
/// ended it.
///
/// # Errors
/// When this process has more than one thread, nobody collects, the kernel refuses to be asked, or the command cannot be
/// run.
pub fn run(name: &str, command: &[OsString]) -> io::Result<u8> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut reporter = Reporter::connect(name)?;
    outlive_job();
    let (ours, theirs) = UnixStream::pair()?;
    let child = fork_again(|| match watched(&theirs) {
        // The socket is closed on exec: whatever comes after the descriptor says why there was none.
        Ok(()) => refuse(&theirs, &execute(program, arguments)),
        Err(error) => refuse(&theirs, &error),
    })?;
    drop(theirs);
    let ended = match receive(&ours) {
        Ok(listener) => follow(child, &listener, &mut reporter)?,
        Err(error) => {
            wait(child)?;
            return Err(error);
        }
    };
    match receive(&ours) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(ended),
    }
}

fn refuse(socket: &UnixStream, error: &io::Error) -> u8 {
    let code = error.raw_os_error().unwrap_or_default().to_ne_bytes();
    rustix::io::write(socket, &code).map_or(NOT_STARTED, |_| NOT_STARTED)
}

/// In the child: from here on it is watched.
fn watched(socket: &UnixStream) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let listener = Listener::install()?;
    let descriptors = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0; 4])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// In the child, which does not come back unless it fails.
fn execute(program: &OsStr, arguments: &[OsString]) -> io::Error {
    #[expect(
        clippy::disallowed_methods,
        reason = "it becomes the server, as its host would start it"
    )]
    Command::new(program).args(arguments).exec()
}

fn receive(socket: &UnixStream) -> io::Result<Listener> {
    let mut code = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut code)];
    let received = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let listener: Option<OwnedFd> = descriptors.flatten().next();
    match listener {
        Some(listener) => Ok(listener.into()),
        None if received.bytes == code.len() => {
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn follow(child: Pid, listener: &Listener, reporter: &mut Reporter) -> io::Result<u8> {
    let ended = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut waited = [PollFd::new(listener, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
        match poll(&mut waited, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [call, end] = waited.map(|one| one.revents());
        if call.contains(PollFlags::IN) {
            listener.answer(|call| tell(call, reporter))?;
        } else if !end.is_empty() {
            return wait(child);
        }
    }
}

fn wait(child: Pid) -> io::Result<u8> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let signal = status.terminating_signal().map(|signal| signal.saturating_add(128));
                let code = status.exit_status().or(signal).unwrap_or_default();
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What cannot be read is a call that fails, or one whose thread is gone: neither needs anything.
fn tell(call: &ObservedCall, reporter: &mut Reporter) {
    let Ok(memory) = Memory::of(call.thread) else { return reporter.tell(Record::Incomplete) };
    match call.what {
        ObservedUse::Connect | ObservedUse::Bind => {
            let length = usize::try_from(call.length).unwrap_or_default().min(128);
            let Ok(bytes) = memory.bytes(call.address, length) else { return };
            if let Some(record) = address(&bytes, call.what == ObservedUse::Bind) {
                reporter.tell(record);
            }
        }
        _ => {
            let Ok(Some(path)) = memory.path(call.address, call.directory) else { return };
            let Some(path) = outside(tidy(&path), call.thread) else { return };
            if call.what == ObservedUse::Execute {
                interpreters(&path, reporter);
            }
            reporter.tell(match path.into_os_string().into_string() {
                Ok(path) => record(call.what, path, &memory),
                Err(_) => Record::Incomplete,
            });
        }
    }
}

/// Where a path leads that goes through a process's directory, its root or a descriptor, or goes up again. `None` in what
/// each sandbox has of its own.
fn outside(path: PathBuf, thread: u32) -> Option<PathBuf> {
    let is_own = |path: &Path| ["/proc", "/dev"].iter().any(|own| path.starts_with(own));
    if !is_own(&path) {
        return Some(path);
    }
    let process = PathBuf::from(format!("/proc/{thread}"));
    let whose = [
        ("/proc/self", process.clone()),
        ("/proc/thread-self", process.clone()),
        ("/dev/fd", process.join("fd")),
    ];
    let below = |(own, process): &(&str, PathBuf)| Some(process.join(path.strip_prefix(own).ok()?));
    let path = whose.iter().find_map(below).unwrap_or_else(|| path.clone());
    let mut prefixes: Vec<&Path> = path.ancestors().collect();
    prefixes.reverse();
    for prefix in prefixes {
        let Ok(end) = std::fs::read_link(prefix) else { continue };
        let is_gone = end.to_string_lossy().ends_with(" (deleted)");
        if end.is_absolute() && !is_own(&end) && !is_gone {
            return Some(tidy(&end.join(path.strip_prefix(prefix).ok()?)));
        }
    }
    let real = std::fs::canonicalize(&path).ok();
    let made = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    real.or_else(made).filter(|end| !is_own(end))
}

fn record(what: ObservedUse, path: String, memory: &Memory) -> Record {
    let flags = match what {
        ObservedUse::Look => return Record::Look(path),
        ObservedUse::Execute => return Record::Execute(path),
        ObservedUse::Open { flags } => flags,
        ObservedUse::OpenHow { address } => {
            let bytes = memory.bytes(address, 8).ok().and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_ne_bytes).unwrap_or_default()
        }
        _ => return Record::Make(path),
    };
    let flags = OFlags::from_bits_retain(u32::try_from(flags & u64::from(u32::MAX)).unwrap_or(0));
    if flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE) {
        Record::Make(path)
    } else if flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC) {
        Record::Write(path)
    } else if flags.contains(OFlags::PATH) {
        Record::Look(path)
    } else {
        Record::Read(path)
    }
}

/// The kernel opens the interpreter of a script without asking anybody.
fn interpreters(path: &Path, reporter: &mut Reporter) {
    let mut script = path.to_path_buf();
    for _ in 0..MOST_INTERPRETERS {
        let Some(interpreter) = interpreter(&script) else { return };
        if let Some(text) = interpreter.to_str() {
            reporter.tell(Record::Execute(text.to_owned()));
        }
        script = interpreter;
    }
}

fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    std::fs::File::open(script).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    text.starts_with('/').then(|| PathBuf::from(text))
}

/// A `sockaddr`; those of other families reach nothing outside.
fn address(bytes: &[u8], bound: bool) -> Option<Record> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = || Some(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?));
    let internet =
        |address: IpAddr| Some(Record::Internet(SocketAddr::new(address, port()?).to_string()));
    match i32::from(family) {
        1 if bound => None,
        1 => {
            let name = bytes.get(2..)?.split(|byte| *byte == 0).next()?;
            let path = std::str::from_utf8(name).ok()?;
            path.starts_with('/').then(|| Record::Socket(path.to_owned()))
        }
        2 => internet(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into()),
        10 => internet(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_through_a_process_is_one_of_a_file_and_what_is_its_own_is_none() {
        let thread = std::process::id();
        let here = std::fs::canonicalize(".").unwrap();
        let led = |path: &str| outside(PathBuf::from(path), thread);
        assert_eq!(led("/proc/self/root/etc/shadow"), Some("/etc/shadow".into()));
        assert_eq!(led("/proc/thread-self/root"), Some("/".into()));
        assert_eq!(led(&format!("/proc/{thread}/cwd/missing")), Some(here.join("missing")));
        assert_eq!(led("/proc/self/../../etc/passwd"), Some("/etc/passwd".into()));
        assert_eq!(led("/dev/../etc/passwd"), Some("/etc/passwd".into()));
        let file = std::fs::File::open("/etc/passwd").unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!(led(&format!("/dev/fd/{descriptor}")), Some("/etc/passwd".into()));
        for own in ["/proc/self/status", "/dev/null", "/proc/meminfo", "/proc/self/fd"] {
            assert_eq!(led(own), None, "{own}");
        }
        assert_eq!(led("/x/./y"), Some("/x/./y".into()));
    }

    #[test]
    fn addresses_are_read_as_the_kernel_does() {
        let four = [2, 0, 1, 187, 203, 0, 113, 7, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(address(&four, false), Some(Record::Internet("203.0.113.7:443".to_owned())));
        let mut six = vec![10, 0, 0, 80, 0, 0, 0, 0];
        six.extend([0; 15]);
        six.push(1);
        assert_eq!(address(&six, true), Some(Record::Internet("[::1]:80".to_owned())));
        assert_eq!(
            address(b"\x01\0/run/x\0rest", false),
            Some(Record::Socket("/run/x".to_owned()))
        );
        assert_eq!(address(b"\x01\0/run/x\0", true), None);
        assert_eq!(address(b"\x01\0\0abstract", false), None);
        assert_eq!((address(&four[..7], false), address(&[], false)), (None, None));
    }
}
