//! `plenipo doctor`.

use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user};

#[test]
fn says_which_rung_and_launcher() {
    as_each_user(|bench| {
        let ran = bench.run(["doctor", "--json"]);
        ran.expect(0);
        let findings: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
        let text = |subject: &str| {
            let finding = findings.iter().find(|finding| finding["subject"] == subject);
            finding.map(|finding| finding["text"].as_str().unwrap().to_owned()).unwrap_or_default()
        };
        let rung = if text("user") == "root" { "full-privileged" } else { "full" };
        assert_eq!(text("sandbox"), format!("works, rung {rung}"));
        assert!(text("limited network").starts_with("works"), "{}", text("limited network"));
        assert!(text("launcher").contains("plenipo"), "{}", text("launcher"));
    });
}

#[test]
fn names_a_fix_for_a_launcher_that_others_can_replace() {
    let bench = Bench::new();
    let program =
        bench.fixture.executable("shared/plenipo", std::fs::read(bench.program()).unwrap());
    bench.fixture.set_mode("shared", 0o777);
    let ran = Ran::of(bench.command_of(program.into_os_string(), ["doctor"]).output().unwrap());
    ran.expect(1);
    assert!(ran.stdout.contains("has mode 0777"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("fix: install it where only root or you can write"),
        "{}",
        ran.stdout
    );
}
