//! Everything that is measured of one file.

use std::collections::BTreeSet;

use super::functions::{Function, functions};
use crate::scan::Source;

/// What one production file comes to.
#[derive(Debug, Default)]
pub(super) struct FileMeasure {
    pub(super) lines: usize,
    pub(super) test_lines: usize,
    pub(super) use_lines: usize,
    pub(super) crate_roots: BTreeSet<String>,
    pub(super) public_items: usize,
    pub(super) functions: Vec<Function>,
}

const STANDARD: [&str; 6] = ["std", "core", "alloc", "crate", "self", "super"];
const ITEMS: [&str; 10] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro"];

impl FileMeasure {
    pub(super) fn of(text: &str) -> Self {
        let source = Source::new(text);
        let (production, tests) = split_tests(&source.lines().collect::<Vec<_>>());
        let uses = use_statements(&production);
        Self {
            lines: production.len(),
            test_lines: tests,
            use_lines: uses.iter().map(|statement| statement.lines().count()).sum(),
            crate_roots: crate_roots(&uses, &production),
            public_items: production.iter().filter(|line| is_public_item(line)).count(),
            functions: functions(&production),
        }
    }
}

/// The lines outside `#[cfg(test)]` items, and how many lines those items take.
fn split_tests<'a>(lines: &[&'a str]) -> (Vec<&'a str>, usize) {
    let mut production = Vec::with_capacity(lines.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let length = match line.trim() {
            "#![cfg(test)]" => return (Vec::new(), lines.len()),
            "#[cfg(test)]" => item_length(lines.get(at..).unwrap_or_default()),
            _ => 0,
        };
        if length == 0 {
            production.push(*line);
        }
        at += length.max(1);
    }
    let tests = lines.len() - production.len();
    (production, tests)
}

/// Lines of an item from its first attribute to a brace or semicolon at its own indent.
fn item_length(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = lines.first().map_or(0, |line| indent(line));
    let ends = |line: &&str| {
        let code = line.trim();
        indent(line) == own
            && !code.starts_with('#')
            && (code.starts_with('}') || code.ends_with('}') || code.ends_with(';'))
    };
    lines.iter().position(ends).map_or(lines.len(), |position| position + 1)
}

/// The `use` statements of the file's own level, each with its lines.
fn use_statements(lines: &[&str]) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open: Option<String> = None;
    for line in lines {
        let starts = line.starts_with("use ")
            || (line.starts_with("pub") && line.split_whitespace().nth(1) == Some("use"));
        let mut statement = match open.take() {
            Some(begun) => format!("{begun}\n{line}"),
            None if starts => (*line).to_owned(),
            None => continue,
        };
        if line.trim_end().ends_with(';') {
            statements.push(std::mem::take(&mut statement));
        } else {
            open = Some(statement);
        }
    }
    statements
}

fn crate_roots(uses: &[String], lines: &[&str]) -> BTreeSet<String> {
    let modules: BTreeSet<_> = lines.iter().filter_map(|line| module_name(line)).collect();
    let roots = uses.iter().filter_map(|statement| {
        let (_, path) = statement.split_once("use ")?;
        let path = path.trim_start_matches("::");
        path.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    });
    roots
        .filter(|root| !root.is_empty() && !STANDARD.contains(root) && !modules.contains(root))
        .map(str::to_owned)
        .collect()
}

fn module_name(line: &str) -> Option<&str> {
    let (visibility, rest) = line.split_once("mod ")?;
    let declared = visibility.is_empty() || visibility.starts_with("pub");
    declared.then(|| rest.trim_end_matches([';', ' ', '{', '}']))
}

/// Items of modules stand at the margin (inline modules are rare here); methods and fields do not.
fn is_public_item(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("pub ") else { return false };
    let mut words = rest.split_whitespace().filter(|word| !["async", "unsafe"].contains(word));
    words.next().is_some_and(|word| ITEMS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! Docs.
use std::fs;
pub use inner::{
    A,
};
use serde_json::Value;
use tokio::io;

mod inner;

#[cfg(test)]
use proptest::prelude::*;

pub struct One {
    pub field: u8,
}
pub(crate) struct Two;
impl One {
    pub fn method(&self) {}
}
pub async fn three() {}

#[cfg(test)]
#[expect(x)]
mod tests {
    use super::*;

    fn not_counted() {
    }
}
";

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let file = FileMeasure::of(TEXT);
        assert_eq!(file.lines, TEXT.lines().count() - 10);
        assert_eq!(file.test_lines, 10);
        assert_eq!(file.use_lines, 6);
        assert_eq!(Vec::from_iter(file.crate_roots), ["serde_json", "tokio"]);
        assert_eq!(file.public_items, 2);
        let names: Vec<_> = file.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["method", "three"]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_one_declaration() {
        let file = FileMeasure::of("fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n");
        assert_eq!((file.lines, file.test_lines), (2, 2));
    }
}
