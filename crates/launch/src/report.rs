//! The enforcement report: one JSON line that says what was enforced, or why nothing ran.

use serde::Serialize;

use crate::error::{LaunchError, Refusal};

/// Version of the report's shape. Members may be added within a version; none changes its meaning.
pub const REPORT_VERSION: u32 = 1;

/// How a sandbox was built: what the kernel and the caller's rights allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rung {
    /// User, mount, PID, IPC (and network) namespaces, Landlock and seccomp.
    Full,
    /// The same without a user namespace, by a caller with `CAP_SYS_ADMIN`; every capability is dropped afterwards.
    FullPrivileged,
    /// The profile is `disabled`: nothing is enforced.
    None,
}

/// Whether one layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerState {
    /// Completely.
    Enforced,
    /// As far as this kernel knows the layer.
    Partly,
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
    /// No network: an own network namespace and no addressable socket.
    pub network: LayerState,
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
    /// State of each layer.
    pub layers: Layers,
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
        })
    }
}

/// Strings, numbers and lists always serialise; an empty object would say so if that ever changed.
fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned());
    text.push('\n');
    text
}

impl EnforcementReport {
    /// The report of a launch whose profile is `disabled`.
    pub(crate) fn disabled() -> Self {
        let none = LayerState::NotRequested;
        Self {
            version: REPORT_VERSION,
            status: "disabled",
            rung: Rung::None,
            landlock_abi: 0,
            layers: Layers {
                namespaces: none,
                mounts: none,
                landlock: none,
                seccomp: none,
                network: none,
            },
            rules: Vec::new(),
            placeholders: Vec::new(),
            unknown_members: Vec::new(),
            notes: vec!["the profile is disabled: nothing is enforced".to_owned()],
            foreign_processes_visible: true,
            limits: "nothing limited",
        }
    }
}
