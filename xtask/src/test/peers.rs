//! Real MCP servers to test against, in pinned versions, below `target/peers`.
//!
//! `python/` and `pytest/` are virtual environments, `node/` an npm prefix; `interop-python/` and
//! `interop-node/` are those of SDKs for the servers in `crates/connect/tests/data/interop`, `interop-rust/`
//! has the one of them that is compiled; `oidc/` is for the provider in `crates/cli/tests/data`; `reference/`
//! is one of its own for the reference CLI, which is large. A `stamp` file holds the versions; nothing is
//! fetched while it says what is wanted.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{Doing, Outcome, cargo, succeed};
use crate::workspace::Workspace;

const FROM_PYPI: &[&str] =
    &["mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19"];
const FROM_NPM: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];
/// SDKs of which tests have small servers; newer than those of the servers above.
const SDKS_FROM_PYPI: &[&str] = &["mcp==2.3.0", "fastmcp==4.2.3"];
const SDKS_FROM_NPM: &[&str] = &["@modelcontextprotocol/server@2.4.0", "zod@4.6.7"];
/// An OpenID provider, in front of a server of the SDK.
const OIDC: &[&str] = &["oidc-provider@9.13.3", "@modelcontextprotocol/server@2.4.0", "zod@4.6.7"];
/// Not a server: for tests that run real builds.
const PYTEST: &[&str] = &["pytest==9.2.0"];
/// The version whose wire captures are test data.
const REFERENCE: &[&str] = &["@openai/codex@0.171.0"];

/// Compiled apart: what it needs is no part of this workspace.
const RUST_SERVER: &str = "crates/connect/tests/data/interop/rmcp";

pub(crate) fn prepare(workspace: &Workspace, directory: &Path) -> Outcome {
    let from_pypi = [("python", FROM_PYPI), ("pytest", PYTEST), ("interop-python", SDKS_FROM_PYPI)];
    for (name, packages) in from_pypi {
        prepare_one(&directory.join(name), packages, |place| {
            succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place))?;
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            succeed(Command::new(place.join("bin/python3")).args(pip).args(packages))
        })?;
    }
    let from_npm_too = [
        ("node", FROM_NPM),
        ("interop-node", SDKS_FROM_NPM),
        ("oidc", OIDC),
        ("reference", REFERENCE),
    ];
    for (name, packages) in from_npm_too {
        from_npm(&directory.join(name), packages)?;
    }
    from_crates(&workspace.root.join(RUST_SERVER), &directory.join("interop-rust"))
}

/// The program of the package at `source`, in `bin` below `place`.
pub(crate) fn from_crates(source: &Path, place: &Path) -> Outcome {
    let read = |file| fs::read_to_string(source.join(file)).doing(&format!("read {file}"));
    let [lock, program] = [read("Cargo.lock")?, read("src/main.rs")?];
    prepare_one(place, &[&lock, &program], |place| {
        let mut install = cargo(source);
        install.args(["install", "--quiet", "--locked", "--debug", "--force", "--path", "."]);
        install.arg("--root").arg(place).arg("--target-dir").arg(place.join("target"));
        succeed(&mut install)?;
        fs::remove_dir_all(place.join("target")).doing("remove what it was built of")
    })
}

/// An npm prefix with exactly these packages.
pub(crate) fn from_npm(place: &Path, packages: &[&str]) -> Outcome {
    prepare_one(place, packages, |place| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix"]);
        succeed(npm.arg(place).args(packages))
    })
}

fn prepare_one(place: &Path, wanted: &[&str], install: impl Fn(&Path) -> Outcome) -> Outcome {
    let stamp = place.join("stamp");
    let wanted = wanted.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
        println!("{} is there: {}", place.display(), wanted.lines().next().unwrap_or_default());
        return Ok(());
    }
    fs::create_dir_all(place).doing(&format!("make {}", place.display()))?;
    install(place)?;
    fs::write(&stamp, wanted).doing("write the stamp of the peers")
}
