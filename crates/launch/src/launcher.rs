//! From a request to an exit code: resolve, plan, fork, confine, run, wait.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plenipo_policy::{Access, Mode, Network, SandboxPolicy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::net::SocketType;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use rustix::thread::CapabilitySet;

use crate::enter::{Confinement, Ids, enter};
use crate::error::{ErrorKind, LaunchError, Refusal};
use crate::init::{self, Payload};
use crate::placeholder::Placeholders;
use crate::plan::plan;
use crate::protections::Protections;
use crate::report::{EnforcementReport, LayerState, Layers, REPORT_VERSION, ReportedRule, Rung};
use crate::resolve::{Resolved, resolve};
use crate::sys::{self, Fork, Namespaces, Received, SignalMask};
use crate::tree::{Identity, Kind};
use crate::{filter, landlock_layer};

/// A refusal of the first process is short; more than this is not one.
const MAX_REFUSAL_BYTES: u64 = 64 * 1024;

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
    /// Temporary directories among the policy's writable roots: no placeholder is left in them.
    pub temporary: Vec<PathBuf>,
    /// Unknown members of the sandbox state, for the report.
    pub unknown_members: Vec<String>,
    /// Where the report goes as one JSON line; closed before the command starts.
    pub report: Option<OwnedFd>,
}

impl LaunchRequest {
    /// A request that protects nothing beyond the policy and reports to nobody.
    pub fn new(policy: SandboxPolicy, command: Vec<OsString>) -> Self {
        Self {
            policy,
            command,
            protections: Protections::default(),
            temporary: Vec::new(),
            unknown_members: Vec::new(),
            report: None,
        }
    }
}

/// What has been worked out before anything is forked.
struct Prepared {
    resolved: Resolved,
    placeholders: Placeholders,
    payload: Payload,
    rung: Rung,
    landlock_abi: i32,
    /// Asked for before the fork: a user namespace without maps has no ids.
    ids: Option<Ids>,
    /// The caller's limit of descriptors, if it had to be raised.
    descriptor_limit: Option<Rlimit>,
}

/// Runs the command and returns its exit code: its own, 128 + n for signal n, 127 not found, 126 not executable.
///
/// Must be called by a process with one thread; it forks. Signals TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are
/// blocked in the caller from here on and passed to the command. Standard streams pass through; every other descriptor
/// is closed for the command.
///
/// # Errors
/// [`LaunchError`]: the sandbox was refused and the command was not started.
pub fn launch(mut request: LaunchRequest) -> Result<u8, LaunchError> {
    let payload = payload(&request)?;
    if request.policy.mode == Mode::Disabled {
        return run_unconfined(&request.policy.cwd, &payload, request.report.take());
    }
    check_standard_streams()?;
    check_one_thread()?;
    let prepared = prepare(&request, payload)?;
    let report = request.report.take();
    fork_and_wait(&request, prepared, report)
}

/// Works out the report of a launch without running anything.
///
/// # Errors
/// The same refusals as [`launch`], as far as they show before a process is made.
pub fn explain(request: &LaunchRequest) -> Result<EnforcementReport, LaunchError> {
    let payload = payload(request)?;
    let prepared = prepare(request, payload)?;
    Ok(describe(request, &prepared))
}

/// Takes over the descriptor that this process inherited under `number`: a report's, a state's.
///
/// # Errors
/// The number is not open.
pub fn inherited_descriptor(number: i32) -> Result<OwnedFd, LaunchError> {
    sys::copy_inherited(number).map_err(|error| {
        let message = format!("use the inherited descriptor {number}");
        LaunchError::with_source(ErrorKind::Invalid, message, error)
    })
}

fn payload(request: &LaunchRequest) -> Result<Payload, LaunchError> {
    let Some((program, arguments)) = request.command.split_first() else {
        return Err(LaunchError::new(ErrorKind::Invalid, "no command to run was given"));
    };
    Ok(Payload {
        program: program.clone(),
        arguments: arguments.to_vec(),
        network: request.policy.network == Network::Enabled,
    })
}

/// A directory as a standard stream is a way back to the host's mounts, a datagram socket one to any socket of the
/// host's: each message can be aimed anew.
fn check_standard_streams() -> Result<(), LaunchError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams =
        [("stdin", stdin.as_fd()), ("stdout", stdout.as_fd()), ("stderr", stderr.as_fd())];
    for (name, stream) in streams {
        let Ok(stat) = rustix::fs::fstat(stream) else { continue }; // closed by the caller
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => "a directory",
            FileType::Socket if !is_stream(stream)? => "a datagram socket",
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

/// `fork` in a process with several threads leaves the others' locks held for ever.
fn check_one_thread() -> Result<(), LaunchError> {
    const WITH_ONE_THREAD: u64 = 3; // ".", ".." and the thread
    let threads = rustix::fs::stat("/proc/self/task")
        .map_err(|error| LaunchError::step("look at /proc/self/task", error))?;
    if threads.st_nlink == WITH_ONE_THREAD {
        return Ok(());
    }
    Err(LaunchError::new(ErrorKind::Invalid, "the launching process has more than one thread"))
}

fn run_unconfined(
    cwd: &Path,
    payload: &Payload,
    report: Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    rustix::process::chdir(cwd)
        .map_err(|error| LaunchError::at("enter the working directory", cwd, error))?;
    if let Some(report) = report {
        write_report(report, &EnforcementReport::disabled().to_line())?;
    }
    sys::close_from(3).map_err(|error| LaunchError::step("close inherited descriptors", error))?;
    Ok(init::not_started(payload, &payload.replace_process()))
}

fn prepare(request: &LaunchRequest, payload: Payload) -> Result<Prepared, LaunchError> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(LaunchError::new(
            ErrorKind::Unsupported,
            "confine system calls: there is no filter for this processor architecture",
        ));
    }
    let landlock_abi = sys::landlock_abi();
    if landlock_abi == 0 {
        return Err(LaunchError::new(
            ErrorKind::Unsupported,
            "apply Landlock: this kernel has none",
        )
        .with_hint("Linux 5.13 or newer with `landlock` in its lsm= list is needed"));
    }
    let mut resolved = resolve(&request.policy, &request.protections, &request.temporary)?;
    let descriptor_limit = raise_descriptor_limit(&resolved);
    let placeholders = reserve(&mut resolved)?;
    let rung = rung();
    let ids = (rung == Rung::Full)
        .then(|| Ids { user: rustix::process::getuid(), group: rustix::process::getgid() });
    Ok(Prepared { resolved, placeholders, payload, rung, landlock_abi, ids, descriptor_limit })
}

/// With `CAP_SYS_ADMIN` no user namespace is needed; without, one gives it.
fn rung() -> Rung {
    let capable = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    if capable { Rung::FullPrivileged } else { Rung::Full }
}

/// Makes room for one descriptor a rule, and one more a placeholder. Returns what to restore.
fn raise_descriptor_limit(resolved: &Resolved) -> Option<Rlimit> {
    const SPARE: u64 = 64;
    let wanted = resolved.tree.iter().count() + 2 * resolved.reservations.len();
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(SPARE);
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised).ok().map(|()| limit)
}

fn reserve(resolved: &mut Resolved) -> Result<Placeholders, LaunchError> {
    let mut placeholders = Placeholders::default();
    for place in std::mem::take(&mut resolved.reservations) {
        if !placeholders.reserve(&place)? {
            resolved.notes.push(format!("{} cannot be made by this user", place.display()));
            resolved.tree.remove(&place);
            continue;
        }
        let metadata = std::fs::symlink_metadata(&place)
            .map_err(|error| LaunchError::at("look at", &place, error))?;
        if metadata.is_symlink() {
            let message = format!("{} became a symbolic link meanwhile", place.display());
            return Err(LaunchError::unenforceable(message));
        }
        if let Some(grant) = resolved.tree.at_mut(&place) {
            use std::os::unix::fs::MetadataExt;
            grant.kind = if metadata.is_dir() { Kind::Directory } else { Kind::File };
            grant.identity = Some(Identity { device: metadata.dev(), inode: metadata.ino() });
        }
    }
    Ok(placeholders)
}

fn fork_and_wait(
    request: &LaunchRequest,
    prepared: Prepared,
    report: Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    let (refusals, refuse) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| LaunchError::step("make a pipe", e))?;
    sys::restore_child_signal();
    let mask = sys::block_signals().map_err(|error| LaunchError::step("block signals", error))?;
    let namespaces = Namespaces {
        user: prepared.rung == Rung::Full,
        network: request.policy.network != Network::Enabled,
    };
    match sys::fork_into(namespaces).map_err(|error| cannot_fork(error, namespaces))? {
        Fork::Child => {
            drop(refusals);
            sys::exit_now(i32::from(first_process(request, prepared, (report, refuse), &mask)))
        }
        Fork::Parent(child) => {
            drop(refuse);
            drop(report);
            let code = supervise(child)?;
            match read_refusal(refusals) {
                Some(refusal) => Err(LaunchError::from_refusal(refusal)),
                None => Ok(code),
            }
        }
    }
}

fn cannot_fork(error: std::io::Error, namespaces: Namespaces) -> LaunchError {
    let nested = error.raw_os_error() == Some(libc::ENOSYS);
    let error =
        LaunchError::with_source(ErrorKind::Unsupported, "make namespaces".to_owned(), error);
    if nested {
        return error
            .with_hint("this process is in a sandbox already, which allows no other inside");
    }
    if namespaces.user {
        return error.with_hint(
            "user namespaces are not available to this user (sysctl user.max_user_namespaces, AppArmor, a container's \
             own filter); `plenipo doctor` says more",
        );
    }
    error
}

/// The forked side: its return value becomes the exit code of the sandbox's first process.
fn first_process(
    request: &LaunchRequest,
    prepared: Prepared,
    (report, refuse): (Option<OwnedFd>, OwnedFd),
    mask: &SignalMask,
) -> u8 {
    match confine(request, &prepared, report, &refuse) {
        Ok(()) => {}
        Err(error) => {
            let text = serde_json::to_string(&error.to_refusal()).unwrap_or_default();
            // If the launcher is gone there is nobody to tell, and nothing will run either.
            drop(std::fs::File::from(refuse).write_all(text.as_bytes()));
            return u8::MAX;
        }
    }
    drop(refuse);
    let Prepared { payload, placeholders, resolved, .. } = prepared;
    // The launcher removes the placeholders; here only this process's copies of their descriptors are closed.
    std::mem::forget(placeholders);
    drop(resolved);
    if sys::close_from(3).is_err() {
        return u8::MAX;
    }
    init::run(&payload, mask)
}

fn confine(
    request: &LaunchRequest,
    prepared: &Prepared,
    report: Option<OwnedFd>,
    refuse: &OwnedFd,
) -> Result<(), LaunchError> {
    die_with_launcher(refuse)?;
    let network = request.policy.network == Network::Enabled;
    let Resolved { tree, links, cwd, .. } = &prepared.resolved;
    let steps = plan(tree, links, cwd);
    let filter = filter::build(network);
    let confinement = Confinement {
        ids: prepared.ids,
        network,
        landlock_abi: prepared.landlock_abi,
        filter: &filter,
        descriptor_limit: prepared.descriptor_limit,
    };
    enter(&steps, &confinement)?;
    match report {
        Some(report) => write_report(report, &describe(request, prepared).to_line()),
        None => Ok(()),
    }
}

/// The kernel kills this process when the launcher ends; if it ended before that was set, the pipe shows it.
fn die_with_launcher(refuse: &OwnedFd) -> Result<(), LaunchError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| LaunchError::step("tie the sandbox to its launcher", error))?;
    let mut ends = [PollFd::new(refuse, PollFlags::empty())];
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

fn write_report(report: OwnedFd, line: &str) -> Result<(), LaunchError> {
    std::fs::File::from(report)
        .write_all(line.as_bytes())
        .map_err(|error| LaunchError::step("write the enforcement report", error))
}

fn read_refusal(refusals: OwnedFd) -> Option<Refusal> {
    let mut text = String::new();
    let read = std::fs::File::from(refusals).take(MAX_REFUSAL_BYTES).read_to_string(&mut text);
    match read {
        Ok(0) => None,
        Ok(_) => serde_json::from_str(&text).ok().or_else(|| Some(unreadable_refusal())),
        Err(_) => Some(unreadable_refusal()),
    }
}

fn unreadable_refusal() -> Refusal {
    LaunchError::new(ErrorKind::Setup, "build the sandbox: its first process ended early")
        .to_refusal()
}

/// Waits for the sandbox, passing signals on.
fn supervise(child: Pid) -> Result<u8, LaunchError> {
    loop {
        match sys::wait_for_signal()
            .map_err(|error| LaunchError::step("wait for a signal", error))?
        {
            Received::Child => {
                let waited = rustix::process::waitpid(Some(child), WaitOptions::NOHANG)
                    .map_err(|error| LaunchError::step("wait for the sandbox", error))?;
                if let Some((_, status)) = waited {
                    return Ok(init::exit_code(status));
                }
            }
            Received::Forward { signal, delivery } => {
                // Too late is fine: SIGCHLD follows.
                drop(sys::deliver(child, signal, delivery));
            }
        }
    }
}

fn describe(request: &LaunchRequest, prepared: &Prepared) -> EnforcementReport {
    let network_off = request.policy.network != Network::Enabled;
    let rules = prepared.resolved.tree.changes().map(|(path, grant)| ReportedRule {
        path: path.to_string_lossy().into_owned(),
        access: match grant.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Deny => "deny",
        },
        origin: grant.origin.clone(),
    });
    EnforcementReport {
        version: REPORT_VERSION,
        status: "enforced",
        rung: prepared.rung,
        landlock_abi: prepared.landlock_abi,
        layers: Layers {
            namespaces: LayerState::Enforced,
            mounts: LayerState::Enforced,
            landlock: landlock_layer::state(prepared.landlock_abi),
            seccomp: LayerState::Enforced,
            network: if network_off { LayerState::Enforced } else { LayerState::NotRequested },
        },
        rules: rules.collect(),
        placeholders: prepared
            .placeholders
            .paths()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        unknown_members: request.unknown_members.clone(),
        notes: prepared.resolved.notes.clone(),
        foreign_processes_visible: false,
        limits: "core files off; nothing else limited",
    }
}
