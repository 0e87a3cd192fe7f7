//! `cargo xtask interop`: hosts, servers, launchers and policies together, each combination run really. Prepares
//! what `xtask/interop/matrix.py` needs and starts it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Doing, Failure, Outcome, cargo, succeed};
use crate::test::{kits, peers};
use crate::workspace::Workspace;

/// Where npm puts the reference's own executable.
const REFERENCE: &str = "reference/node_modules/@openai/codex-linux-x64/vendor";

pub(crate) fn run(workspace: &Workspace) -> Outcome {
    let peers = workspace.target.join("peers");
    peers::prepare(workspace, &peers)?;
    succeed(cargo(&workspace.root).args(["build", "--package", "plenipo", "--bin", "plenipo"]))?;
    let kits = kits::install(workspace)?;
    let modules = peers.join("interop-node/node_modules");
    add_sdk(
        &kits.typescript,
        &modules,
        &workspace.root.join("kits/typescript/examples/server.js"),
    )?;
    let example = workspace.root.join("kits/rust");
    let built = workspace.target.join("kits/rust");
    succeed(cargo(&example).args(["build", "--quiet", "--locked", "--target-dir"]).arg(&built))?;
    let mut matrix = Command::new("python3");
    matrix.arg(workspace.root.join("xtask/interop/matrix.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let places = [
        ("--plenipo", workspace.target.join("debug/plenipo")),
        ("--reference", reference(&peers.join(REFERENCE))?),
        ("--peers", peers),
        ("--kits", workspace.target.join("kits")),
        ("--root", workspace.root.clone()),
        ("--rmcp", built.join("debug/plenipo-kit-rust")),
    ];
    for (option, path) in places {
        matrix.arg(option).arg(path);
    }
    succeed(&mut matrix)
}

/// Puts the example beside the installed kit, and the SDK where it finds it.
fn add_sdk(kit: &Path, modules: &Path, example: &Path) -> Outcome {
    fs::copy(example, kit.join("server.js")).doing("copy the example server")?;
    fs::write(kit.join("package.json"), r#"{"type":"module"}"#).doing("write a package")?;
    for name in ["@modelcontextprotocol", "zod"] {
        let link = kit.join("node_modules").join(name);
        symlink(modules.join(name), link).doing("link the SDK")?;
    }
    Ok(())
}

fn reference(vendor: &Path) -> Outcome<PathBuf> {
    let entries = fs::read_dir(vendor).doing(&format!("look into {}", vendor.display()))?;
    let mut programs = entries.flatten().map(|entry| entry.path().join("bin/codex"));
    programs.find(|path| path.is_file()).ok_or_else(|| {
        Failure::new(format!("there is no reference CLI for this machine in {}", vendor.display()))
    })
}
