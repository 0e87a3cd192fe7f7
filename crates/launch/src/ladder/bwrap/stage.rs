//! The stage that runs inside bwrap: checks its work, locks itself in, and becomes the sandbox's init.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use rustix::process::{Rlimit, Signal};
use serde::{Deserialize, Serialize};

use crate::enter::{Confinement, Proc, reopen_streams, settle};
use crate::error::{ErrorKind, LaunchError};
use crate::handshake::ToLauncher;
use crate::init::{self, Payload};
use crate::ladder::may_close;
use crate::launcher::{inherited_descriptor, take_inherited};
use crate::plan::LaunchPlan;
use crate::sys::{self, SignalMask};

/// Longest handover that is read.
const MAX_HANDOVER: u64 = 64 * 1024 * 1024;

/// What the stage has to know.
#[derive(Serialize, Deserialize)]
pub(super) struct Handover {
    /// Number of the pipe to the launcher.
    pub(super) launcher: i32,
    /// Number of the pipe to wait for before the command starts.
    pub(super) gate: Option<i32>,
    /// Number of the command's standard error.
    pub(super) stderr: i32,
    pub(super) only_try: bool,
    pub(super) network: bool,
    pub(super) landlock_abi: i32,
    /// The caller's limit of descriptors (current, maximum), if it was raised.
    pub(super) descriptor_limit: Option<[Option<u64>; 2]>,
    /// Signals that the launcher's caller had blocked.
    pub(super) mask: Vec<i32>,
    pub(super) payload: Payload,
    /// Of the command.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) plan: LaunchPlan,
}

/// Runs the inner stage of the rung `bwrap`: what a program offers under the words of
/// [`LaunchRequest::inner_stage`](crate::LaunchRequest), with the number of a descriptor behind them. Returns the exit code.
///
/// Started by anybody else it does what its descriptor says with the rights it has.
pub fn inner_stage(descriptor: i32) -> u8 {
    let Ok(handover) = read(descriptor) else { return u8::MAX };
    let Ok(launcher) = take_inherited(handover.launcher) else { return u8::MAX };
    let Ok(gate) = handover.gate.map(take_inherited).transpose() else { return u8::MAX };
    let launcher = ToLauncher::over(launcher, gate);
    if let Err(error) = confine(&handover, &launcher).and_then(|()| may_close()) {
        launcher.refuse(&error);
        return u8::MAX;
    }
    if !launcher.started() {
        return u8::MAX;
    }
    if handover.only_try {
        return 0;
    }
    if sys::close_from(3).is_err() {
        return u8::MAX;
    }
    let Handover { mut payload, environment, mask, .. } = handover;
    payload.environment = Some(environment);
    init::run(&payload, &SignalMask::of(&mask), None)
}

fn read(descriptor: i32) -> Result<Handover, LaunchError> {
    let file = File::from(inherited_descriptor(descriptor)?);
    let mut text = Vec::new();
    file.take(MAX_HANDOVER)
        .read_to_end(&mut text)
        .map_err(|error| LaunchError::step("read what was handed over", error))?;
    serde_json::from_slice(&text)
        .map_err(|_| LaunchError::new(ErrorKind::Invalid, "read what was handed over"))
}

fn confine(handover: &Handover, launcher: &ToLauncher) -> Result<(), LaunchError> {
    let stderr = inherited_descriptor(handover.stderr)?;
    rustix::stdio::dup2_stderr(&stderr)
        .map_err(|error| LaunchError::step("restore standard error", error))?;
    launcher.die_with_launcher(Signal::KILL)?;
    sys::restore_child_signal();
    sys::block_signals().map_err(|error| LaunchError::step("block signals", error))?;
    let filter = plenipo_filter::build(handover.network);
    let confinement = Confinement {
        ids: None,
        proc: Proc::Fresh,
        network: handover.network,
        elsewhere: None, // bwrap has seen to it
        proxy_port: None,
        landlock_abi: handover.landlock_abi,
        filter: &filter,
        descriptor_limit: handover
            .descriptor_limit
            .map(|[current, maximum]| Rlimit { current, maximum }),
        terminal: None,
    };
    reopen_streams(&handover.plan)?;
    settle(&handover.plan, &confinement)
}
