//! Reading what the suite left behind: a directory a scenario, with its checks and what the client
//! printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::run::{Doing, Failure, Outcome};

/// A directory is named after the scenario and the time: `tools_call-2026-11-30T14-41-49-123Z`.
const TIME: usize = "-2026-11-30T14-41-49-123Z".len();

/// One scenario that was run.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) checks: Vec<Check>,
    /// How the client says it ended; empty when it says nothing.
    pub(super) client: String,
}

/// One check of a scenario.
#[derive(Debug, Deserialize)]
pub(super) struct Check {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) status: Status,
    description: String,
    #[serde(rename = "errorMessage")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

impl Check {
    /// Why it did not pass.
    pub(super) fn message(&self) -> &str {
        self.error.as_deref().unwrap_or(&self.description)
    }
}

impl Scenario {
    pub(super) fn with(&self, status: Status) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.status == status)
    }

    pub(super) fn client_ended_well(&self) -> bool {
        self.client == "client: ok"
    }
}

/// The scenarios of a suite's summary; those it skips for the revision are not among them.
pub(super) fn named_in(printed: &str) -> Vec<String> {
    let after = printed.split("=== SUITE SUMMARY ===").nth(1).unwrap_or_default();
    let lines = after.lines().take_while(|line| !line.starts_with("Total:"));
    let names = lines.filter_map(|line| {
        let rest = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
        rest.rsplit_once(": ").map(|(name, _)| name.to_owned())
    });
    names.collect()
}

/// What was found about `names`; a scenario without results has none of its checks.
pub(super) fn read(directory: &Path, names: &[String]) -> Outcome<Vec<Scenario>> {
    if names.is_empty() {
        let log = directory.join("log.txt");
        return Err(Failure::new(format!("the suite ran no scenario: see {}", log.display())));
    }
    let mut found = BTreeMap::new();
    collect(directory, directory, &mut found)?;
    names.iter().map(|name| scenario(name, found.get(name))).collect()
}

fn scenario(name: &str, directory: Option<&PathBuf>) -> Outcome<Scenario> {
    let name = name.to_owned();
    let Some(directory) = directory else {
        return Ok(Scenario { name, checks: Vec::new(), client: String::new() });
    };
    let text = fs::read_to_string(directory.join("checks.json")).doing("read the checks")?;
    let checks = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("read the checks of `{name}`: {error}")))?;
    let printed = fs::read_to_string(directory.join("stdout.txt")).doing("read the output")?;
    let client = printed.lines().last().unwrap_or_default().to_owned();
    Ok(Scenario { name, checks, client })
}

/// Directories with checks below `directory`, by scenario; names of scenarios have slashes.
fn collect(root: &Path, directory: &Path, found: &mut BTreeMap<String, PathBuf>) -> Outcome {
    for entry in fs::read_dir(directory).doing("list the results")? {
        let path = entry.doing("list the results")?.path();
        if path.join("checks.json").is_file() {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let end = name.len().saturating_sub(TIME);
            found.insert(name.get(..end).unwrap_or(&name).to_owned(), path);
        } else if path.is_dir() {
            collect(root, &path, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_read_from_the_summary() {
        let printed = "✓ no: 1\n=== SUITE SUMMARY ===\n\n✓ tools_call: 2 passed, 0 failed\n\
                       ✗ auth/x: 0 passed, 1 failed, 2 warnings\n- old: skipped\n\nTotal: 2 passed\n";
        assert_eq!(named_in(printed), ["tools_call", "auth/x"]);
    }

    #[test]
    fn a_check_that_did_not_pass_says_why() {
        let text = r#"[{"id":"a","name":"A","description":"does","status":"SKIPPED"},
            {"id":"b","name":"B","description":"does","status":"FAILURE","errorMessage":"no","x":1}]"#;
        let checks: Vec<Check> = serde_json::from_str(text).unwrap();
        assert_eq!(checks[0].message(), "does");
        assert_eq!((checks[1].status, checks[1].message()), (Status::Failure, "no"));
    }
}
