//! `cargo xtask checklist`: docs/conformance.md, from the rows in `xtask/checklist.txt` and the tests
//! in the sources. A row names its tests; a name that no test has is a failure, unless the row says
//! why.

mod rows;
mod tests;

use std::fs;
use std::path::Path;

use crate::run::{Doing, Failure, Outcome};
use crate::workspace::Workspace;
use rows::{Part, Proof, Row};
use tests::Tests;

const ROWS: &str = "xtask/checklist.txt";
const PAGE: &str = "docs/conformance.md";
const HEAD: &str = "\
# Conformance

What a client of the Model Context Protocol has to do, and the test that shows that Plenipo does it.
*Modern* is revision 2026-07-28, *legacy* are the revisions up to 2025-11-25. This page is made by
`cargo xtask checklist`, which finds each test in the sources; `cargo xtask test` fails when a named test
is gone or the page is out of date.

The client scenarios of the official conformance suite run with `cargo xtask conformance`, at both
revisions; add `--scenario NAME` for one.
";

/// Writes the page, or only compares.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Outcome {
    match words {
        [] => write(workspace),
        [word] if word == "--check" => check(workspace),
        [word, ..] => Err(Failure::new(format!("unexpected argument `{word}`"))),
    }
}

/// Fails when a named test is gone or the page is not what would be written. A row with a reason may
/// have got its test meanwhile: the page then says less than there is, which harms nobody.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let parts = parts(workspace)?;
    let page = page(workspace, &parts)?;
    let present =
        fs::read_to_string(workspace.root.join(PAGE)).doing("read docs/conformance.md")?;
    match is_current(&present, &page, &parts) {
        true => Ok(()),
        false => Err(Failure::new(format!("{PAGE} is out of date: run `cargo xtask checklist`"))),
    }
}

fn is_current(present: &str, page: &str, parts: &[Part]) -> bool {
    let rows = || parts.iter().flat_map(|part| &part.rows).filter(|row| row.why.is_some());
    let has_reason = |line: &str| rows().any(|row| line.starts_with(&format!("| {} | ", row.id)));
    let fixed = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !has_reason(line)).map(str::to_owned).collect()
    };
    fixed(present) == fixed(page)
}

fn write(workspace: &Workspace) -> Outcome {
    let page = page(workspace, &parts(workspace)?)?;
    fs::write(workspace.root.join(PAGE), &page).doing("write docs/conformance.md")?;
    println!("{PAGE}: {} lines", page.lines().count());
    Ok(())
}

fn parts(workspace: &Workspace) -> Outcome<Vec<Part>> {
    rows::parse(&fs::read_to_string(workspace.root.join(ROWS)).doing("read the rows")?)
}

fn page(workspace: &Workspace, parts: &[Part]) -> Outcome<String> {
    let tests = Tests::find(workspace)?;
    let missing = missing(parts, &tests);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Failure::new(format!("{ROWS} names tests that are not there: {missing}")));
    }
    Ok(render(parts, &tests, &workspace.root))
}

/// Tests that rows name, that do not exist, and about which the row says nothing.
fn missing(parts: &[Part], tests: &Tests) -> Vec<String> {
    let rows = parts.iter().flat_map(|part| &part.rows).filter(|row| row.why.is_none());
    let named = rows.flat_map(|row| row.proofs.iter().map(move |proof| (row, proof)));
    let gone = named.filter_map(|(row, proof)| match proof {
        Proof::Test(name) if tests.places(name).is_empty() => Some(format!("{name} ({})", row.id)),
        _ => None,
    });
    gone.collect()
}

fn render(parts: &[Part], tests: &Tests, root: &Path) -> String {
    let mut page = vec![HEAD.to_owned()];
    for Part { title, rows } in parts {
        page.push(format!("\n## {title}\n\n| row | what | shown by |\n|---|---|---|\n"));
        for row in rows {
            let shown = shown_by(row, tests, root);
            page.push(format!("| {} | {} | {shown} |\n", row.id, row.what));
        }
    }
    page.concat()
}

fn shown_by(row: &Row, tests: &Tests, root: &Path) -> String {
    let shown = row.proofs.iter().filter_map(|proof| match proof {
        Proof::Scenario(name) => Some(format!("scenario `{name}`")),
        Proof::Test(name) => {
            let places = tests.places(name);
            let first = places.first()?.strip_prefix(root).ok()?.display().to_string();
            Some(format!("`{name}` ([{first}](../{first}))"))
        }
    });
    let shown: Vec<_> = shown.collect();
    match (&row.why, shown.len() < row.proofs.len() || shown.is_empty()) {
        (Some(why), true) if shown.is_empty() => format!("no test: {why}"),
        (Some(why), true) => format!("{}; for the rest no test: {why}", shown.join(", ")),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod inner {
    use super::*;

    #[test]
    fn only_a_row_with_a_reason_may_lag_behind() {
        let parts = rows::parse("= T\nA1 | x | a | because\nA2 | x | b\n").unwrap();
        let page = "# T\n| A1 | x | `a` |\n| A2 | x | `b` |\n";
        assert!(is_current(page, page, &parts));
        assert!(is_current(&page.replace("`a`", "no test: because"), page, &parts));
        assert!(!is_current(&page.replace("`b`", "`c`"), page, &parts));
        assert!(!is_current(&page.replace("# T", "# U"), page, &parts));
    }
}
