//! From checks to verdicts.

use std::fmt;

use super::passes::Pass;
use super::results::{Check, Scenario, Status};
use crate::run::{Failure, Outcome};

/// Scenarios in which a client may well end with an error: what it meets is broken on purpose.
const MAY_FAIL: &[&str] = &[
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "http-invalid-tool-headers",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// Checks that nothing can exercise: (scenario, name of the check, why).
const CANNOT_APPLY: &[(&str, &str, &str)] = &[
    (
        "http-standard-headers",
        "ClientMcpMethodHeader_initialize",
        "revision 2026-07-28 has no initialize",
    ),
    (
        "http-standard-headers",
        "ClientMcpMethodHeader_notifications_initialized",
        "revision 2026-07-28 has no initialize",
    ),
];

/// Every scenario of every pass.
#[derive(Debug)]
pub(super) struct Report {
    rows: Vec<(String, Scenario)>,
}

/// What a scenario came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Warnings,
    Skipped,
}

impl Report {
    pub(super) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    pub(super) fn add(&mut self, pass: &Pass, scenarios: Vec<Scenario>) {
        self.rows.extend(scenarios.into_iter().map(|scenario| (pass.to_string(), scenario)));
    }

    /// Fails when a scenario that has to pass did not.
    pub(super) fn verdict(&self) -> Outcome {
        match self.rows.iter().filter(|(_, row)| Self::judge(row) != Verdict::Passed).count() {
            0 => Ok(()),
            count => Err(Failure::new(format!("conformance: {count} scenario(s) did not pass"))),
        }
    }

    fn judge(scenario: &Scenario) -> Verdict {
        let has = |status| scenario.with(status).next().is_some();
        let ended = scenario.client_ended_well() || MAY_FAIL.contains(&scenario.name.as_str());
        if has(Status::Failure) || !has(Status::Success) || !ended {
            Verdict::Failed
        } else if has(Status::Warning) {
            Verdict::Warnings
        } else if scenario.with(Status::Skipped).any(|check| why(scenario, check).is_none()) {
            Verdict::Skipped
        } else {
            Verdict::Passed
        }
    }
}

/// Why a skipped check cannot apply; `None` when it could.
fn why(scenario: &Scenario, check: &Check) -> Option<&'static str> {
    let row = CANNOT_APPLY.iter().find(|(name, of, _)| *name == scenario.name && *of == check.name);
    row.map(|(_, _, why)| *why)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pass = "";
        for (of, scenario) in &self.rows {
            if of != pass {
                writeln!(f, "\n=== {of}")?;
                pass = of;
            }
            let verdict = Self::judge(scenario);
            let passed = scenario.with(Status::Success).count();
            writeln!(f, "{verdict:<9} {:<44} {passed:>3} checks", scenario.name)?;
            explain(f, scenario)?;
        }
        writeln!(f, "\n=== summary")?;
        for verdict in Verdict::ALL {
            let count = self.rows.iter().filter(|(_, row)| Self::judge(row) == verdict).count();
            writeln!(f, "{verdict:<9} {count:>3}")?;
        }
        Ok(())
    }
}

fn explain(f: &mut fmt::Formatter<'_>, scenario: &Scenario) -> fmt::Result {
    if !scenario.client_ended_well() {
        let said = if scenario.client.is_empty() { "nothing" } else { scenario.client.as_str() };
        writeln!(f, "            client's last line: {said}")?;
    }
    for (status, word) in
        [(Status::Failure, "failed"), (Status::Warning, "warning"), (Status::Skipped, "skipped")]
    {
        for check in scenario.with(status) {
            let message = why(scenario, check).unwrap_or_else(|| check.message());
            writeln!(f, "            {word} {} ({}): {message}", check.id, check.name)?;
        }
    }
    Ok(())
}

impl Verdict {
    const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Warnings, Self::Skipped];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Warnings => "WARNINGS",
            Self::Skipped => "SKIPPED",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, checks: &str, client: &str) -> Scenario {
        let checks = serde_json::from_str(checks).unwrap();
        Scenario { name: name.to_owned(), checks, client: client.to_owned() }
    }

    fn check(name: &str, status: &str) -> String {
        format!(r#"{{"id":"i","name":"{name}","description":"d","status":"{status}"}}"#)
    }

    fn judged(name: &str, checks: &[(&str, &str)], client: &str) -> Verdict {
        let checks: Vec<_> = checks.iter().map(|(name, status)| check(name, status)).collect();
        let scenario = scenario(name, &format!("[{}]", checks.join(",")), client);
        Report::judge(&scenario)
    }

    #[test]
    fn a_scenario_passes_only_without_anything_left_to_say() {
        let good = ("A", "SUCCESS");
        let of = |second, client| judged("s", &[good, ("B", second)], client);
        assert_eq!(of("INFO", "client: ok"), Verdict::Passed);
        assert_eq!(of("INFO", "client: failed to connect"), Verdict::Failed);
        assert_eq!(of("FAILURE", "client: ok"), Verdict::Failed);
        assert_eq!(of("WARNING", "client: ok"), Verdict::Warnings);
        assert_eq!(of("SKIPPED", "client: ok"), Verdict::Skipped);
        assert_eq!(judged("s", &[], "client: ok"), Verdict::Failed);
    }

    #[test]
    fn what_cannot_apply_is_no_skip_and_a_refusal_may_be_right() {
        let checks = [("A", "SUCCESS"), ("ClientMcpMethodHeader_initialize", "SKIPPED")];
        assert_eq!(judged("http-standard-headers", &checks, "client: ok"), Verdict::Passed);
        assert_eq!(judged("another", &checks, "client: ok"), Verdict::Skipped);
        let checks = [("A", "SUCCESS")];
        assert_eq!(judged("auth/iss-unexpected", &checks, ""), Verdict::Passed);
    }
}
