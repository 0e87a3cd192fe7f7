//! The recipes of `docs/environments.md`, each with a stand-in for its program that records its arguments and runs
//! what comes behind the words that lead there.

use super::{HARD_WORDS, python};
use crate::support::{Bench, data};

/// The words of a recipe's command that come before the server's own, with a variable forwarded where it can be.
const RECIPES: [(&str, &str, &[&str]); 5] = [
    ("docker", "exec -i -e WHERE_TOKEN notes", &["docker"]),
    ("podman", "exec -i -e WHERE_TOKEN notes", &["podman"]),
    ("root", "run --rm -i --network=none --rootfs /srv/roots/notes", &["podman"]),
    ("kubernetes", "exec -i deploy/notes --", &["kubectl"]),
    ("nomad", "alloc exec -i -t=false -task notes 8ba85cef", &["nomad"]),
];

/// The block of TOML in the documentation that defines the environment.
fn block(name: &str) -> String {
    let page = std::fs::read_to_string(data("../../docs/environments.md")).unwrap();
    let start = page.find(&format!("[environments.{name}]")).expect("the page has the recipe");
    page.split_at(start).1.split("```").next().unwrap().to_owned()
}

#[test]
fn the_documented_recipes_lead_there() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    for (name, wanted, programs) in RECIPES {
        let count = wanted.split(' ').count();
        for program in programs {
            bench.fixture.executable(
                format!("bin/{program}"),
                format!(
                    "#!/bin/sh\nprintf '%s ' \"$@\" >\"{}\"\nshift {count}\nexec \"$@\"\n",
                    bench.fixture.join("said").display()
                ),
            );
        }
        let token = match wanted.contains("WHERE_TOKEN") {
            true => "env = { WHERE_TOKEN = \"s3cret\" }\n",
            false => "",
        };
        let args = serde_json::to_string(
            &[&[&*data("tests/data/where.py").display().to_string()][..], &HARD_WORDS].concat(),
        );
        let config = bench.configuration(&format!(
            "{}\n[mcp_servers.where]\ncommand = {python:?}\nargs = {}\nenvironment_id = \"{name}\"\n{token}",
            block(name),
            args.unwrap()
        ));
        let mut command = bench.command(["call", "--config", &config, "where.where", "-C", "/var"]);
        let path = format!("{}:/usr/bin:/bin", bench.fixture.join("bin").display());
        let said = crate::support::Ran::of(command.env("PATH", path).output().unwrap());
        let answer: serde_json::Value = serde_json::from_str(&said.expect(0).stdout).unwrap();
        assert_eq!(answer["argv"], serde_json::json!(HARD_WORDS), "{name}");
        let argv = bench.fixture.read("said").unwrap();
        assert!(argv.starts_with(&format!("{wanted} sh -c ")), "{name}: {argv}");
        assert!(!argv.contains("s3cret"), "{name}");
    }
}
