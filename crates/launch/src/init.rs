//! The sandbox's init: starts the command, passes signals on, reaps, and ends everything when the command ends.
//!
//! The command is not PID 1 itself, because a signal without a handler does nothing to PID 1: `kill -TERM $$` would be
//! ignored.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use crate::egress::with_proxy;
use crate::sys::{
    Delivery, Received, SignalMask, kill_all_others, spawn, spawn_in_terminal, wait_for_signal,
};
use crate::terminal::News;

/// Set in the command's environment while the network is off, as the reference runtime does.
const NETWORK_DISABLED: (&str, &str) = ("CODEX_SANDBOX_NETWORK_DISABLED", "1");

/// Exit code for a command that exists and cannot be run.
const NOT_EXECUTABLE: u8 = 126;
/// Exit code for a command that does not exist.
const NOT_FOUND: u8 = 127;
/// Nobody is there to read it.
const LAUNCHER_GONE: u8 = 255;
/// A command killed by signal n exits with 128 + n.
const SIGNALLED: i32 = 128;

/// What is run, and how its environment differs from the launcher's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) network: bool,
    /// Whether a proxy is the only way to it.
    pub(crate) proxied: bool,
    /// In place of this process's own environment.
    #[serde(skip)]
    pub(crate) environment: Option<Vec<(OsString, OsString)>>,
}

impl Payload {
    /// The launcher's own environment, and whether the network is off or behind a proxy.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let (name, value) = NETWORK_DISABLED;
        let mut environment =
            self.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
        if self.proxied {
            with_proxy(&mut environment);
        } else if !self.network {
            environment.retain(|(present, _)| present != name);
            environment.push((name.into(), value.into()));
        }
        environment
    }

    /// Becomes the command, without a sandbox. Returns only if that fails.
    pub(crate) fn replace_process(&self) -> io::Error {
        #[expect(
            clippy::disallowed_methods,
            reason = "starting the command is what this crate is for"
        )]
        let mut command = Command::new(&self.program);
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment.iter().cloned());
        }
        command.args(&self.arguments).exec()
    }
}

/// Runs the command to its end and returns the launcher's exit code.
///
/// `mask` is the signal mask that the launcher was started with; `news` go out if the command has a terminal.
pub(crate) fn run(payload: &Payload, mask: &SignalMask, mut news: Option<News>) -> u8 {
    let parent = rustix::process::getppid();
    let start = if news.is_some() { spawn_in_terminal } else { spawn };
    let code = match start(&payload.program, &payload.arguments, payload.environment(), mask) {
        Ok(child) => wait_for(child, parent, news.as_mut()),
        Err(error) => not_started(payload, &error),
    };
    if let Some(news) = news {
        news.ended();
    }
    code
}

fn wait_for(child: Pid, parent: Option<Pid>, mut news: Option<&mut News>) -> u8 {
    loop {
        match wait_for_signal() {
            Ok(Received::Child) => {
                if let Some(code) = reap(child, news.as_deref_mut()) {
                    return code;
                }
                if rustix::process::getppid() != parent {
                    return LAUNCHER_GONE;
                }
            }
            Ok(Received::Forward { signal, delivery }) => pass_on(child, signal, delivery),
            Err(_) => return reap(child, news).unwrap_or(NOT_EXECUTABLE),
        }
    }
}

/// The same without a PID namespace: what the command leaves running is killed here, for the kernel does not.
///
/// `launcher` is this process's parent. Its end shows by a SIGCHLD of its own (`PR_SET_PDEATHSIG`).
pub(crate) fn run_alone(payload: &Payload, mask: &SignalMask, launcher: Pid) -> u8 {
    let environment = payload.environment();
    let code = match spawn(&payload.program, &payload.arguments, environment, mask) {
        Ok(child) => wait_for(child, Some(launcher), None),
        Err(error) => not_started(payload, &error),
    };
    // Landlock's scope ends this at the sandbox's edge; it was tried before the command started.
    kill_all_others();
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    code
}

/// The exit code for a command that could not be started, after saying so.
pub(crate) fn not_started(payload: &Payload, error: &io::Error) -> u8 {
    let missing = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        // One closed directory on PATH gives this for a name that is nowhere.
        io::ErrorKind::PermissionDenied => !is_on_path(&payload.program),
        _ => false,
    };
    let what = if missing { "command not found" } else { "cannot run" };
    let program = payload.program.to_string_lossy();
    // With stderr gone there is nobody to tell; the exit code still says it.
    drop(writeln!(io::stderr(), "plenipo: {what}: {program}: {error}"));
    if missing { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// Whether a program named like this is to be found; a path is its own answer.
fn is_on_path(program: &OsStr) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return true;
    }
    #[expect(clippy::disallowed_methods, reason = "the command is looked up like this, too")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

fn pass_on(command: Pid, signal: i32, delivery: Delivery) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    // The command may have ended meanwhile; SIGCHLD then follows.
    match delivery {
        Delivery::Process => rustix::process::kill_process(command, signal),
        Delivery::Group => rustix::process::kill_process_group(command, signal),
    }
    .unwrap_or(());
}

/// Reaps all that ended; the command's own end gives the exit code.
fn reap(command: Pid, mut news: Option<&mut News>) -> Option<u8> {
    let mut options = WaitOptions::NOHANG;
    options.set(WaitOptions::UNTRACED, news.is_some());
    let mut code = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(options) {
        match &mut news {
            _ if pid != command => {}
            Some(news) if status.stopped() => news.stopped(),
            _ => code = Some(exit_code(status)),
        }
    }
    code
}

/// The exit code that stands for a wait status.
pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => SIGNALLED + signal,
        (None, None) => 0,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}
