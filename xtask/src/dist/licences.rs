//! The licences of everything that is linked into the release, in one text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::run::{Doing, Failure, Outcome, cargo, output};
use crate::workspace::Workspace;

/// What a file with a licence is called, in upper case.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
/// What else is in a static executable: not in `cargo metadata`.
const RUNTIME: &str = "\
The Rust standard library is licensed under MIT OR Apache-2.0, with parts under other permissive licences:
https://github.com/rust-lang/rust/blob/master/COPYRIGHT

musl, the C library, is licensed under MIT (https://musl.libc.org/):

Copyright © 2005-2020 Rich Felker, et al.

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the \"Software\"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

/// `None` for a normal dependency, else `dev` or `build`.
#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// One section a package, sorted by name; fails for a package without a licence or its text.
pub(super) fn of(workspace: &Workspace, program: &str, triple: &str) -> Outcome<String> {
    let mut ask = cargo(&workspace.root);
    ask.args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple]);
    let metadata: Metadata = serde_json::from_str(&output(&mut ask)?)
        .map_err(|error| Failure::new(format!("read `cargo metadata`: {error}")))?;
    let linked = linked(&metadata, program)?;
    let mut text = format!("What {program} is linked with.\n\n{RUNTIME}");
    let mut packages: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some() && linked.contains(package.id.as_str()))
        .collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    for package in packages {
        section(&mut text, package)?;
    }
    Ok(text)
}

/// The program's package and everything that its normal dependencies lead to.
fn linked<'a>(metadata: &'a Metadata, program: &str) -> Outcome<BTreeSet<&'a str>> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let root = metadata.packages.iter().find(|package| package.name == program);
    let root = root.ok_or_else(|| Failure::new(format!("no package `{program}`")))?;
    let mut found = BTreeSet::new();
    let mut waiting = vec![root.id.as_str()];
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        let edges = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
        let is_normal = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
        waiting.extend(edges.iter().filter(is_normal).map(|edge| edge.pkg.as_str()));
    }
    Ok(found)
}

fn section(text: &mut String, package: &Package) -> Outcome {
    let Package { name, version, license, repository, manifest_path, .. } = package;
    let missing = |what: &str| Failure::new(format!("{name} {version} has no {what}"));
    let licence = license.as_deref().ok_or_else(|| missing("licence"))?;
    let from = repository.as_deref().unwrap_or("crates.io");
    let line = "-".repeat(78);
    // Writing to a string does not fail.
    write!(text, "\n{line}\n{name} {version}: {licence}\n{from}\n{line}\n").unwrap_or(());
    let texts = texts(manifest_path.parent().unwrap_or(manifest_path))?;
    if texts.is_empty() {
        text.push_str("\nThe package holds no text of its licence.\n");
    }
    for licence in texts {
        text.push('\n');
        text.push_str(licence.trim_end());
        text.push('\n');
    }
    Ok(())
}

fn texts(directory: &Path) -> Outcome<Vec<String>> {
    let what = format!("list {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).doing(&what)? {
        let path = entry.doing(&what)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|known| name.starts_with(known)) {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).doing(&format!("read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_what_normal_dependencies_lead_to() {
        let text = r#"{
            "packages": [
                {"id": "p", "name": "plenipo", "version": "1", "manifest_path": "/p/Cargo.toml"},
                {"id": "a", "name": "a", "version": "1", "manifest_path": "/a/Cargo.toml"}
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [
                    {"pkg": "a", "dep_kinds": [{"kind": null}]},
                    {"pkg": "t", "dep_kinds": [{"kind": "dev"}]}
                ]},
                {"id": "a", "deps": [
                    {"pkg": "b", "dep_kinds": [{"kind": "build"}, {"kind": null}]},
                    {"pkg": "c", "dep_kinds": [{"kind": "build"}]}
                ]},
                {"id": "b", "deps": []}
            ]}
        }"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        let found: Vec<&str> = linked(&metadata, "plenipo").unwrap().into_iter().collect();
        assert_eq!(found, ["a", "b", "p"]);
        assert!(linked(&metadata, "other").is_err());
    }

    #[test]
    fn a_package_without_a_licence_is_refused() {
        let text = r#"{"id": "a", "name": "a", "version": "1", "manifest_path": "/a/Cargo.toml"}"#;
        let package: Package = serde_json::from_str(text).unwrap();
        let failure = section(&mut String::new(), &package).unwrap_err().to_string();
        assert_eq!(failure, "a 1 has no licence");
    }
}
