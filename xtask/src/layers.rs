//! Which crate may use which, and where unsafe code may be: the table of `ARCHITECTURE.md`, checked.

use std::fs;

use crate::run::{Doing, Failure, Outcome};
use crate::scan::Source;
use crate::workspace::{Package, Workspace};

/// Crate → the crates of this workspace it may use in normal and build dependencies. Tests may use
/// `testkit` and whatever they drive.
const TABLE: &[(&str, &[&str])] = &[
    ("authority", &[]),
    ("redact", &[]),
    ("policy", &[]),
    ("wire", &[]),
    ("schema", &["redact", "wire"]),
    ("process", &["authority", "redact"]),
    ("filter", &[]),
    ("launch", &["filter", "policy"]),
    ("egress", &["policy"]),
    ("http", &["redact", "wire"]),
    ("oauth", &["redact"]),
    ("credentials", &["oauth", "redact"]),
    ("enterprise", &["oauth", "credentials", "redact"]),
    ("authorizer", &["authority", "wire", "http", "oauth", "credentials", "enterprise", "redact"]),
    (
        "connect",
        &["authority", "wire", "schema", "process", "http", "authorizer", "oauth", "redact"],
    ),
    ("server-workspace", &["authority", "wire"]),
    ("keeper", &["launch", "process"]),
    ("trace", &["launch", "policy"]),
    ("console", &["config", "connect", "keeper", "launch", "oauth", "policy", "wire"]),
    ("config", &["connect", "oauth", "redact"]),
    ("gateway", &["connect", "authority", "wire", "oauth", "redact"]),
    ("cli", EVERYTHING),
    ("testkit", &[]),
    ("conformance-client", EVERYTHING),
    ("measure", &["connect", "wire"]),
    ("xtask", &[]),
];

const EVERYTHING: &[&str] = &[
    "authority",
    "redact",
    "policy",
    "wire",
    "schema",
    "process",
    "filter",
    "launch",
    "egress",
    "http",
    "oauth",
    "credentials",
    "enterprise",
    "authorizer",
    "config",
    "connect",
    "keeper",
    "trace",
    "console",
    "server-workspace",
    "gateway",
];

/// `authority` is what server authors take: it stays this small.
const MOST_AUTHORITY_DEPENDENCIES: usize = 4;

/// Prints one line a crate; fails with every violation named.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut violations = Vec::new();
    for package in &workspace.packages {
        let mut found = dependencies(package, workspace);
        found.extend(unsafe_code(package, workspace)?);
        if found.is_empty() {
            println!("layers: {} ok", package.short_name());
        }
        violations.extend(found);
    }
    for violation in &violations {
        println!("layers: {violation}");
    }
    match violations.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} violation(s) of the layers, listed above"))),
    }
}

fn dependencies(package: &Package, workspace: &Workspace) -> Vec<String> {
    let name = package.short_name();
    let Some((_, allowed)) = TABLE.iter().find(|(row, _)| *row == name) else {
        return vec![format!("{name} is not in the table of xtask/src/layers.rs")];
    };
    let own = |dependency: &str| {
        workspace.packages.iter().find(|p| p.name == dependency).map(Package::short_name)
    };
    let used = package.depends_on(None).chain(package.depends_on(Some("build")));
    let mut violations: Vec<_> = used
        .filter_map(own)
        .filter(|used| !allowed.contains(used))
        .map(|used| format!("{name} may not use {used}"))
        .collect();
    let count = package.depends_on(None).count();
    if name == "authority" && count > MOST_AUTHORITY_DEPENDENCIES {
        violations.push(format!(
            "authority has {count} direct dependencies, at most {MOST_AUTHORITY_DEPENDENCIES}"
        ));
    }
    violations
}

/// Unsafe code is in `launch/src/sys` only, and every other crate forbids it in its root.
fn unsafe_code(package: &Package, workspace: &Workspace) -> Outcome<Vec<String>> {
    let launch = package.short_name() == "launch";
    let source = package.directory().join("src");
    let mut violations = Vec::new();
    for path in package.rust_files()? {
        let shown = workspace.relative(&path);
        let text = fs::read_to_string(&path).doing(&format!("read {shown}"))?;
        let code = Source::new(&text);
        let root = [source.join("lib.rs"), source.join("main.rs")].contains(&path);
        let forbids = code.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
        if root && !launch && !forbids {
            violations.push(format!("{shown} lacks #![forbid(unsafe_code)]"));
        }
        let sys = launch && (path.starts_with(source.join("sys")) || path == source.join("sys.rs"));
        if let Some(number) = code.lines().position(is_unsafe).filter(|_| !sys) {
            violations.push(format!("{shown}:{}: unsafe code outside launch/src/sys", number + 1));
        }
    }
    Ok(violations)
}

/// Whether a line of code, free of comments and strings, has unsafe code or lets it in.
fn is_unsafe(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let lets_in = line.contains("allow(") || line.contains("expect(");
    words.any(|word| word == "unsafe" || (lets_in && word == "unsafe_code"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_told_from_its_names() {
        let unsafe_lines = [
            "    unsafe { f() }",
            "unsafe impl Send for X {}",
            "pub unsafe fn f() {",
            "#[expect(unsafe_code, reason = \"\")]",
        ];
        assert!(unsafe_lines.into_iter().all(is_unsafe));
        assert!(!is_unsafe("#![forbid(unsafe_code)]"));
        assert!(!is_unsafe("fn unsafe_code(package: &Package) {"));
    }

    #[test]
    fn every_name_in_the_table_has_a_row() {
        for (name, allowed) in TABLE {
            assert!(allowed.iter().all(|used| TABLE.iter().any(|(row, _)| row == used)), "{name}");
        }
    }
    fn workspace(authority: &str, launch: &str) -> Workspace {
        let package = |name: &str, dependencies: &str| {
            let manifest = format!("/w/{name}/Cargo.toml");
            format!(
                r#"{{"name":"{name}","manifest_path":"{manifest}","dependencies":[{dependencies}]}}"#
            )
        };
        let packages = [
            package("plenipo-authority", authority),
            package("plenipo-launch", launch),
            package("plenipo-policy", ""),
            package("plenipo-testkit", ""),
        ];
        let packages = packages.join(",");
        let text = format!(
            r#"{{"workspace_root":"/w","target_directory":"/w/t","packages":[{packages}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn violations(authority: &str, launch: &str) -> Vec<String> {
        let workspace = workspace(authority, launch);
        workspace.packages.iter().flat_map(|package| dependencies(package, &workspace)).collect()
    }

    #[test]
    fn a_dependency_that_points_up_is_named_and_a_test_may_have_it() {
        let on = |name: &str, kind: &str| format!(r#"{{"name":"{name}","kind":{kind}}}"#);
        assert!(violations("", &on("plenipo-policy", "null")).is_empty());
        assert!(violations(&on("plenipo-testkit", "\"dev\""), "").is_empty());
        let up = violations(&on("plenipo-launch", "null"), &on("plenipo-testkit", "\"build\""));
        assert_eq!(up, ["authority may not use launch", "launch may not use testkit"]);
    }

    #[test]
    fn authority_stays_small() {
        let five = [r#"{"name":"x","kind":null}"#; 5].join(",");
        assert_eq!(violations(&five, ""), ["authority has 5 direct dependencies, at most 4"]);
        assert!(violations("", &five).is_empty());
    }
}
