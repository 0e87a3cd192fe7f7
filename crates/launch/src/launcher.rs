//! From a request to an exit code: resolve, plan, fork, confine, run, wait.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use plenipo_policy::{Mode, Network, SandboxPolicy};
use rustix::fs::FileType;
use rustix::net::{AddressFamily, SocketType};

use crate::egress::{self, Egress};
use crate::error::{ErrorKind, LaunchError};
use crate::init::{self, Payload};
use crate::ladder::{Climb, Purpose};
use crate::prepare::{payload, prepare};
use crate::protections::Protections;
use crate::report::{EnforcementReport, write_line};
use crate::rung::Rung;
use crate::sys;

/// One command to run under one policy.
#[derive(Debug)]
#[non_exhaustive]
pub struct LaunchRequest {
    /// What is enforced; its `cwd` becomes the command's working directory.
    pub policy: SandboxPolicy,
    /// Program (a path, or a name looked up in `PATH`) and arguments; not empty.
    pub command: Vec<OsString>,
    /// What is protected whatever the policy says.
    pub protections: Protections,
    /// Unknown members of the sandbox state, for the report.
    pub unknown_members: Vec<String>,
    /// What else the report should say.
    pub notes: Vec<String>,
    /// Where the report, or the refusal, goes as one JSON line; closed before the command starts.
    pub report: Option<OwnedFd>,
    /// The command gets a terminal of its own as its standard streams, relayed to and from the caller's. Default: it gets
    /// the caller's streams, and a session without a terminal. Without effect where nothing is enforced.
    pub terminal: bool,
    /// The command's whole environment. Default: the caller's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Words that make this program call [`inner_stage`](crate::inner_stage), the descriptor's number behind them.
    /// Without them there is no rung `bwrap`.
    pub inner_stage: Vec<OsString>,
    /// Serves a network that the policy limits to hosts; without it such a policy is refused.
    pub egress: Option<Box<dyn Egress>>,
    /// The weakest rung to launch on; the best available one is taken.
    pub minimum_rung: Rung,
    /// Whether a deny pattern is refused if what matches it later would not be hidden. Default: it is hidden as it is at the
    /// start, and the report says so.
    pub strict_globs: bool,
}

impl LaunchRequest {
    /// A request that protects nothing beyond the policy, reports to nobody, and accepts no weak rung.
    pub fn new(policy: SandboxPolicy, command: Vec<OsString>) -> Self {
        Self {
            policy,
            command,
            protections: Protections::default(),
            unknown_members: Vec::new(),
            notes: Vec::new(),
            report: None,
            terminal: false,
            environment: None,
            inner_stage: Vec::new(),
            egress: None,
            minimum_rung: Rung::Full,
            strict_globs: false,
        }
    }
}

/// Runs the command and returns its exit code: its own, 128 + n for signal n, 127 not found, 126 not executable.
///
/// Must be called by a process with one thread; it forks. Signals TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are
/// blocked in the caller from here on and passed to the command. Standard streams pass through; every other descriptor
/// is closed for the command.
///
/// # Errors
/// [`LaunchError`]: the sandbox was refused and the command was not started. The report says so too.
pub fn launch(mut request: LaunchRequest) -> Result<u8, LaunchError> {
    let mut report = request.report.take();
    let outcome = launch_reporting(&request, &mut report);
    if let (Err(error), Some(report)) = (&outcome, report) {
        // If its reader is gone, the caller has the error.
        drop(write_line(report, &error.to_line()));
    }
    outcome
}

/// Leaves the report to the caller if it is refused before there is one.
fn launch_reporting(
    request: &LaunchRequest,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    let payload = payload(request)?;
    if request.policy.mode == Mode::Disabled {
        return run_unconfined(&request.policy.cwd, &payload, report);
    }
    check_standard_streams(&request.policy.network)?;
    check_network(request)?;
    check_one_thread()?;
    let prepared = prepare(request, payload)?;
    Climb::new(request, &prepared, Purpose::Run)?.run(report)
}

/// Works out the report of a launch by building its sandbox, without running anything in it.
///
/// Like [`launch`] it forks, so the process must have one thread. Rungs below the minimum are tried too, and the error
/// then says whether one of them would do.
///
/// # Errors
/// The same refusals as [`launch`].
pub fn explain(request: &LaunchRequest) -> Result<EnforcementReport, LaunchError> {
    let payload = payload(request)?;
    if request.policy.mode == Mode::Disabled {
        return Ok(EnforcementReport::disabled());
    }
    check_one_thread()?;
    check_network(request)?;
    let prepared = prepare(request, payload)?;
    Climb::new(request, &prepared, Purpose::Try)?.explain()
}

/// A copy of the descriptor that this process inherited under `number`: a state's.
///
/// # Errors
/// The number is not open.
pub fn inherited_descriptor(number: i32) -> Result<OwnedFd, LaunchError> {
    sys::copy_inherited(number).map_err(|error| {
        let message = format!("use the inherited descriptor {number}");
        LaunchError::with_source(ErrorKind::Invalid, message, error)
    })
}

fn check_network(request: &LaunchRequest) -> Result<(), LaunchError> {
    match request.policy.network {
        Network::Limited(_) if request.egress.is_none() => Err(egress::not_served()),
        Network::Restricted | Network::Limited(_) | Network::Enabled => Ok(()),
    }
}

/// Takes over the descriptor that this process inherited under `number`, a report's: nothing else of this process has it
/// any more. Of a standard stream, which stays open, it is a copy.
///
/// # Errors
/// The number is not open, or is a descriptor that this process opened itself.
pub fn take_inherited(number: i32) -> Result<OwnedFd, LaunchError> {
    sys::take_inherited(number).map_err(|error| {
        let message = format!("use the inherited descriptor {number}");
        LaunchError::with_source(ErrorKind::Invalid, message, error)
    })
}

/// A directory as a standard stream is a way back to the host's mounts, a datagram socket one to any socket of the
/// host's: each message can be aimed anew. So can a stream socket that is not connected yet.
fn check_standard_streams(network: &Network) -> Result<(), LaunchError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams =
        [("stdin", stdin.as_fd()), ("stdout", stdout.as_fd()), ("stderr", stderr.as_fd())];
    for (name, stream) in streams {
        let Ok(stat) = rustix::fs::fstat(stream) else { continue }; // closed by the caller
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => "a directory",
            FileType::Socket if !is_stream(stream)? => "a datagram socket",
            FileType::Socket if could_be_aimed(stream, network)? => {
                "an internet socket while the network is limited"
            }
            FileType::Socket if !leads_to_one_peer(stream, network)? => {
                "a socket that is not connected"
            }
            _ => continue,
        };
        let message = format!("{name} is {what}, which would lead out of the sandbox");
        return Err(LaunchError::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

fn is_stream(socket: BorrowedFd<'_>) -> Result<bool, LaunchError> {
    let kind = rustix::net::sockopt::socket_type(socket)
        .map_err(|error| LaunchError::step("look at a standard stream", error))?;
    Ok(kind == SocketType::STREAM || kind == SocketType::SEQPACKET)
}

/// With a limited network a command may connect, and a TCP socket that was made outside would do so outside.
fn could_be_aimed(socket: BorrowedFd<'_>, network: &Network) -> Result<bool, LaunchError> {
    Ok(matches!(network, Network::Limited(_)) && family(socket)? != AddressFamily::UNIX)
}

fn family(socket: BorrowedFd<'_>) -> Result<AddressFamily, LaunchError> {
    rustix::net::sockopt::socket_domain(socket)
        .map_err(|error| LaunchError::step("look at a standard stream", error))
}

/// With the network on, a command makes internet sockets itself.
fn leads_to_one_peer(socket: BorrowedFd<'_>, network: &Network) -> Result<bool, LaunchError> {
    let family = family(socket)?;
    let internet = family == AddressFamily::INET || family == AddressFamily::INET6;
    let is_connected = || rustix::net::getpeername(socket).is_ok();
    Ok((internet && *network == Network::Enabled) || is_connected())
}

/// `fork` in a process with several threads leaves the others' locks held for ever.
fn check_one_thread() -> Result<(), LaunchError> {
    let alone = has_one_thread();
    if alone.map_err(|error| LaunchError::step("look at /proc/self/task", error))? {
        return Ok(());
    }
    Err(LaunchError::new(ErrorKind::Invalid, "the launching process has more than one thread"))
}

pub(crate) fn has_one_thread() -> std::io::Result<bool> {
    const WITH_ONE_THREAD: u64 = 3; // ".", ".." and the thread
    Ok(rustix::fs::stat("/proc/self/task")?.st_nlink == WITH_ONE_THREAD)
}

fn run_unconfined(
    cwd: &Path,
    payload: &Payload,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    rustix::process::chdir(cwd)
        .map_err(|error| LaunchError::at("enter the working directory", cwd, error))?;
    if let Some(report) = report.take() {
        write_line(report, &EnforcementReport::disabled().to_line())
            .map_err(|error| LaunchError::step("write the enforcement report", error))?;
    }
    sys::close_from(3).map_err(|error| LaunchError::step("close inherited descriptors", error))?;
    Ok(init::not_started(payload, &payload.replace_process()))
}
