//! `plenipo sandbox --explain`: what a sandbox enforces, for a person or as the report.

use std::fmt::Write as _;
use std::process::ExitCode;

use plenipo_launch::{EnforcementReport, LaunchError, LayerState, RungAttempt};

use crate::failure::Failure;
use crate::terminal;

/// Prints the report.
pub(super) fn show(report: &EnforcementReport, json: bool) -> ExitCode {
    print(&if json { report.to_line() } else { for_a_person(report) })
}

/// Prints what there is to a refusal besides its sentence.
pub(super) fn show_refusal(error: &LaunchError, json: bool) {
    let mut text = String::new();
    rungs(&mut text, error.unavailable_rungs());
    print(&if json { error.to_line() } else { text });
}

fn print(text: &str) -> ExitCode {
    terminal::print(text).map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

fn for_a_person(report: &EnforcementReport) -> String {
    let mut text = String::new();
    line(&mut text, "status", report.status);
    line(&mut text, "rung", report.rung.name());
    rungs(&mut text, &report.unavailable_rungs);
    let layers = &report.layers;
    let limited =
        report.network.proxy.as_ref().map(|proxy| format!(": hosts by the proxy at {proxy}"));
    for (name, state) in [
        ("namespaces", layers.namespaces),
        ("mounts", layers.mounts),
        ("landlock", layers.landlock),
        ("seccomp", layers.seccomp),
        ("network", layers.network),
    ] {
        let why = report.layer_reasons.get(name).map(|why| format!(": {why}"));
        let why = why.or_else(|| limited.clone().filter(|_| name == "network"));
        line(&mut text, name, &format!("{}{}", word(state), why.unwrap_or_default()));
    }
    for (pattern, access) in report.network.domains.iter().flatten() {
        line(&mut text, &format!("{access} host"), pattern);
    }
    let visible = if report.foreign_processes_visible { "visible" } else { "not visible" };
    line(&mut text, "processes outside", visible);
    line(&mut text, "limits", report.limits);
    for rule in &report.rules {
        line(&mut text, rule.access, &format!("{} ({})", rule.path, rule.origin));
    }
    for (name, values) in [
        ("placeholder", &report.placeholders),
        ("not understood", &report.unknown_members),
        ("note", &report.notes),
    ] {
        values.iter().for_each(|value| line(&mut text, name, value));
    }
    text
}

fn word(state: LayerState) -> &'static str {
    match state {
        LayerState::Enforced => "enforced",
        LayerState::Partly => "partly",
        LayerState::NotRequested => "not requested: off",
        _ => "not enforced",
    }
}

fn rungs(text: &mut String, tried: &[RungAttempt]) {
    for RungAttempt { rung, why, fix, .. } in tried {
        line(text, &format!("not {}", rung.name()), why);
        if let Some(fix) = fix {
            line(text, "", &format!("fix: {fix}"));
        }
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    writeln!(text, "{name:<18} {value}").unwrap_or(());
}
