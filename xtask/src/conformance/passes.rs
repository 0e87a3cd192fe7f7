//! What the suite is asked to run.

use std::fmt;
use std::fs;
use std::process::Command;

use super::Place;
use super::results::{self, Scenario};
use crate::run::{Doing, Outcome};

/// The suite starts all scenarios of a pass at once; on a loaded machine they need their time.
const TIMEOUT: &str = "120000";
/// In no suite that is bound to a revision.
const SKILLS: [&str; 4] = [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Pass {
    /// For people, and the directory of its results.
    name: String,
    arguments: Vec<String>,
    /// Which scenario, when it is only one.
    only: Option<String>,
}

impl Pass {
    /// Both revisions, the extensions, and what older servers need.
    pub(super) fn all() -> Vec<Self> {
        let mut passes = Vec::new();
        for revision in ["2025-11-25", "2026-07-28"] {
            passes.push(Self::new(format!("{revision} required"), &["--requirements", revision]));
            let all = ["--suite", "all", "--spec-version", revision];
            passes.push(Self::new(format!("{revision} all"), &all));
        }
        passes.push(Self::new("extensions", &["--suite", "extensions"]));
        passes.push(Self::new("backcompat", &["--suite", "backcompat"]));
        passes.extend(SKILLS.map(Self::scenario));
        passes
    }

    /// Each by itself, at the revision it is made for.
    pub(super) fn of_scenarios(scenarios: &[String]) -> Vec<Self> {
        scenarios.iter().map(|name| Self::scenario(name)).collect()
    }

    fn new(name: impl Into<String>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { name: name.into(), arguments, only: None }
    }

    fn scenario(name: &str) -> Self {
        let pass = Self::new(name, &["--scenario", name]);
        Self { only: Some(name.to_owned()), ..pass }
    }

    /// Runs the suite and reads what it found, scenario by scenario.
    pub(super) fn run(&self, place: &Place) -> Outcome<Vec<Scenario>> {
        let directory = place.results.join(self.name.replace([' ', '/'], "-"));
        fs::create_dir_all(&directory).doing("make the directory of the results")?;
        let mut suite = Command::new(&place.node);
        suite.arg(&place.suite).arg("client").arg("--command").arg(&place.client);
        suite.args(["--timeout", TIMEOUT, "--output-dir"]).arg(&directory).args(&self.arguments);
        // Its exit code knows only of failed checks; what counts is read from the results.
        let said = suite.output().doing("start the suite")?;
        let printed = String::from_utf8_lossy(&said.stdout);
        fs::write(directory.join("suite.txt"), &said.stdout).doing("keep what the suite said")?;
        fs::write(directory.join("log.txt"), &said.stderr).doing("keep what the suite said")?;
        let names = match &self.only {
            Some(name) => vec![name.clone()],
            None => results::named_in(&printed),
        };
        results::read(&directory, &names)
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
