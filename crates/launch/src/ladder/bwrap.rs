//! Rung `bwrap`: namespaces and mounts by `/usr/bin/bwrap`, everything else by this program inside.
//!
//! ```text
//! launcher ─ spawn ─ bwrap (outside, waits) ─ clone ─ bwrap ─ exec by descriptor ─ this program: PID 1, init
//! ```
//!
//! On some distributions that program alone may make user namespaces. It is taken from one place only, never looked up,
//! and gets an empty environment. What each stage has to know is handed over in memory, never in arguments; the inner
//! stage is executed by descriptor, so no policy has to make the launcher readable. It checks bwrap's work the way the
//! other rungs check their own, before it locks itself in.

mod arguments;
mod program;
pub(crate) mod stage;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use plenipo_policy::Network;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::Pid;
use serde::Deserialize;

use super::{Attempt, Purpose};
use crate::error::{ErrorKind, LaunchError};
use crate::handshake::{self, Answer, FromFirst, ended_early};
use crate::plan::plan;
use crate::supervise::{reap, supervise};
use crate::sys::{self, SignalMask};

use arguments::Arguments;
use stage::Handover;

/// Words of bwrap's own on standard error that are kept.
const MAX_WORDS: u64 = 4096;
/// What bwrap says about the process it made, in JSON.
const MAX_INFORMATION: u64 = 4096;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Information {
    child_pid: i32,
}

/// The ends of pipes that stay with the launcher.
struct Ends {
    answers: FromFirst,
    information: OwnedFd,
    words: OwnedFd,
}

/// Runs the command to its end, or says why bwrap is no help here.
pub(super) fn attempt(
    attempt: &Attempt<'_>,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    if attempt.request.inner_stage.is_empty() {
        return Err(LaunchError::new(
            ErrorKind::Unsupported,
            "this program offers no stage to run inside bwrap",
        ));
    }
    program::verify()?;
    let (child, ends) = start(attempt, report.is_some())?;
    match ends.answers.wait() {
        Answer::Started(gate) => {
            if let Err(error) = attempt.open(gate, report) {
                reap(child);
                return Err(error);
            }
            let code = supervise(child, first_process(ends.information)?);
            drop(ends.words); // closed earlier, it would end a bwrap that has something to say
            code
        }
        Answer::Refused(error) => {
            reap(child);
            Err(error)
        }
        Answer::Nothing => {
            reap(child);
            Err(said(ends.words).unwrap_or_else(ended_early))
        }
    }
}

/// Every descriptor that bwrap inherits; they are closed here as soon as it runs.
fn start(attempt: &Attempt<'_>, gated: bool) -> Result<(Pid, Ends), LaunchError> {
    let step = |what: &'static str| move |error: rustix::io::Errno| LaunchError::step(what, error);
    let (answers, launcher) = handshake::pair(gated)?;
    let (information, inform) = rustix::pipe::pipe().map_err(step("make a pipe"))?;
    let (words, say) = rustix::pipe::pipe().map_err(step("make a pipe"))?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let executable = rustix::fs::open("/proc/self/exe", flags, Mode::empty())
        .map_err(step("open the launcher's own executable"))?;
    let stderr = rustix::io::dup(std::io::stderr()).map_err(step("copy standard error"))?;
    let resolved = &attempt.prepared.resolved;
    let plan = plan(&resolved.tree, &resolved.links, &resolved.cwd);
    let network = attempt.request.policy.network == Network::Enabled;
    let mut arguments = Arguments::new(&plan, network)?;
    arguments.push_descriptor("--info-fd", inform.as_fd());
    let handover = Handover {
        launcher: launcher.pipe().as_raw_fd(),
        gate: launcher.gate().map(|gate| gate.as_raw_fd()),
        stderr: stderr.as_raw_fd(),
        only_try: attempt.purpose == Purpose::Try,
        network,
        landlock_abi: attempt.prepared.landlock_abi,
        descriptor_limit: attempt
            .prepared
            .descriptor_limit
            .map(|limit| [limit.current, limit.maximum]),
        mask: attempt.mask.members(),
        payload: attempt.prepared.payload.clone(),
        environment: attempt.prepared.payload.environment(),
        plan,
    };
    let text = serde_json::to_vec(&handover).map_err(|_| {
        LaunchError::new(ErrorKind::Unsupported, "a path of the policy is not UTF-8")
    })?;
    let (handed, listed) = (memory(&text)?, memory(&arguments.to_bytes())?);
    let masks = arguments.into_descriptors();
    let inherited = [&executable, &stderr, &handed, &listed, &inform]
        .into_iter()
        .chain(&masks)
        .map(AsFd::as_fd)
        .chain(launcher.gate())
        .chain([launcher.pipe()]);
    for descriptor in inherited {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())
            .map_err(step("pass a descriptor on"))?;
    }
    let mut all: Vec<OsString> = vec!["--args".into(), listed.as_raw_fd().to_string().into()];
    all.push("--".into());
    all.push(format!("/proc/self/fd/{}", executable.as_raw_fd()).into());
    all.extend(attempt.request.inner_stage.iter().cloned());
    all.push(handed.as_raw_fd().to_string().into());
    // What bwrap itself says is not the command's.
    rustix::stdio::dup2_stderr(&say).map_err(step("redirect standard error"))?;
    let child = sys::spawn(program::PATH.as_ref(), &all, Vec::new(), &SignalMask::waited());
    rustix::stdio::dup2_stderr(&stderr).map_err(step("restore standard error"))?;
    let child = child.map_err(|error| LaunchError::unsupported("start /usr/bin/bwrap", error))?;
    Ok((child, Ends { answers, information, words }))
}

/// A file of memory with this content, to be read from its start.
fn memory(content: &[u8]) -> Result<OwnedFd, LaunchError> {
    let make = || {
        let descriptor = rustix::fs::memfd_create("plenipo", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(descriptor);
        file.write_all(content)?;
        file.rewind()?;
        Ok(OwnedFd::from(file))
    };
    make().map_err(|error: std::io::Error| LaunchError::step("hand over in memory", error))
}

/// The inner stage's process, which takes the signals.
fn first_process(information: OwnedFd) -> Result<Pid, LaunchError> {
    let mut text = String::new();
    let read = File::from(information).take(MAX_INFORMATION).read_to_string(&mut text);
    read.map_err(|error| LaunchError::step("read what bwrap made", error))?;
    serde_json::from_str(&text)
        .ok()
        .and_then(|information: Information| Pid::from_raw(information.child_pid))
        .ok_or_else(|| LaunchError::new(ErrorKind::Setup, "read what bwrap made: no process"))
}

/// bwrap gave up before the inner stage ran: its words say what this machine lacks.
fn said(words: OwnedFd) -> Option<LaunchError> {
    let mut text = Vec::new();
    File::from(words).take(MAX_WORDS).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let line = line.strip_prefix("bwrap: ").unwrap_or(line);
    let error = LaunchError::new(ErrorKind::Unsupported, line.to_owned());
    Some(error.with_hint("`/usr/bin/bwrap --ro-bind / / true` has to work"))
}
