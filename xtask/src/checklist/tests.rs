//! Which tests there are, and where.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Doing, Outcome};
use crate::scan::Source;
use crate::workspace::Workspace;

/// Every test function of the workspace, by name.
#[derive(Debug, Default)]
pub(super) struct Tests {
    places: BTreeMap<String, Vec<PathBuf>>,
}

impl Tests {
    pub(super) fn find(workspace: &Workspace) -> Outcome<Self> {
        let mut tests = Self::default();
        for package in &workspace.packages {
            for path in package.rust_files()? {
                let text = fs::read_to_string(&path)
                    .doing(&format!("read {}", workspace.relative(&path)))?;
                tests.add(&path, &text);
            }
        }
        Ok(tests)
    }

    /// The files that have a test of this name.
    pub(super) fn places(&self, name: &str) -> &[PathBuf] {
        self.places.get(name).map_or(&[], Vec::as_slice)
    }

    /// A test is a function below a `#[test]`, `#[tokio::test]` or the like.
    fn add(&mut self, path: &Path, text: &str) {
        let mut is_test = false;
        for line in Source::new(text).lines() {
            let line = line.trim();
            match line {
                "" => {}
                _ if line.starts_with("#[") => {
                    is_test |= line.starts_with("#[test]") || line.contains("::test");
                }
                _ => {
                    if let Some(name) = function_name(line).filter(|_| is_test) {
                        self.places.entry(name.to_owned()).or_default().push(path.to_owned());
                    }
                    is_test = false;
                }
            }
        }
    }
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod inner {
    use super::*;

    #[test]
    fn only_functions_below_a_test_attribute_are_tests() {
        let mut tests = Tests::default();
        let text = "
#[test]
fn one() {}

#[tokio::test(flavor = \"multi_thread\")]
#[expect(dead_code)]
async fn two() {
    let text = \"fn four() {}\";
}

#[derive(Debug)]
fn three() {}
// #[test]
fn five() {}
";
        tests.add(Path::new("a.rs"), text);
        assert_eq!(tests.places.keys().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(tests.places("one"), [PathBuf::from("a.rs")]);
        assert!(tests.places("three").is_empty());
    }
}
