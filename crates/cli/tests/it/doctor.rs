//! `plenipo doctor`.

use serde_json::Value;

use crate::support::{Bench, Ran, as_each_user, python};

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

#[test]
fn d60_proxies_that_a_server_does_not_get_are_told() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let config = bench.configuration(&format!(
        "[mcp_servers.bare]\ncommand = {python:?}\nargs = [\"-c\", \"raise SystemExit(3)\"]\n\
         [mcp_servers.full]\ncommand = {python:?}\nenv_vars = [\"https_proxy\", \"NO_PROXY\"]\n\
         [mcp_servers.away]\nurl = \"http://127.0.0.1:1/mcp\"\n"
    ));
    let run = |words: &[&str], proxies: &[(&str, &str)]| {
        let mut command = bench.command([&["--config", &config], words].concat());
        Ran::of(command.envs(proxies.iter().copied()).output().unwrap())
    };
    let set = [("HTTPS_PROXY", "http://ada:s3cr3t@proxy.example:3128"), ("NO_PROXY", "localhost")];
    let ran = run(&["doctor", "--json"], &set);
    let findings: Vec<Value> = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    let found: Vec<_> = findings.iter().filter(|finding| finding["subject"] == "proxy").collect();
    assert_eq!(found.len(), 1, "{findings:?}");
    assert_eq!(found[0]["verdict"], "note");
    assert_eq!(found[0]["text"], "HTTPS_PROXY, NO_PROXY are set here, and not passed on to `bare`");
    let fix = found[0]["fix"].as_str().unwrap();
    assert!(fix.starts_with("env_vars = [\"HTTPS_PROXY\", \"NO_PROXY\"]"), "{fix}");
    for words in [&["tools", "bare"][..], &["call", "bare.x"]] {
        let failed = run(words, &set);
        failed.expect(3);
        let hint = "write env_vars = [\"HTTPS_PROXY\", \"NO_PROXY\"] in its table";
        assert!(failed.stderr.contains(hint), "{}", failed.stderr);
        assert!(!failed.stderr.contains("s3cr3t"), "{}", failed.stderr);
        assert!(!run(words, &[]).expect(3).stderr.contains("PROXY"), "the control");
    }
    for proxies in [&[][..], &[("NO_PROXY", "localhost")], &[("HTTPS_PROXY", "")]] {
        let ran = run(&["doctor", "--json"], proxies);
        assert!(!ran.expect(0).stdout.contains("\"proxy\""), "{proxies:?}: {}", ran.stdout);
    }
}
