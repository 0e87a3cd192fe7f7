//! The threat model's attacks on each of the weaker rungs: none has an effect outside, whatever errno it is told. What a
//! rung lets happen more than the others is listed here, with the reason.

use std::fmt::Write as _;

use super::machine::{Machine, has_bwrap};
use crate::rows::attacks::{ATTACKS, Attack, Expected};
use crate::rows::each;
use crate::rows::ground::{Ground, Outcome};
use crate::stage::Who;

const DESCRIPTORS: (&str, &str) =
    ("host-descriptors", "their numbers are listed; what they are open on stays closed");

/// Rows where root is another case than an ordinary user.
const ROOTS_OWN: std::ops::RangeInclusive<u8> = 6..=10;

/// A rung and what it holds less.
struct Weakness {
    rung: &'static str,
    machine: Machine,
    /// Whether a policy with writable roots is possible.
    writable: bool,
    /// Probes that succeed, and why that is no way out.
    more: &'static [(&'static str, &'static str)],
}

fn hold(weakness: &Weakness) {
    let who = Who::everybody().into_iter().filter(|who| weakness.machine.is_possible_for(*who));
    let who: Vec<Who> = who.collect();
    let faults: Vec<String> = each(ATTACKS, |attack| {
        let mut faults = String::new();
        for who in who.iter().filter(|who| **who == Who::User || ROOTS_OWN.contains(&attack.row)) {
            let ground = Ground::on(weakness.machine.stage(*who));
            let seen = ground.on_rung(attack, weakness.rung, weakness.writable);
            if let Some(fault) = fault(weakness, attack, &seen) {
                writeln!(faults, "row {} {} as {}: {fault}", attack.row, attack.name, who.name())
                    .unwrap();
            }
        }
        faults
    });
    let faults = faults.concat();
    assert!(faults.is_empty(), "\n{faults}");
    println!("{} probes held on rung {} as {who:?}", ATTACKS.len(), weakness.rung);
    weakness.more.iter().for_each(|(probe, why)| println!("  weaker: {probe}: {why}"));
}

fn fault(weakness: &Weakness, attack: &Attack, seen: &Outcome) -> Option<String> {
    if seen.rung.as_deref() != Some(weakness.rung) {
        return Some(format!("ran on another rung: {seen:?}"));
    }
    if seen.host_changed || seen.arrivals != 0 {
        return Some(format!("had an effect outside: {seen:?}"));
    }
    let known = weakness.more.iter().any(|(probe, _)| *probe == attack.probe);
    let private = matches!(attack.expected, Expected::Private);
    let denied = seen.answer.starts_with("DENIED ");
    (!denied && !known && !private).then(|| format!("was not refused: {seen:?}"))
}

#[test]
fn every_attack_is_held_with_bwrap() {
    if has_bwrap() {
        hold(&Weakness { rung: "bwrap", machine: Machine::NoClone3, writable: true, more: &[] });
    }
}

#[test]
fn every_attack_is_held_with_the_outer_proc() {
    hold(&Weakness {
        rung: "no-proc",
        machine: Machine::CoveredProc,
        writable: true,
        more: &[DESCRIPTORS],
    });
}

#[test]
fn every_attack_is_held_by_landlock_alone() {
    hold(&Weakness {
        rung: "landlock",
        machine: Machine::NoUserNamespaces,
        writable: false,
        more: &[
            DESCRIPTORS,
            ("process-descriptor", "it names a process, and gives no right over it"),
        ],
    });
}
