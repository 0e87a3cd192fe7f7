//! Rows as text: `ID | what is required | tests | why there is none`.

use crate::run::{Failure, Outcome};

/// Rows under one title.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

/// One requirement.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) proofs: Vec<Proof>,
    /// Why a test is missing, when one may.
    pub(super) why: Option<String>,
}

/// What shows that a requirement is met.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Test(String),
    /// A scenario of the official suite.
    Scenario(String),
}

/// Reads the rows; a line that is none is an error.
pub(super) fn parse(text: &str) -> Outcome<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let bad = |what: &str| {
            Failure::new(format!("line {} of the checklist {what}", number.saturating_add(1)))
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("= ") {
            parts.push(Part { title: title.to_owned(), rows: Vec::new() });
            continue;
        }
        let part = parts.last_mut().ok_or_else(|| bad("is before the first title"))?;
        let row = row(line).ok_or_else(|| bad("is no row"))?;
        if row.proofs.is_empty() && row.why.is_none() {
            return Err(bad("has neither a test nor a reason"));
        }
        part.rows.push(row);
    }
    Ok(parts)
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.split('|').map(str::trim);
    let (id, what) = (cells.next()?, cells.next()?);
    let proofs = cells.next()?.split(',').map(str::trim).filter(|name| !name.is_empty());
    let proofs = proofs
        .map(|name| match name.strip_prefix("conformance:") {
            Some(scenario) => Proof::Scenario(scenario.to_owned()),
            None => Proof::Test(name.to_owned()),
        })
        .collect();
    let why = cells.next().filter(|why| !why.is_empty()).map(str::to_owned);
    let is_row = !id.is_empty() && !what.is_empty() && cells.next().is_none();
    is_row.then(|| Row { id: id.to_owned(), what: what.to_owned(), proofs, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_tests_and_scenarios_or_a_reason() {
        let text = "# note\n= One\nV1 | Does. | a, conformance:b\nV2 | Does. | | because\n";
        let parts = parse(text).unwrap();
        assert_eq!((parts[0].title.as_str(), parts[0].rows.len()), ("One", 2));
        let proofs = [Proof::Test("a".to_owned()), Proof::Scenario("b".to_owned())];
        assert_eq!(parts[0].rows[0].proofs, proofs);
        assert_eq!(parts[0].rows[1].why.as_deref(), Some("because"));
        for bad in ["V1 | x | a\n", "= T\nV1 | x\n", "= T\nV1 | x |\n", "= T\nV1 | x | a | b | c\n"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
