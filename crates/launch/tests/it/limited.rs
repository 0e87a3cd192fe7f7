//! A limited network: whom its one socket is handed to, and when nothing runs.

use std::fmt::Write as _;

use crate::rows::attacks::{ATTACKS, Attack, Expected};
use crate::rows::each;
use crate::rows::ground::{Ground, Outcome};
use crate::rungs::machine::{Machine, has_bwrap};
use crate::stage::{Ended, Profile, Stage, Who};

const ASK: &str = "cat < /dev/tcp/127.0.0.1/3128";

fn with_egress(stage: &Stage, profile: &Profile, egress: &[&str], script: &str) -> Ended {
    stage.run_with(profile, egress, &["/bin/bash", "-c", script])
}

fn rung(ended: &Ended) -> &str {
    ended.report.as_ref().unwrap()["rung"].as_str().unwrap_or_default()
}

#[test]
fn the_socket_inside_is_served_from_outside() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        for profile in [stage.workspace(), stage.profile().special("read", "minimal")] {
            let profile = profile.cwd("/usr").limited();
            let ended = with_egress(&stage, &profile, &["--egress", "greets"], ASK);
            assert_eq!(ended.assert_ok().stdout, "greetings\n", "{ended:?}");
            let report = ended.report.unwrap();
            assert_eq!(report["network"]["mode"], "limited");
            assert_eq!(report["network"]["domains"]["example.org"], "allow");
            assert_eq!(report["layers"]["network"], "enforced");
        }
    }
}

#[test]
fn nothing_runs_where_nobody_serves_it() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let profile = stage.workspace().limited();
        for (egress, why) in [
            (&[][..], "limit the network: there is no proxy to serve it"),
            (&["--egress", "fails"], "serve the limited network: nobody is at home"),
        ] {
            with_egress(&stage, &profile, egress, "echo ran; echo x > ran").assert_refused(why);
            assert!(!stage.fixture.exists("ws/ran"));
        }
        // The controls: without a limit nobody is needed, and with somebody it runs.
        with_egress(&stage, &stage.workspace(), &[], "true").assert_ok();
        with_egress(&stage, &profile, &["--egress", "greets"], "echo x > ran").assert_ok();
        assert!(stage.fixture.exists("ws/ran"));
    }
}

#[test]
fn a_container_that_covers_proc_can_limit_the_network_too() {
    let machine = Machine::CoveredProc;
    for who in Who::everybody().into_iter().filter(|who| machine.is_possible_for(*who)) {
        let stage = machine.stage(who);
        let options = ["--minimum-rung", "no-proc", "--egress", "greets"];
        let ended = with_egress(&stage, &stage.workspace().limited(), &options, ASK);
        assert_eq!((rung(ended.assert_ok()), ended.stdout.as_str()), ("no-proc", "greetings\n"));
    }
}

#[test]
fn rungs_that_cannot_limit_the_network_say_so_and_nothing_runs() {
    if !has_bwrap() {
        return;
    }
    let machine = Machine::NoClone3;
    for who in Who::everybody().into_iter().filter(|who| machine.is_possible_for(*who)) {
        let stage = machine.stage(who);
        let options = ["--minimum-rung", "landlock", "--egress", "greets"];
        let profile = stage.profile().root("read");
        let ended = with_egress(&stage, &profile.clone().limited(), &options, "echo ran");
        ended.assert_refused("bwrap: it cannot limit the network to hosts");
        ended.assert_refused("landlock: it cannot limit the network to hosts");
        // The control: without a limit one of them does.
        with_egress(&stage, &profile, &options, "true").assert_ok();
    }
}

/// To be had here, with nothing outside to connect to.
const SOCKETS: [&str; 2] = ["TCP socket", "TCP6 socket"];

/// The threat model's attacks, with the one socket more that a limited network has: none has an effect outside.
#[test]
fn every_attack_is_held_with_a_limited_network() {
    let faults: Vec<String> = each(ATTACKS, |attack| {
        let mut faults = String::new();
        for who in Who::everybody() {
            let seen = Ground::on(Stage::new(who)).with_limited_network(attack);
            if let Some(fault) = fault(who, attack, &seen) {
                writeln!(faults, "row {} {} as {}: {fault}", attack.row, attack.name, who.name())
                    .unwrap();
            }
        }
        faults
    });
    let faults = faults.concat();
    assert!(faults.is_empty(), "\n{faults}");
    println!("{} probes held with a limited network", ATTACKS.len());
}

fn fault(who: Who, attack: &Attack, seen: &Outcome) -> Option<String> {
    let rung = if who == Who::Root { "full-privileged" } else { "full" };
    if seen.rung.as_deref() != Some(rung) {
        return Some(format!("ran on another rung: {seen:?}"));
    }
    if seen.host_changed || seen.arrivals != 0 {
        return Some(format!("had an effect outside: {seen:?}"));
    }
    let expected = matches!(attack.expected, Expected::Private) || SOCKETS.contains(&attack.name);
    let denied = seen.answer.starts_with("DENIED ");
    (!denied && !expected).then(|| format!("was not refused: {seen:?}"))
}
