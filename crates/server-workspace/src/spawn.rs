//! Starting processes: the launcher with a command, and the launcher's help.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use plenipo_authority::SandboxedCommand;
use rustix::io::{FdFlags, fcntl_setfd};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::group::ProcessGroup;

/// Held while a process is started, so that no other one inherits a report descriptor that is open
/// to inheritance for that moment. On the single-threaded runtime this is meant for, starting does
/// not interleave anyway.
static STARTING: Mutex<()> = Mutex::new(());

/// A running command and the ends of its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    /// Dropped before `child`, so that the group still has its leader when it is killed.
    pub(crate) group: ProcessGroup,
    pub(crate) child: Child,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    /// Where the launcher writes its enforcement report.
    pub(crate) report: Option<ChildStdout>,
}

/// Starts `command`, in `directory` if one is given, with a report pipe if `reporting`.
pub(crate) fn start(
    command: SandboxedCommand,
    directory: Option<&Path>,
    reporting: bool,
) -> io::Result<Started> {
    start_with(command, directory, reporting, Stdio::null())
}

fn start_with(
    command: SandboxedCommand,
    directory: Option<&Path>,
    reporting: bool,
    stdin: Stdio,
) -> io::Result<Started> {
    if !reporting {
        return start_process(&command, directory, None, stdin);
    }
    let (read, write) = io::pipe()?;
    let number = u32::try_from(write.as_raw_fd()).map_err(io::Error::other)?;
    let mut started =
        start_process(&command.with_report_fd(number), directory, Some(write.into()), stdin)?;
    // The type is a pipe's reading end whatever writes into it.
    started.report = Some(ChildStdout::from_std(OwnedFd::from(read).into())?);
    Ok(started)
}

/// The same with a standard input, for a shell that stays.
pub(crate) fn start_session(
    command: SandboxedCommand,
    directory: Option<&Path>,
    reporting: bool,
) -> io::Result<Started> {
    start_with(command, directory, reporting, Stdio::piped())
}

/// Starts the program without a shell, in its own group, with nothing but the given environment and
/// no standard input.
pub(crate) fn start_program(
    program: &OsStr,
    args: &[&OsStr],
    environment: &BTreeMap<OsString, OsString>,
) -> io::Result<Started> {
    spawn(prepare(program, args, environment), None)
}

fn start_process(
    command: &SandboxedCommand,
    directory: Option<&Path>,
    inherited: Option<OwnedFd>,
    stdin: Stdio,
) -> io::Result<Started> {
    let mut process = prepare(command.program(), &command.args(), command.environment());
    process.stdin(stdin);
    if let Some(directory) = directory {
        process.current_dir(directory);
    }
    spawn(process, inherited)
}

#[expect(clippy::disallowed_methods, reason = "this module starts the processes of this crate")]
fn prepare(
    program: &OsStr,
    args: &[&OsStr],
    environment: &BTreeMap<OsString, OsString>,
) -> Command {
    let mut process = Command::new(program);
    process
        .args(args)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    process
}

/// Everything from the moment `inherited` can be inherited to the moment it is closed here happens
/// in this function, under one lock and without an await.
fn spawn(mut process: Command, inherited: Option<OwnedFd>) -> io::Result<Started> {
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(descriptor) = &inherited {
        fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    let spawned = process.spawn();
    drop(inherited);
    drop(starting);
    let mut child = spawned?;
    Ok(Started {
        group: ProcessGroup::of(&child),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        report: None,
        child,
    })
}
