//! `shell_environment_policy`: which variables a command gets.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::{Bench, Ran, as_each_user};

const SECRETS: [(&str, &str); 4] = [
    ("GITHUB_TOKEN", "hunter2"),
    ("api_key", "hunter2"),
    ("CLIENT_SECRETS", "hunter2"),
    ("EDITOR", "vi"),
];

fn names(bench: &Bench, words: &[&str]) -> BTreeSet<String> {
    let mut command: Command = bench.command(words);
    let ran = Ran::of(command.envs(SECRETS).output().unwrap());
    let lines = ran.expect(0).stdout.lines();
    lines.filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect()
}

/// Of the variables that matter here, those that are there.
fn seen(bench: &Bench, words: &[&str]) -> String {
    const INTERESTING: [&str; 7] =
        ["CLIENT_SECRETS", "EDITOR", "EXTRA_TOKEN", "GITHUB_TOKEN", "HOME", "PATH", "api_key"];
    let names = names(bench, words);
    INTERESTING.into_iter().filter(|name| names.contains(*name)).collect::<Vec<_>>().join(" ")
}

fn sandbox(bench: &Bench, config: Option<&str>) -> String {
    let mut words = vec!["sandbox", "-P", ":workspace"];
    words.extend(config.into_iter().flat_map(|config| ["--config", config]));
    words.extend(["--", "/usr/bin/env"]);
    seen(bench, &words)
}

fn call(bench: &Bench, config: Option<&str>) -> String {
    let mut words = vec!["call", "workspace.run"];
    words.extend(config.into_iter().flat_map(|config| ["--config", config]));
    words.push("command=/usr/bin/env");
    seen(bench, &words)
}

#[test]
fn without_a_policy_a_person_keeps_all_and_a_call_gets_no_secret() {
    as_each_user(|bench| {
        let all = "CLIENT_SECRETS EDITOR GITHUB_TOKEN HOME PATH api_key";
        assert_eq!(sandbox(bench, None), all);
        assert_eq!(call(bench, None), "HOME PATH");
    });
}

#[test]
fn inherit_all_passes_on_what_is_no_secret_and_says_what_is() {
    as_each_user(|bench| {
        let policy = bench.configuration("[shell_environment_policy]\ninherit = \"all\"\n");
        let all = "CLIENT_SECRETS EDITOR GITHUB_TOKEN HOME PATH api_key";
        assert_eq!(sandbox(bench, Some(&policy)), all);
        assert_eq!(call(bench, Some(&policy)), "EDITOR HOME PATH");
        let policy =
            "[shell_environment_policy]\ninherit = \"all\"\nignore_default_excludes = true\n";
        let policy = bench.configuration(policy);
        assert_eq!(call(bench, Some(&policy)), all);
        let policy = "[shell_environment_policy]\nignore_default_excludes = false\n";
        assert_eq!(sandbox(bench, Some(&bench.configuration(policy))), "EDITOR HOME PATH");
    });
}

#[test]
fn core_none_exclude_set_and_include_only_hold_for_both() {
    as_each_user(|bench| {
        for (policy, in_sandbox, in_call) in [
            ("inherit = \"core\"", "HOME PATH", "HOME PATH"),
            (
                "inherit = \"none\"\nset = { PATH = \"/usr/bin:/bin\", EXTRA_TOKEN = \"1\" }",
                "EXTRA_TOKEN PATH",
                "EXTRA_TOKEN PATH",
            ),
            ("exclude = [\"*_token\", \"H?ME\"]", "CLIENT_SECRETS EDITOR PATH api_key", "PATH"),
            (
                "inherit = \"all\"\ninclude_only = [\"PATH\", \"edit*\"]",
                "EDITOR PATH",
                "EDITOR PATH",
            ),
        ] {
            let config = bench.configuration(&format!("[shell_environment_policy]\n{policy}\n"));
            assert_eq!(sandbox(bench, Some(&config)), in_sandbox, "{policy}");
            assert_eq!(call(bench, Some(&config)), in_call, "{policy}");
        }
    });
}

/// What decides how a policy is read is not the operator's to set for a call.
#[test]
fn a_call_refuses_to_set_home() {
    let bench = Bench::new();
    let policy = "[shell_environment_policy]\nset = { HOME = \"/elsewhere\" }\n";
    let config = bench.configuration(policy);
    let ran = bench.run(["call", "workspace.run", "--config", &config, "command=true"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("HOME"), "{ran:?}");
    let words =
        ["sandbox", "-P", ":workspace", "--config", &config, "--", "sh", "-c", "echo $HOME"];
    assert_eq!(bench.run(words).expect(0).stdout, "/elsewhere\n");
}

#[test]
fn a_project_may_not_say_which_variables_a_command_gets() {
    let bench = Bench::new();
    let project = "[shell_environment_policy]\nset = { FROM_PROJECT = \"1\" }\n";
    bench.fixture.file("workspace/plenipo.toml", project);
    let names = names(&bench, &["sandbox", "-P", ":workspace", "--", "/usr/bin/env"]);
    assert!(names.contains("PATH") && !names.contains("FROM_PROJECT"), "{names:?}");
    let named = bench.configuration(project);
    let words = ["sandbox", "-P", ":workspace", "--config", &named, "--", "/usr/bin/env"];
    assert!(self::names(&bench, &words).contains("FROM_PROJECT"), "the control has it");
}
