//! Runs a command under a sandbox policy: namespaces, mounts, Landlock and seccomp, in one process image.
//!
//! ```text
//! LaunchRequest ─ resolve (real paths, protections) ─ plan (pure) ─ fork into namespaces
//!                                                                     │ mounts, self-check, Landlock, seccomp
//!   exit code  ◀─ supervise ◀──────────────────────── init (PID 1) ◀──┘ report, close descriptors
//! ```
//!
//! It fails closed: what cannot be enforced is refused, by name, before the command starts. It knows nothing of MCP, reads
//! no configuration, and runs no helper program but, where nothing else
//! may make namespaces, `/usr/bin/bwrap`. Linux on x86_64 and aarch64; elsewhere every launch is refused.
//!
//! Apart from that it can be asked which calls a command makes ([`Listener`]), to find out what it needs.
//!
//! The only crate of the project with unsafe code, all of it in `sys`: system calls that no safe crate offers.

#[cfg(target_os = "linux")]
mod describe;
#[cfg(target_os = "linux")]
mod egress;
#[cfg(target_os = "linux")]
mod enter;
mod error;
#[cfg(target_os = "linux")]
mod handshake;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod ladder;
#[cfg(target_os = "linux")]
mod landlock_layer;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(target_os = "linux")]
mod placeholder;
mod plan;
#[cfg(target_os = "linux")]
mod prepare;
mod protections;
mod report;
#[cfg(target_os = "linux")]
mod resolve;
mod rung;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod terminal;
mod tree;

#[cfg(target_os = "linux")]
pub use egress::Egress;
pub use error::{ErrorKind, LaunchError};
#[cfg(target_os = "linux")]
pub use helper::{fork_again, fork_helper};
#[cfg(target_os = "linux")]
pub use ladder::bwrap::stage::inner_stage;
#[cfg(target_os = "linux")]
pub use launcher::{LaunchRequest, explain, inherited_descriptor, launch, take_inherited};
#[cfg(target_os = "linux")]
pub use observe::{Listener, ObservedCall, ObservedUse};
pub use protections::{PROJECT_CONFIGURATIONS, PROTECTED_NAMES, Protections};
pub use report::{
    EnforcementReport, LayerState, Layers, REPORT_VERSION, ReportedNetwork, ReportedRule,
};
pub use rung::{Rung, RungAttempt};
#[cfg(all(target_os = "linux", any(target_env = "musl", test)))]
pub use sys::Allocator;
#[cfg(target_os = "linux")]
pub use sys::{outlive_job, output_was_closed, resolve_without_modules};

/// Where a command whose network is limited finds the proxy: this port of its own 127.0.0.1.
pub const PROXY_PORT: u16 = 3128;
