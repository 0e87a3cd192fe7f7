//! `plenipo doctor`: what this machine can enforce, found out by doing it once; with a server, what that needs.

mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use plenipo_config::ConfigError;
use plenipo_connect::{LauncherProvider, LauncherSource, ServerName};
use plenipo_policy::{Hosts, Network, PermissionProfile, State};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{DoctorArguments, Global};
use crate::failure::{Code, Failure, with_sources};
use crate::reach::Reachable;
use crate::serve::runtime;
use crate::settings::Settings;
use crate::{authority, credentials, env, proxies, sign_in, terminal};

pub(crate) use server::trace;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Good,
    Note,
    Bad,
}

/// One line of the examination.
#[derive(Debug, Serialize)]
struct Finding {
    verdict: Verdict,
    subject: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, subject: &'static str, text: impl Into<String>) -> Self {
        Self { verdict, subject, text: text.into(), fix: None }
    }

    fn with_fix(mut self, fix: Option<impl Into<String>>) -> Self {
        self.fix = fix.map(Into::into);
        self
    }
}

/// Examines this machine, or one server.
pub(crate) fn run(global: &Global, arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    match &arguments.server {
        Some(name) => server::run(global, name, arguments),
        None => machine(global),
    }
}

/// Reports what can be enforced; exits with 1 if commands cannot be sandboxed here.
fn machine(global: &Global) -> Result<ExitCode, Failure> {
    let mut findings = vec![kernel(), user()];
    findings.extend(namespaces());
    findings.extend(trial());
    match Settings::load(global.config.as_deref()) {
        Ok(settings) => {
            findings.push(configuration(&settings));
            findings.extend(notes(&settings));
            findings.push(launcher(&settings)?);
            findings.extend(proxies(&settings));
            findings.extend(company(&settings));
        }
        Err(failure) => {
            findings.push(Finding::new(Verdict::Bad, "configuration", failure.message()))
        }
    }
    show(global, &findings)?;
    let bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    Ok(if bad { Code::ToolError.into() } else { ExitCode::SUCCESS })
}

fn kernel() -> Finding {
    let release = read_line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Finding::new(Verdict::Good, "kernel", format!("Linux {release} on {}", std::env::consts::ARCH))
}

fn user() -> Finding {
    let id = rustix::process::geteuid();
    let text = if id.is_root() { "root".to_owned() } else { format!("uid {}", id.as_raw()) };
    Finding::new(Verdict::Good, "user", text)
}

/// Settings that commonly keep ordinary users from making user namespaces.
fn namespaces() -> Vec<Finding> {
    const SWITCHES: [(&str, &str, &str); 3] = [
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "an AppArmor profile for this program that allows userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let off = SWITCHES.iter().filter(|(file, bad, _)| read_line(file).as_deref() == Some(bad));
    off.map(|(file, value, fix)| {
        Finding::new(Verdict::Note, "user namespaces", format!("{file} is {value}"))
            .with_fix(Some(*fix))
    })
    .collect()
}

/// Builds a read-only sandbox with this very program and reads what it enforces.
fn trial() -> Vec<Finding> {
    let report = match run_trial(PermissionProfile::read_only()) {
        Ok(report) => report,
        Err(why) => {
            let text = format!("could not be tried: {why}");
            return vec![Finding::new(Verdict::Bad, "sandbox", text)];
        }
    };
    let text = |pointer: &str| report.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let works = text("/status").as_deref() == Some("enforced");
    let mut findings = vec![if works {
        let rung = text("/rung").unwrap_or_default();
        Finding::new(Verdict::Good, "sandbox", format!("works, rung {rung}"))
    } else {
        let message = text("/reason/message").unwrap_or_else(|| "no reason given".to_owned());
        Finding::new(Verdict::Bad, "sandbox", format!("refused: failed to {message}"))
            .with_fix(text("/reason/hint"))
    }];
    let verdict = if works { Verdict::Note } else { Verdict::Bad };
    findings.extend(rungs(&report, verdict));
    if works {
        findings.extend(layers(&report));
        findings.push(limited_network());
    }
    findings
}

/// Whether profiles can limit the network to some hosts here: not every rung can.
fn limited_network() -> Finding {
    const SUBJECT: &str = "limited network";
    let profile = PermissionProfile::External { network: Network::Limited(Hosts::default()) };
    let report = match run_trial(profile) {
        Ok(report) => report,
        Err(why) => {
            return Finding::new(Verdict::Note, SUBJECT, format!("could not be tried: {why}"));
        }
    };
    if report.get("status").and_then(Value::as_str) == Some("enforced") {
        return Finding::new(
            Verdict::Good,
            SUBJECT,
            "works: profiles can name the hosts that are reached",
        );
    }
    let text = |pointer: &str| report.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let why = text("/reason/message").unwrap_or_else(|| "no reason given".to_owned());
    Finding::new(Verdict::Note, SUBJECT, format!("refused: failed to {why}"))
        .with_fix(text("/reason/hint"))
}

/// Each rung that was tried and is not to be had.
fn rungs(report: &Value, verdict: Verdict) -> Vec<Finding> {
    let tried = report.get("unavailable_rungs").and_then(Value::as_array);
    let word =
        |rung: &Value, member: &str| rung.get(member).and_then(Value::as_str).map(str::to_owned);
    tried
        .into_iter()
        .flatten()
        .map(|rung| {
            let name = word(rung, "rung").unwrap_or_default();
            let why = word(rung, "why").unwrap_or_default();
            Finding::new(verdict, "rung", format!("not {name}: {why}")).with_fix(word(rung, "fix"))
        })
        .collect()
}

/// Landlock always, other layers where they are weaker.
fn layers(report: &Value) -> Vec<Finding> {
    let abi = report.get("landlock_abi").and_then(Value::as_i64).unwrap_or_default();
    let landlock = report.pointer("/layers/landlock").and_then(Value::as_str).unwrap_or_default();
    let verdict = if landlock == "enforced" { Verdict::Good } else { Verdict::Note };
    let newer = (verdict == Verdict::Note).then_some("Linux 6.12 or newer has all of it");
    let landlock = Finding::new(verdict, "landlock", format!("ABI {abi}, {landlock}"));
    let reasons = report.get("layer_reasons").and_then(Value::as_object).into_iter().flatten();
    let weaker = reasons.filter(|(layer, _)| *layer != "landlock").map(|(layer, why)| {
        let text = format!("{layer}: {}", why.as_str().unwrap_or_default());
        Finding::new(Verdict::Note, "weaker", text)
    });
    std::iter::once(landlock.with_fix(newer)).chain(weaker).collect()
}

fn run_trial(profile: PermissionProfile) -> Result<Value, String> {
    let executable = env::executable().map_err(|error| error.to_string())?;
    let state = State::new(profile, "/").to_json();
    #[expect(
        clippy::disallowed_methods,
        reason = "the launcher is tried as a consumer would start it"
    )]
    let output = std::process::Command::new(&executable)
        .args(["sandbox", "--explain", "--json", "--sandbox-state-json", &state])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    let report: Value = serde_json::from_str(line)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
    let enforced = report.get("status").and_then(Value::as_str) == Some("enforced");
    if enforced && !output.status.success() {
        return Err(format!("the command in it ended with {}", output.status));
    }
    Ok(report)
}

fn configuration(settings: &Settings) -> Finding {
    let files: Vec<String> = settings.files().map(|file| file.display().to_string()).collect();
    if files.is_empty() {
        let usual = settings.user_file.as_deref().map(Path::display);
        let place = usual.map_or_else(|| "nowhere".to_owned(), |path| path.to_string());
        return Finding::new(
            Verdict::Good,
            "configuration",
            format!("none; yours would be {place}"),
        );
    }
    Finding::new(Verdict::Good, "configuration", files.join(", "))
}

/// What servers' tables say that is better said otherwise.
fn notes(settings: &Settings) -> Vec<Finding> {
    let servers = settings.layers().flat_map(|(_, config)| config.servers.values().flatten());
    let warnings = servers.flat_map(|server| &server.warnings);
    let note = |warning: &ConfigError| {
        let text =
            format!("{}:{}: `{}` {}", warning.file, warning.line, warning.key, warning.reason);
        Finding::new(Verdict::Note, "configuration", text).with_fix(warning.hint())
    };
    warnings.map(note).collect()
}

fn launcher(settings: &Settings) -> Result<Finding, Failure> {
    let consequence = "servers that need a launcher will refuse to run commands";
    let source = match authority::launcher(settings) {
        Ok(source) => source,
        Err(reason) => {
            let text = format!("this program cannot be the launcher: {reason}; {consequence}");
            // Without its own path it is not the place that is wrong.
            let fix = env::executable().is_ok().then_some(
                "install it where only root or you can write, in a path without group or world write",
            );
            return Ok(Finding::new(Verdict::Bad, "launcher", text).with_fix(fix));
        }
    };
    let kind =
        if matches!(source, LauncherSource::Path(_)) { "configured" } else { "this program" };
    let provided = runtime()?.block_on(LauncherProvider::new(source).provide());
    Ok(match provided {
        Ok(Some(launcher)) => {
            let text = format!("{} ({kind})", launcher.launcher().as_str());
            Finding::new(Verdict::Good, "launcher", text)
        }
        Ok(None) => Finding::new(Verdict::Bad, "launcher", format!("none; {consequence}")),
        Err(error) => {
            let text = format!("failed to {}; {consequence}", with_sources(&error));
            Finding::new(Verdict::Bad, "launcher", text).with_fix(Some(
                "correct `launcher` in the configuration, or remove it to use this program",
            ))
        }
    })
}

/// Proxies that are set here and that servers do not get, once for all servers that miss the same.
fn proxies(settings: &Settings) -> Vec<Finding> {
    let mut servers: BTreeMap<Vec<&str>, Vec<ServerName>> = BTreeMap::new();
    for server in Reachable::all(settings).into_iter().filter_map(|(_, server)| server.ok()) {
        servers.entry(proxies::dropped(&server)).or_default().push(server.name);
    }
    let missed = servers.into_iter().filter(|(dropped, _)| !dropped.is_empty());
    missed
        .map(|(dropped, servers)| {
            let names: Vec<String> = servers.iter().map(|name| format!("`{name}`")).collect();
            let text =
                format!("{}, and not passed on to {}", proxies::told(&dropped), names.join(", "));
            let fix =
                format!("{} in the table of a server that needs a proxy", proxies::key(&dropped));
            Finding::new(Verdict::Note, "proxy", text).with_fix(Some(fix))
        })
        .collect()
}

/// Whose identity the company's servers get, where there are such servers.
fn company(settings: &Settings) -> Option<Finding> {
    let explained = sign_in::identity::explain(settings, &credentials::vault(settings))?;
    let servers = explained.servers.join(", ");
    Some(match explained.outcome {
        Ok(kept) => {
            let who = kept.name.unwrap_or(kept.pin.identity.subject);
            let source = kept.pin.identity.source;
            let text = format!("{servers}: {source} sign-in of {}", terminal::harmless(&who));
            Finding::new(Verdict::Good, "enterprise", text)
        }
        Err(error) => {
            let class = error.class();
            let text = terminal::harmless(&with_sources(&error));
            let text = format!("{servers}: {}: {text}. {}", class.as_str(), class.cause());
            Finding::new(Verdict::Note, "enterprise", text).with_fix(Some(error.hint()))
        }
    })
}

fn show(global: &Global, findings: &[Finding]) -> Result<(), Failure> {
    if global.json {
        return terminal::print_json(&findings);
    }
    let paint = terminal::stdout();
    let mut lines = Vec::new();
    for finding in findings {
        let mark = match finding.verdict {
            Verdict::Good => paint.green("ok  "),
            Verdict::Note => paint.yellow("note"),
            Verdict::Bad => paint.red("bad "),
        };
        lines.push(format!("{mark} {:<16} {}", finding.subject, terminal::line(&finding.text)));
        if let Some(fix) = &finding.fix {
            lines.push(format!("     {:<16} {} {}", "", paint.bold("fix:"), terminal::line(fix)));
        }
    }
    terminal::print_lines(&lines)
}

fn read_line(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
