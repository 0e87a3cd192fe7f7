//! The enforcement report: one JSON line that says what was enforced, or why nothing ran.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use plenipo_policy::Network;
use serde::Serialize;

use crate::PROXY_PORT;
use crate::error::{LaunchError, Refusal};
use crate::rung::{Rung, RungAttempt};

/// Version of the report's shape. Members may be added within a version; none changes its meaning.
pub const REPORT_VERSION: u32 = 1;

/// Whether one layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerState {
    /// Completely.
    Enforced,
    /// As far as this kernel knows the layer, or as this rung has it.
    Partly,
    /// This rung does not have it.
    NotEnforced,
    /// Not asked for by the policy.
    NotRequested,
}

/// The layers of a sandbox.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Layers {
    /// Mount, PID, IPC, UTS (and user) namespaces.
    pub namespaces: LayerState,
    /// Read-only, writable and masked places.
    pub mounts: LayerState,
    /// Landlock rules, the second lock on the same doors.
    pub landlock: LayerState,
    /// The system call filter.
    pub seccomp: LayerState,
    /// No network: an own network namespace and no addressable socket but, if it is limited, one to the proxy.
    pub network: LayerState,
}

/// What the command reaches.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ReportedNetwork {
    /// `restricted`, `limited` or `enabled`.
    pub mode: &'static str,
    /// Where the proxy is, inside: `127.0.0.1:3128`. Only if the network is limited, as is the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Host patterns, canonical, each with `allow` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<BTreeMap<String, &'static str>>,
}

impl From<&Network> for ReportedNetwork {
    fn from(network: &Network) -> Self {
        let (proxy, domains) = match network {
            Network::Limited(hosts) => {
                let domains =
                    hosts.iter().map(|(pattern, access)| (pattern.to_string(), access.as_str()));
                (Some(format!("127.0.0.1:{PROXY_PORT}")), Some(domains.collect()))
            }
            Network::Restricted | Network::Enabled => (None, None),
        };
        Self { mode: network.as_str(), proxy, domains }
    }
}

/// One rule as it was enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReportedRule {
    /// Real absolute path; bytes that are not UTF-8 are shown as U+FFFD.
    pub path: String,
    /// `read`, `write` or `deny`.
    pub access: &'static str,
    /// Which entry, protected name or protection asked for it.
    pub origin: String,
}

/// What a launch enforced. Written as one JSON line before the command starts.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct EnforcementReport {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// `enforced`, or `disabled` where the profile asks for nothing.
    pub status: &'static str,
    /// How the sandbox was built.
    pub rung: Rung,
    /// Landlock ABI version of the kernel; 0 where there is none.
    pub landlock_abi: i32,
    /// The weakest rung that this launch would have taken.
    pub minimum_rung: Rung,
    /// Better rungs that were tried, and why each is not to be had.
    pub unavailable_rungs: Vec<RungAttempt>,
    /// State of each layer.
    pub layers: Layers,
    /// For each layer that is enforced partly or not: what is weaker.
    pub layer_reasons: BTreeMap<&'static str, String>,
    /// What the command reaches over the network.
    pub network: ReportedNetwork,
    /// Rules after resolution, parents first.
    pub rules: Vec<ReportedRule>,
    /// Missing protected names that got a placeholder for the time of the launch.
    pub placeholders: Vec<String>,
    /// Unknown members of the state's outer object; allowed, not understood.
    pub unknown_members: Vec<String>,
    /// What a person should know: ignored rules, hard links to protected files.
    pub notes: Vec<String>,
    /// Whether the command can see processes outside the sandbox.
    pub foreign_processes_visible: bool,
    /// Resource limits; this version sets a core size of 0 and nothing else.
    pub limits: &'static str,
}

#[derive(Serialize)]
struct RefusalReport<'a> {
    version: u32,
    status: &'static str,
    reason: &'a Refusal,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unavailable_rungs: &'a [RungAttempt],
}

impl EnforcementReport {
    /// The report as one line of JSON, with its newline.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

impl LaunchError {
    /// The refusal as one line of JSON, with its newline: `{"version":1,"status":"refused","reason":{…}}`.
    pub fn to_line(&self) -> String {
        line(&RefusalReport {
            version: REPORT_VERSION,
            status: "refused",
            reason: &self.to_refusal(),
            unavailable_rungs: self.unavailable_rungs(),
        })
    }
}

/// Strings, numbers and lists always serialise; an empty object would say so if that ever changed.
fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned());
    text.push('\n');
    text
}

/// Writes a report or a refusal, and closes its descriptor.
pub(crate) fn write_line(report: OwnedFd, line: &str) -> io::Result<()> {
    File::from(report).write_all(line.as_bytes())
}

impl EnforcementReport {
    /// The report of a launch whose profile is `disabled`.
    pub(crate) fn disabled() -> Self {
        let none = LayerState::NotRequested;
        Self {
            version: REPORT_VERSION,
            status: "disabled",
            rung: Rung::None,
            minimum_rung: Rung::None,
            unavailable_rungs: Vec::new(),
            landlock_abi: 0,
            layers: Layers {
                namespaces: none,
                mounts: none,
                landlock: none,
                seccomp: none,
                network: none,
            },
            layer_reasons: BTreeMap::new(),
            network: ReportedNetwork::from(&Network::Enabled),
            rules: Vec::new(),
            placeholders: Vec::new(),
            unknown_members: Vec::new(),
            notes: vec!["the profile is disabled: nothing is enforced".to_owned()],
            foreign_processes_visible: true,
            limits: "nothing limited",
        }
    }
}
