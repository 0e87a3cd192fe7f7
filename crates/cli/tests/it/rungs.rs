//! The ladder from the command line: what `doctor` says on lesser machines, and who may lower the minimum rung.

use plenipo_testkit::{is_root, requires};
use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user};

/// An ordinary user in a place where no user namespace can be made, and without the right to mount.
const NO_USER_NAMESPACES: [&str; 5] = [
    "/usr/bin/unshare",
    "-Ur",
    "/bin/sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin -- \"$0\" \"$@\"",
];

fn state(bench: &Bench) -> String {
    let workspace = bench.workspace.display();
    format!(
        r#"{{"permissionProfile":{{"type":"managed","file_system":{{"type":"restricted","entries":[{{"path":{{"type":"special","value":{{"kind":"root"}}}},"access":"read"}}]}},"network":"restricted"}},"sandboxCwd":"file://{workspace}"}}"#
    )
}

/// Runs `plenipo WORDS` behind other words.
fn behind(bench: &Bench, before: &[&str], words: &[&str]) -> Ran {
    let program = bench.program().display().to_string();
    let (first, rest) = before.split_first().unwrap();
    let all = rest.iter().copied().chain([program.as_str()]).chain(words.iter().copied());
    Ran::of(bench.command_of((*first).into(), all).output().unwrap())
}

/// The findings about rungs, in their order.
fn rungs(ran: &Ran) -> Vec<Value> {
    let findings: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    findings.into_iter().filter(|finding| finding["subject"] == "rung").collect()
}

#[test]
fn doctor_names_each_rung_that_is_not_to_be_had_and_a_weaker_one_that_is() {
    let bench = Bench::ordinary();
    let ran = behind(&bench, &NO_USER_NAMESPACES, &["doctor", "--json"]);
    ran.expect(1);
    let rungs = rungs(&ran);
    let text = |rung: &Value| rung["text"].as_str().unwrap().to_owned();
    assert!(rungs.iter().all(|rung| rung["verdict"] == "bad"));
    assert!(text(&rungs[0]).starts_with("not full: make a user namespace"), "{rungs:?}");
    assert!(rungs[0]["fix"].as_str().unwrap().contains("user.max_user_namespaces"), "{rungs:?}");
    assert!(text(&rungs[1]).starts_with("not bwrap: "), "{rungs:?}");
    let last = rungs.last().unwrap();
    assert!(text(last).starts_with("not landlock: it works here"), "{rungs:?}");
    assert!(last["fix"].as_str().unwrap().contains("sandbox.minimum_rung = \"landlock\""));
    assert!(ran.stdout.contains("max_user_namespaces is 0"), "{}", ran.stdout);
}

#[test]
fn doctor_inside_a_sandbox_says_that_it_is_in_one() {
    as_each_user(|bench| {
        let program = bench.program().display().to_string();
        let words = ["sandbox", "-P", ":read-only", "--", &program, "doctor", "--json"];
        let ran = bench.run(words);
        ran.expect(1);
        let rungs = rungs(&ran);
        let fix = rungs[0]["fix"].as_str().unwrap();
        assert!(fix.contains("in a sandbox already, which allows no other inside"), "{rungs:?}");
        assert!(rungs.last().unwrap()["text"].as_str().unwrap().contains("landlock"), "{rungs:?}");
    });
}

/// The sandbox of a consumer leaves the one to its own commands that Landlock can give, if the operator accepts it.
#[test]
fn a_confined_consumer_is_refused_unless_its_operator_accepts_landlock() {
    let call = ["call", "workspace.run", "command=echo ran", "--profile", ":read-only"];
    let outer = ["sandbox", "-P", ":workspace", "--"];
    as_each_user(|bench| {
        let program = bench.program().display().to_string();
        let ran = bench.run([outer.as_slice(), &[&program], &call].concat());
        ran.expect(1);
        assert!(!ran.stdout.contains("ran\n"), "{ran:?}");
        // In an ordinary user's namespace `/` belongs to nobody, which no launcher is trusted below.
        let untrusted =
            ran.stdout.contains("without a launcher") && ran.stderr.contains("user 65534");
        let nested = "in a sandbox already, which allows no other inside";
        assert!(untrusted || format!("{}{}", ran.stdout, ran.stderr).contains(nested), "{ran:?}");
    });
    if !requires("root, for an /etc of the test's own", is_root()) {
        return;
    }
    let bench = Bench::new();
    let program = bench.program().display().to_string();
    let accepted = "[sandbox]\nminimum_rung = \"landlock\"\n";
    let inside = |words: &[&str]| {
        let words = [outer.as_slice(), &[program.as_str()], words].concat();
        with_etc(&bench, None, accepted, &words)
    };
    let ran = inside(&call);
    assert_eq!(ran.expect(0).stdout, "ran\n", "{ran:?}");
    let doctor = inside(&["doctor"]);
    assert!(doctor.expect(0).stdout.contains("works, rung landlock"), "{doctor:?}");
}

#[test]
fn a_sandbox_in_a_sandbox_runs_on_landlock_when_the_configuration_allows_it() {
    as_each_user(|bench| {
        let config = bench.configuration("[sandbox]\nminimum_rung = \"landlock\"\n");
        let program = bench.program().display().to_string();
        let inner = ["sandbox", "--config", &config, "-P", ":read-only", "--", "sh", "-c"];
        let run = |script: &str| {
            let words = ["sandbox", "-P", ":workspace", "--", program.as_str()];
            bench.run([words.as_slice(), &inner, &[script]].concat())
        };
        assert_eq!(run("echo x > file || echo kept").expect(0).stdout, "kept\n");
        let words = ["sandbox", "-P", ":workspace", "--", program.as_str()];
        let ran =
            bench.run([words.as_slice(), &["sandbox", "-P", ":read-only", "--", "true"]].concat());
        assert!(ran.expect(125).stderr.contains("in a sandbox already"), "{}", ran.stderr);
    });
}

/// Root with an `/etc` of its own: the passwd file and the managed configuration are what the test says.
fn with_etc(bench: &Bench, managed: Option<&str>, user: &str, words: &[&str]) -> Ran {
    let home = bench.fixture.join("operator");
    let etc = bench.fixture.directory("etc");
    bench.fixture.file("etc/passwd", format!("root:x:0:0::{}:/bin/sh\n", home.display()));
    bench.fixture.file("operator/.config/plenipo/plenipo.toml", user);
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    bench.fixture.file("etc/ld.so.cache", cache);
    if let Some(managed) = managed {
        bench.fixture.file("etc/plenipo/plenipo.toml", managed);
    }
    let script = format!("mount --bind '{}' /etc && exec \"$0\" \"$@\"", etc.display());
    behind(bench, &["/usr/bin/unshare", "-m", "/bin/sh", "-c", &script], words)
}

#[test]
fn the_operators_files_decide_about_the_minimum_rung_of_a_state() {
    if !requires("root, for an /etc of the test's own", is_root()) {
        return;
    }
    let bench = Bench::new();
    let state = state(&bench);
    let lowered = |rung: &str| format!("[sandbox]\nminimum_rung = \"{rung}\"\n");
    let minimum = |managed: Option<&str>, user: &str, more: &[&str]| {
        let words = ["sandbox", "--explain", "--json", "--sandbox-state-json", &state];
        let managed = managed.map(lowered);
        let ran = with_etc(&bench, managed.as_deref(), user, &[words.as_slice(), more].concat());
        std::fs::remove_file(bench.fixture.join("etc/plenipo/plenipo.toml")).ok();
        let report: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        let notes = report["notes"].to_string();
        (report["minimum_rung"].as_str().unwrap().to_owned(), notes)
    };
    let of = |managed, user: &str, more: &[&str]| minimum(managed, user, more).0;
    assert_eq!(of(None, "", &[]), "full");
    assert_eq!(of(None, &lowered("landlock"), &[]), "landlock");
    assert_eq!(of(Some("no-proc"), "", &[]), "no-proc");
    assert_eq!(of(Some("no-proc"), &lowered("landlock"), &[]), "no-proc");
    assert_eq!(of(Some("landlock"), &lowered("no-proc"), &[]), "no-proc");
    assert_eq!(of(Some("landlock"), &lowered("landlock"), &["--minimum-rung", "bwrap"]), "bwrap");
    let (rung, notes) = minimum(None, "[sandbox", &[]);
    assert_eq!(rung, "full");
    assert!(notes.contains("plenipo.toml"), "{notes}");
}

/// Whoever of the two asks for it has it, and no caller can do without.
#[test]
fn the_operators_files_decide_whether_deny_patterns_have_to_hold() {
    if !requires("root, for an /etc of the test's own", is_root()) {
        return;
    }
    let bench = Bench::new();
    bench.fixture.file("workspace/secrets/key", "");
    let state = |pattern: &str| {
        let entry = format!(
            r#"{{"path":{{"type":"glob_pattern","pattern":"{pattern}"}},"access":"deny"}},{{"path":{{"type":"special""#
        );
        state(&bench).replacen(r#"{"path":{"type":"special""#, &entry, 1)
    };
    let (strict, loose) =
        ("[sandbox]\ndeny_glob = \"strict\"\n", "[sandbox]\ndeny_glob = \"at-start\"\n");
    let code = |managed: Option<&str>, user: &str, pattern: &str| {
        let state = state(pattern);
        let words = ["sandbox", "--sandbox-state-json", &state, "--", "true"];
        let ran = with_etc(&bench, managed, user, &words);
        std::fs::remove_file(bench.fixture.join("etc/plenipo/plenipo.toml")).ok();
        assert!(ran.code != Some(125) || ran.stderr.contains("sandbox.deny_glob"), "{ran:?}");
        ran.code
    };
    assert_eq!(code(None, "", "**/*.env"), Some(0));
    assert_eq!(code(None, loose, "**/*.env"), Some(0));
    assert_eq!(code(None, strict, "**/*.env"), Some(125));
    assert_eq!(code(Some(strict), loose, "**/*.env"), Some(125));
    assert_eq!(code(Some(loose), strict, "**/*.env"), Some(125));
    assert_eq!(code(Some(strict), strict, "secrets/**"), Some(0));
}
