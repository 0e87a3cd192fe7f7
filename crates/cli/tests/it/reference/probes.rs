//! The same probes under either launcher.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use insta::assert_snapshot;

use super::scene::Scene;
use super::{PROFILES, Reference, configuration, state};
use crate::support::{Bench, as_each_user, python};

type Verdicts = BTreeMap<String, bool>;

/// A probe that this program denies for a reason of its own; the other side may decide otherwise.
struct Denied {
    probe: &'static str,
    /// The only profile that it is about; every one if absent.
    profile: Option<&'static str>,
    reason: &'static str,
}

const fn denied(probe: &'static str, reason: &'static str) -> Denied {
    Denied { probe, profile: None, reason }
}

const fn denied_in(profile: &'static str, probe: &'static str, reason: &'static str) -> Denied {
    Denied { probe, profile: Some(profile), reason }
}

const DENIED_BY_US: [Denied; 11] = [
    denied("core-pattern-open", "the kernel's settings are read-only, for root as well"),
    denied("inherited-descriptor", "descriptors above 2 are closed before the command starts"),
    denied("unix-datagram-message", "AF_UNIX datagram sockets are not made"),
    denied("unix-datagram-pair", "nor are pairs of them"),
    denied("user-namespace", "a command makes no namespace of its own"),
    denied("key", "the kernel's keyrings are out of reach"),
    denied("userfaultfd", "no command needs it"),
    denied_in(
        "docs",
        "protected-parent-rename",
        "the directories above a protected path are pinned",
    ),
    denied_in("minimal", "unix-stream", "an open network opens no socket at a path"),
    denied_in("minimal", "unix-abstract", "nor an abstract one"),
    denied_in("minimal", "unix-datagram", "nor one for datagrams"),
];

/// What needs more than an ordinary user has, or what a kernel may lack, with or without a sandbox.
const MAY_FAIL_ANYWHERE: [&str; 9] = [
    "core-pattern-open",
    "sysrq-open",
    "mount",
    "user-namespace",
    "trace-outside",
    "packet-socket",
    "io-uring",
    "key",
    "userfaultfd",
];

fn launcher(program: &Path, state: &str) -> Vec<OsString> {
    let words = ["sandbox", "--sandbox-state-json", state, "--"].map(OsString::from);
    std::iter::once(program.into()).chain(words).collect()
}

fn probe(bench: &Bench, python: &str, launcher: &[OsString]) -> Verdicts {
    Scene::set(bench).run(launcher, python)
}

#[test]
fn both_launchers_give_the_same_verdicts() {
    let (Some(reference), Some(python)) = (Reference::find(), python()) else { return };
    println!("user | probe | profile | ours | reference | why ours denies");
    as_each_user(|bench| {
        let configuration = configuration(bench, &reference);
        let mut ours = BTreeMap::new();
        let mut unexpected = Vec::new();
        for profile in PROFILES {
            Scene::set(bench);
            let state = state(bench, &configuration, profile);
            let here = probe(bench, &python, &launcher(bench.program(), &state));
            let there = probe(bench, &python, &launcher(&reference.program(), &state));
            assert!(here.keys().eq(there.keys()) && here.len() >= 40, "{}", here.len());
            for (row, is_explained) in compare(profile, &here, &there) {
                println!("{} | {row}", user(bench));
                if !is_explained {
                    unexpected.push(row);
                }
            }
            ours.insert(profile, here);
        }
        assert_snapshot!("verdicts", table(&ours));
        assert!(unexpected.is_empty(), "{unexpected:#?}");
    });
}

/// A row for each probe, and whether both sides agree or this program has its reason not to.
fn compare(profile: &str, here: &Verdicts, there: &Verdicts) -> Vec<(String, bool)> {
    let compare_one = |(name, ours): (&String, &bool)| {
        let theirs = there[name];
        let why = match (*ours, theirs) {
            (true, true) | (false, false) => Some(""),
            (false, true) => reason(profile, name),
            (true, false) => None,
        };
        let verdicts = [*ours, theirs].map(word).join(" | ");
        let row = format!("{name} | {profile} | {verdicts} | {}", why.unwrap_or("?"));
        (row, why.is_some())
    };
    here.iter().map(compare_one).collect()
}

fn user(bench: &Bench) -> &'static str {
    let uid = bench.workspace.metadata().unwrap().uid();
    if uid == 0 { "root" } else { "user" }
}

#[test]
fn without_a_sandbox_the_probes_go_through() {
    let Some(python) = python() else { return };
    as_each_user(|bench| {
        let verdicts = probe(bench, &python, &["/usr/bin/env".into()]);
        let stopped = verdicts.iter().filter(|(_, allowed)| !**allowed).map(|(name, _)| name);
        let stopped: Vec<_> =
            stopped.filter(|name| !MAY_FAIL_ANYWHERE.contains(&name.as_str())).collect();
        assert!(stopped.is_empty(), "{stopped:?}");
    });
}

/// Why this program denies what the other side may allow.
fn reason(profile: &str, probe: &str) -> Option<&'static str> {
    let mut listed = DENIED_BY_US.iter().filter(|denied| denied.probe == probe);
    let found = listed.find(|denied| denied.profile.is_none_or(|only| only == profile));
    found.map(|denied| denied.reason)
}

fn word(allowed: bool) -> &'static str {
    if allowed { "allowed" } else { "denied" }
}

/// A row for each probe, a column for each profile.
fn table(verdicts: &BTreeMap<&str, Verdicts>) -> String {
    let mut text = format!("{:24}", "probe");
    for profile in PROFILES {
        write!(text, " {profile:10}").unwrap();
    }
    for name in verdicts[PROFILES[0]].keys() {
        write!(text, "\n{name:24}").unwrap();
        for profile in PROFILES {
            write!(text, " {:10}", word(verdicts[profile][name])).unwrap();
        }
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
