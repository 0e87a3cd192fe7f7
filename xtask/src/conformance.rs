//! `cargo xtask conformance`: the official suite's client scenarios against our client.
//!
//! The suite and the Node it needs come from npm, pinned, into `target/conformance`; so do the
//! results of each pass, with what the client printed. A scenario has passed when every check did,
//! without a warning, and nothing was skipped that could have been exercised.

mod passes;
mod report;
mod results;

use std::fs;
use std::path::PathBuf;

use crate::run::{Doing, Failure, Outcome, cargo, succeed};
use crate::test::from_npm;
use crate::workspace::Workspace;
use passes::Pass;
use report::Report;

const FROM_NPM: &[&str] = &["@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22.23.3"];

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    scenarios: Vec<String>,
}

/// Where everything is.
#[derive(Debug)]
struct Place {
    node: PathBuf,
    suite: PathBuf,
    client: PathBuf,
    results: PathBuf,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Outcome<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--scenario" => {
                    let name = words.next().ok_or_else(|| Failure::new("--scenario needs a name"));
                    options.scenarios.push(name?.clone());
                }
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            }
        }
        Ok(options)
    }
}

/// Fetches, builds, runs every pass, prints the table; fails when a scenario did that has to pass.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Outcome {
    let place = prepare(workspace)?;
    let passes = match options.scenarios.as_slice() {
        [] => Pass::all(),
        scenarios => Pass::of_scenarios(scenarios),
    };
    let mut report = Report::new();
    for pass in passes {
        println!("running {pass}");
        let scenarios = pass.run(&place)?;
        report.add(&pass, scenarios);
    }
    print!("{report}");
    println!("\nresults: {}", place.results.display());
    report.verdict()
}

fn prepare(workspace: &Workspace) -> Outcome<Place> {
    let directory = workspace.target.join("conformance");
    let modules = directory.join("node_modules");
    from_npm(&directory, FROM_NPM)?;
    succeed(cargo(&workspace.root).args(["build", "--package", "plenipo-conformance-client"]))?;
    let client = workspace.target.join("debug/conformance-client");
    if client.to_string_lossy().contains(' ') {
        // The suite splits the command there.
        return Err(Failure::new(format!("{} has a blank in its path", client.display())));
    }
    let results = directory.join("results");
    if results.exists() {
        fs::remove_dir_all(&results).doing("remove the results of the last run")?;
    }
    Ok(Place {
        node: modules.join("node/bin/node"),
        suite: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        client,
        results,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_scenarios() {
        let words = ["--scenario", "a", "--scenario", "b"].map(str::to_owned);
        let options = Options::parse(&words).unwrap();
        assert_eq!(options.scenarios, ["a", "b"]);
        assert!(Options::parse(&["--scenario".to_owned()]).is_err());
        assert!(Options::parse(&["--all".to_owned()]).is_err());
    }
}
