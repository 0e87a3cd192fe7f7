//! Each rung of the ladder, on a machine that lacks what the rungs above need. The machine is made to lack it: by a
//! seccomp filter, a sysctl, a covered `/proc`, fewer capabilities, another sandbox.

mod faked;
pub(crate) mod machine;
mod probes;

use serde_json::Value;

use crate::stage::{Ended, Profile, Stage, Who};
use machine::Machine;

fn lacking(machine: Machine) -> Vec<Stage> {
    let here = Who::everybody().into_iter().filter(|who| machine.is_possible_for(*who));
    here.map(|who| machine.stage(who)).collect()
}

fn run(stage: &Stage, profile: &Profile, minimum: &str, script: &str) -> Ended {
    stage.run_with(profile, &["--minimum-rung", minimum], &["/bin/sh", "-c", script])
}

/// Nothing writable: what every rung can hold.
fn read_only(stage: &Stage) -> Profile {
    stage.profile().root("read")
}

fn rung(ended: &Ended) -> &str {
    ended.report.as_ref().unwrap()["rung"].as_str().unwrap_or_default()
}

/// The rungs that a report says are not to be had, and why.
fn unavailable(ended: &Ended) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tried = ended.report.as_ref().unwrap()["unavailable_rungs"].as_array().unwrap().iter();
    tried.map(|rung| (text(&rung["rung"]), text(&rung["why"]))).collect()
}

#[test]
fn a_whole_machine_gives_a_full_rung_and_tries_nothing_else() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let ended = run(&stage, &stage.workspace(), "landlock", "true");
        let wanted = if who == Who::Root { "full-privileged" } else { "full" };
        assert_eq!(rung(ended.assert_ok()), wanted);
        assert!(unavailable(&ended).is_empty());
    }
}

/// Whoever makes the network namespace: the launcher beside its child's work, the child itself, or the kernel with it.
#[test]
fn the_command_is_in_a_new_network_namespace_however_that_is_made() {
    let host = std::fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    let whole = Who::everybody().into_iter().map(Stage::new).collect();
    for stages in [whole, lacking(Machine::NoSetns), lacking(Machine::OneProcessor)] {
        for stage in stages {
            let script = "readlink /proc/self/ns/net; tail -n +2 /proc/net/route | wc -l";
            let ended = run(&stage, &stage.workspace(), "full", script);
            let wanted = if stage.who == Who::Root { "full-privileged" } else { "full" };
            assert_eq!(rung(ended.assert_ok()), wanted);
            let (namespace, routes) = ended.stdout.split_once('\n').unwrap();
            assert!(namespace.starts_with("net:[") && namespace != host, "{ended:?}");
            assert_eq!(routes, "0\n");
            // The control: with the network on it is the host's.
            let on = run(&stage, &stage.workspace().network("enabled"), "full", script);
            assert_eq!(on.assert_ok().stdout.lines().next(), Some(host.as_str()));
        }
    }
}

#[test]
fn where_descriptors_cannot_be_closed_nothing_runs() {
    for stage in lacking(Machine::NoCloseRange) {
        let ended = run(&stage, &stage.workspace(), "landlock", "echo ran");
        ended.assert_refused("close inherited descriptors (close_range(2))");
        assert!(stage.fixture.names("ws").is_empty(), "a placeholder stayed");
    }
}

#[test]
fn root_without_the_right_to_mount_uses_a_user_namespace() {
    for stage in lacking(Machine::NoAdministrator) {
        let ended = run(&stage, &stage.workspace(), "full", "id -u; echo x > a; cat a");
        assert_eq!(rung(&ended), "full", "{ended:?}");
        assert_eq!(ended.stdout, "0\nx\n");
    }
}

#[test]
fn root_without_setfcap_cannot_map_itself_and_is_told_so() {
    for stage in lacking(Machine::NoCapabilities) {
        let ended = run(&stage, &stage.workspace(), "full", "echo ran");
        ended.assert_refused("uid_map");
        let why = ended.report.unwrap()["unavailable_rungs"][0].to_string();
        assert!(why.contains("CAP_SETFCAP"), "{why}");
        let ended = run(&stage, &read_only(&stage), "landlock", "id -u");
        assert_eq!((rung(&ended), ended.stdout.as_str()), ("landlock", "0\n"), "{ended:?}");
    }
}

/// An ordinary user who is root of a user namespace in which no other can be made: a container, in effect.
#[test]
fn without_user_namespaces_the_right_to_mount_is_enough() {
    for stage in lacking(Machine::NoUserNamespacesBySysctl { capable: true }) {
        let ended = run(&stage, &stage.workspace(), "full", "echo x > a; cat a; echo y > .git/x");
        assert_eq!((rung(&ended), ended.stdout.as_str()), ("full-privileged", "x\n"), "{ended:?}");
    }
}

#[test]
fn without_user_namespaces_and_the_right_to_mount_the_launch_is_refused_with_reasons() {
    for machine in [Machine::NoUserNamespacesBySysctl { capable: false }, Machine::NoUserNamespaces]
    {
        for stage in lacking(machine) {
            let ended = run(&stage, &stage.workspace(), "full", "echo ran");
            ended.assert_refused("build a sandbox of rung full or better here; full");
            let names: Vec<String> =
                unavailable(&ended).into_iter().map(|(rung, _)| rung).collect();
            assert!(names.ends_with(&["full".to_owned(), "bwrap".to_owned()]), "{names:?}");
            assert!(ended.report.as_ref().unwrap()["reason"]["hint"].is_string(), "{ended:?}");
            assert!(stage.fixture.names("ws").is_empty(), "a placeholder stayed");
        }
    }
}

#[test]
fn landlock_alone_runs_what_it_can_hold_when_it_is_asked_for() {
    for stage in lacking(Machine::NoUserNamespaces) {
        let ended =
            run(&stage, &read_only(&stage), "landlock", "echo $$; echo x > new || echo kept");
        assert_eq!(rung(&ended), "landlock", "{ended:?}");
        assert!(ended.stdout.ends_with("kept\n"), "{ended:?}");
        let report = ended.report.as_ref().unwrap();
        assert_eq!(report["foreign_processes_visible"], true);
        assert_eq!(report["layers"]["mounts"], "not-enforced");
        assert!(report["layer_reasons"]["mounts"].as_str().unwrap().contains("Landlock alone"));
        run(&stage, &read_only(&stage), "no-proc", "echo ran")
            .assert_refused("rung no-proc or better");
    }
}

#[test]
fn landlock_alone_refuses_what_it_cannot_hold() {
    for stage in lacking(Machine::NoUserNamespaces) {
        let nothing_to_protect = stage.fixture.directory("scratch").display().to_string();
        let ended = run(&stage, &stage.workspace(), "landlock", "echo ran");
        ended.assert_refused("cannot be protected inside the writable");
        let profile = Profile::whole(
            &stage.path("ws"),
            serde_json::json!({"type": "managed", "file_system": {"type": "unrestricted"}, "network": "restricted"}),
        );
        run(&stage, &profile, "landlock", "echo ran").assert_refused("everything is writable");
        let profile = read_only(&stage).path("deny", "/proc/1");
        run(&stage, &profile, "landlock", "echo ran").assert_refused("which would be visible");
        assert!(stage.fixture.names("ws").is_empty(), "a placeholder stayed");
        let profile = read_only(&stage)
            .path("write", &nothing_to_protect)
            .path("write", &format!("{nothing_to_protect}/.git"));
        run(&stage, &profile, "landlock", "echo ran").assert_refused(".agents cannot be protected");
    }
}

#[test]
fn landlock_alone_leaves_no_process_behind() {
    for stage in lacking(Machine::NoUserNamespaces) {
        let mark = stage.fixture.path().file_name().unwrap().to_str().unwrap().to_owned();
        let background = format!(
            "setsid sh -c 'sleep 600; : {mark}' & (trap '' TERM HUP; sleep 600; : {mark}) &"
        );
        for end in ["exit 3", "kill -9 $PPID; sleep 600", "kill -TERM $$"] {
            let script = format!("{background} {end}");
            let started = std::time::Instant::now();
            let ended = run(&stage, &read_only(&stage), "landlock", &script);
            assert_ne!(ended.code, 0, "{ended:?}");
            assert!(started.elapsed().as_secs() < 60, "something was waited for");
            assert_eq!(machine::processes_with(&mark), Vec::<u32>::new(), "after {end}");
        }
    }
}

#[test]
fn landlock_alone_ends_with_its_launcher() {
    for stage in lacking(Machine::NoUserNamespaces) {
        let mark = stage.fixture.path().file_name().unwrap().to_str().unwrap().to_owned();
        let script = format!("(sleep 600; : {mark}) & echo on; sleep 600; : {mark}");
        let options = ["--minimum-rung", "landlock"];
        let words = stage.launch_words(&read_only(&stage), &options, &["/bin/sh", "-c", &script]);
        machine::kill_when_it_runs(&stage, words);
        machine::assert_gone(&mark);
    }
}

#[test]
fn a_filter_that_refuses_clone3_leaves_bwrap() {
    if !machine::has_bwrap() {
        return;
    }
    for stage in lacking(Machine::NoClone3) {
        let profile = stage.workspace().path("deny", &stage.path("ws/secret"));
        stage.fixture.file("ws/secret/inner", "secret");
        let script = "echo $PPID; cat secret/inner || echo hidden; echo x > a; cat a; echo y > .git/x || echo kept; \
                      mkdir .agents; ls -A; ls /proc/self/fd | wc -l; kill -TERM $$";
        let ended = run(&stage, &profile, "full", script);
        assert_eq!(rung(&ended), "bwrap", "{ended:?}");
        assert_eq!(ended.code, 143, "{ended:?}");
        let wanted = "1\nhidden\nx\nkept\n.agents\n.aws\n.codex\n.git\na\nsecret\n4\n";
        assert_eq!(ended.stdout, wanted, "{ended:?}");
        assert_eq!(stage.fixture.names("ws"), ["a", "secret"], "a placeholder stayed");
        assert!(
            unavailable(&ended)
                .iter()
                .any(|(rung, why)| rung == "full" && why.contains("namespace"))
        );
    }
}

#[test]
fn bwrap_gets_nothing_of_the_callers_environment() {
    if !machine::has_bwrap() {
        return;
    }
    for stage in lacking(Machine::NoClone3) {
        let words = stage.launch_words(
            &stage.workspace(),
            &["--report-fd", "9"],
            &["/bin/sh", "-c", "echo $LD_PRELOAD $MARK; tr '\\0' '\\n' < /proc/1/environ"],
        );
        let fake = stage.path("no-such-library.so");
        let ended = stage.run_words(words, &[("LD_PRELOAD", &fake), ("MARK", "here")]);
        assert_eq!(rung(&ended), "bwrap", "{ended:?}");
        assert_eq!(ended.stdout, format!("{fake} here\n"), "{ended:?}");
    }
}

#[test]
fn bwrap_passes_signals_and_ends_with_its_launcher() {
    if !machine::has_bwrap() {
        return;
    }
    for stage in lacking(Machine::NoClone3) {
        let script = "trap 'echo trapped; exit 9' TERM; echo on; while :; do sleep 0.05; done";
        let words = stage.launch_words(&stage.workspace(), &[], &["/bin/sh", "-c", script]);
        let (code, rest) = machine::signal_when_it_runs(&stage, words, "TERM");
        assert_eq!((code, rest.as_str()), (Some(9), "trapped\n"));
        let mark = stage.fixture.path().file_name().unwrap().to_str().unwrap().to_owned();
        let script = format!("(sleep 600; : {mark}) & echo on; sleep 600; : {mark}");
        let words = stage.launch_words(&stage.workspace(), &[], &["/bin/sh", "-c", &script]);
        machine::kill_when_it_runs(&stage, words);
        machine::assert_gone(&mark);
    }
}

/// Root of a user namespace owns nothing of the host's: `/usr/bin/bwrap` is nobody's there.
#[test]
fn a_bwrap_that_is_not_roots_is_not_run() {
    for stage in lacking(Machine::ForeignBwrap) {
        let ended = run(&stage, &stage.workspace(), "full", "echo ran");
        ended.assert_refused("/usr/bin/bwrap");
        let why = unavailable(&ended).into_iter().find(|(rung, _)| rung == "bwrap").unwrap().1;
        assert!(why.contains("does not belong to root"), "{why}");
    }
}

#[test]
fn a_covered_proc_is_kept_and_read_only_when_that_is_asked_for() {
    for stage in lacking(Machine::CoveredProc) {
        let ended = run(&stage, &stage.workspace(), "full", "echo ran");
        ended.assert_refused("a fresh /proc");
        let tried = unavailable(&ended);
        assert!(tried.iter().any(|(rung, why)| rung == "bwrap" && why.contains("as well")));
        let script = "echo x > a; cat a; cat /proc/self/comm; ls /proc/irq | wc -l; kill -0 1 && test -d /proc/$HOST \
                      && echo visible; cat /proc/$HOST/environ || echo closed; \
                      echo 1 > /proc/self/oom_score_adj || echo kept";
        let host = std::process::id().to_string();
        let words = stage.launch_words(
            &stage.workspace(),
            &["--report-fd", "9", "--minimum-rung", "no-proc"],
            &["/bin/sh", "-c", script],
        );
        let ended = stage.run_words(words, &[("HOST", &host)]);
        assert_eq!(rung(&ended), "no-proc", "{ended:?}");
        assert_eq!(ended.stdout, "x\ncat\n0\nvisible\nclosed\nkept\n", "{ended:?}");
        let report = ended.report.as_ref().unwrap();
        assert_eq!(report["foreign_processes_visible"], true);
        assert_eq!(report["layers"]["namespaces"], "partly");
        let profile = stage.workspace().path("deny", "/proc/1");
        run(&stage, &profile, "no-proc", "echo ran").assert_refused("which would be visible");
    }
}

#[test]
fn without_landlock_nothing_runs() {
    for stage in lacking(Machine::NoLandlock) {
        let ended = run(&stage, &read_only(&stage), "landlock", "echo ran");
        ended.assert_refused("apply Landlock");
        assert!(ended.report.unwrap()["reason"]["hint"].as_str().unwrap().contains("5.13"));
    }
}

#[test]
fn a_sandbox_in_a_sandbox_is_refused_or_narrower_by_landlock() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/closed/secret", "secret");
        let inner = |profile: &Profile, minimum: &str, script: &str| {
            let options = ["--minimum-rung", minimum];
            let words = stage.launch_words(profile, &options, &["/bin/sh", "-c", script]);
            stage.run(&stage.workspace(), &words)
        };
        let narrower = read_only(&stage).path("deny", &stage.path("ws/closed"));
        let ended = inner(&narrower, "full", "echo ran");
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
        let script = "echo x > new || echo kept; cat closed/secret || echo hidden; cat /etc/passwd > /dev/null && echo read";
        let ended = inner(&narrower, "landlock", script);
        assert_eq!(ended.stdout, "kept\nhidden\nread\n", "{ended:?}");
        let ended = inner(&stage.workspace(), "landlock", "echo ran");
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{ended:?}");
    }
}

#[test]
fn explaining_runs_nothing_and_tells_the_truth() {
    for stage in lacking(Machine::NoUserNamespaces) {
        let profile = read_only(&stage);
        let options = ["--explain", "--minimum-rung", "landlock"];
        let explained = stage.run_with(&profile, &options, &["/bin/sh", "-c", "echo ran"]);
        let report: Value = serde_json::from_str(&explained.assert_ok().stdout).unwrap();
        let launched = run(&stage, &profile, "landlock", "true");
        assert_eq!(Some(report), launched.report);
        let refused = stage.run_with(&profile, &["--explain"], &["/bin/true"]);
        assert_eq!(refused.code, 125, "{refused:?}");
        let (rung, why) = unavailable(&refused).pop().unwrap();
        assert_eq!(rung, "landlock");
        assert!(why.contains("works here, and is weaker than the minimum rung full"), "{why}");
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let explained = stage.run_with(&stage.workspace(), &["--explain"], &["/bin/true"]);
        let report: Value = serde_json::from_str(&explained.assert_ok().stdout).unwrap();
        let launched = run(&stage, &stage.workspace(), "full", "true");
        assert_eq!(Some(report), launched.report);
        assert!(stage.fixture.names("ws").is_empty(), "a placeholder stayed");
    }
}

/// A profile that grants a few places gets an empty root on the weaker rungs, too.
#[test]
fn a_few_readable_places_are_all_there_is_on_each_rung() {
    let machines = [
        ("bwrap", Machine::NoClone3),
        ("no-proc", Machine::CoveredProc),
        ("landlock", Machine::NoUserNamespaces),
    ];
    for (name, machine) in machines {
        if name == "bwrap" && !machine::has_bwrap() {
            continue;
        }
        for stage in lacking(machine) {
            let outside = stage.fixture.file("outside/secret", "secret").display().to_string();
            stage.fixture.file("ws/file", "inside");
            let access = if name == "landlock" { "read" } else { "write" };
            let profile =
                stage.profile().special("read", "minimal").path(access, &stage.path("ws"));
            let script = format!(
                "cat file; cat {outside} || echo hidden; echo x > new && rm new || echo kept"
            );
            let ended = run(&stage, &profile, name, &script);
            assert_eq!(rung(&ended), name, "{ended:?}");
            let wanted = if name == "landlock" { "insidehidden\nkept\n" } else { "insidehidden\n" };
            assert_eq!(ended.stdout, wanted, "{ended:?}");
        }
    }
}

/// What the inner stage needs to start is not the command's to see: then there is no such rung.
#[test]
fn a_policy_that_hides_the_system_libraries_is_refused_with_bwrap() {
    if !machine::has_bwrap() {
        return;
    }
    for stage in lacking(Machine::NoClone3) {
        let profile = stage.profile().path("read", &stage.path("ws"));
        let ended = run(&stage, &profile, "full", "echo ran");
        ended.assert_refused("build a sandbox of rung full");
    }
}

/// Carve-outs in an empty root, and a file as standard input: what the mounts of the other rungs hold.
#[test]
fn bwrap_pins_in_an_empty_root_and_hands_no_writable_file_in() {
    if !machine::has_bwrap() {
        return;
    }
    for stage in lacking(Machine::NoClone3) {
        stage.fixture.file("ws/sub/protected/file", "kept");
        let given = stage.fixture.file("ws/.git/config", "given\n").display().to_string();
        let profile = stage
            .profile()
            .special("read", "minimal")
            .path("write", &stage.path("ws"))
            .path("read", &stage.path("ws/sub/protected"));
        let script = "exec 2>/dev/null; mv sub away && echo moved; echo x > sub/protected/file && echo wrote
            echo evil > /dev/stdin && echo evil; chmod 600 /dev/stdin && echo chmod; cat; echo x > new";
        let mut words: Vec<std::ffi::OsString> =
            ["/bin/sh", "-c", "exec \"$0\" \"$@\" < $GIVEN"].map(Into::into).to_vec();
        let options = ["--report-fd", "9"];
        words.extend(stage.launch_words(&profile, &options, &["/bin/sh", "-c", script]));
        let ended = stage.run_words(words, &[("GIVEN", &given)]);
        assert_eq!(rung(&ended), "bwrap", "{ended:?}");
        assert_eq!(ended.assert_ok().stdout, "given\n", "{ended:?}");
        assert_eq!(stage.fixture.read("ws/.git/config").as_deref(), Some("given\n"));
    }
}
