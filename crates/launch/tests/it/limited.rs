//! A limited network: whom its one socket is handed to, and when nothing runs.

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
