//! The report of a launch on a rung.

use std::collections::BTreeMap;

use plenipo_policy::{Access, Network};

use crate::ladder::Attempt;
use crate::landlock_layer;
use crate::report::{
    EnforcementReport, LayerState, Layers, REPORT_VERSION, ReportedNetwork, ReportedRule,
};
use crate::rung::Rung;

const OUTER_PROC: &str = "the surrounding container's /proc is shown, read-only: processes outside are visible, with \
                          their command lines; signals, their memory, files and environment are out of reach";
const NO_NAMESPACES: &str = "none: processes outside are visible, with their command lines; signals, their memory, files and environment are out \
     of reach by Landlock; System V and POSIX message queues, semaphores and shared memory are refused by the filter; \
     after a KILL of both launcher and init the command lives on";
const NO_MOUNTS: &str = "none: Landlock alone decides what is read and written; names, sizes and times of denied files can \
                         be seen; modes, owners, times and attributes of every file are closed by the filter, those of \
                         files in writable directories too; no shared memory, no pseudo-terminals";
const NO_NETWORK_NAMESPACE: &str =
    "no namespace: sockets are refused by the filter, TCP and abstract ones by Landlock too";

/// What `attempt` enforces once its sandbox is complete.
pub(crate) fn describe(attempt: &Attempt<'_>) -> EnforcementReport {
    let (request, prepared) = (attempt.request, attempt.prepared);
    let rules = prepared.resolved.tree.changes().map(|(path, grant)| ReportedRule {
        path: path.to_string_lossy().into_owned(),
        access: match grant.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Deny => "deny",
        },
        origin: grant.origin.clone(),
    });
    let (layers, layer_reasons) = layers(attempt);
    EnforcementReport {
        version: REPORT_VERSION,
        status: "enforced",
        rung: attempt.rung,
        landlock_abi: prepared.landlock_abi,
        minimum_rung: request.minimum_rung,
        unavailable_rungs: attempt.unavailable.to_vec(),
        layers,
        layer_reasons,
        network: ReportedNetwork::from(&request.policy.network),
        rules: rules.collect(),
        placeholders: prepared
            .placeholders
            .paths()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        unknown_members: request.unknown_members.clone(),
        notes: [request.notes.as_slice(), &prepared.resolved.notes].concat(),
        foreign_processes_visible: matches!(attempt.rung, Rung::NoProc | Rung::Landlock),
        limits: "core files off; nothing else limited",
    }
}

fn layers(attempt: &Attempt<'_>) -> (Layers, BTreeMap<&'static str, String>) {
    let abi = attempt.prepared.landlock_abi;
    let network_off = attempt.request.policy.network != Network::Enabled;
    let mut layers = Layers {
        namespaces: LayerState::Enforced,
        mounts: LayerState::Enforced,
        landlock: landlock_layer::state(abi),
        seccomp: LayerState::Enforced,
        network: if network_off { LayerState::Enforced } else { LayerState::NotRequested },
    };
    let mut reasons = BTreeMap::new();
    if layers.landlock != LayerState::Enforced {
        reasons.insert("landlock", format!("this kernel has ABI {abi} of it; Linux 6.12 has all"));
    }
    match attempt.rung {
        Rung::NoProc => {
            layers.namespaces = LayerState::Partly;
            reasons.insert("namespaces", OUTER_PROC.to_owned());
        }
        Rung::Landlock => {
            (layers.namespaces, layers.mounts) = (LayerState::NotEnforced, LayerState::NotEnforced);
            reasons.insert("namespaces", NO_NAMESPACES.to_owned());
            reasons.insert("mounts", NO_MOUNTS.to_owned());
            if network_off {
                layers.network = LayerState::Partly;
                reasons.insert("network", NO_NETWORK_NAMESPACE.to_owned());
            }
        }
        _ => {}
    }
    (layers, reasons)
}
