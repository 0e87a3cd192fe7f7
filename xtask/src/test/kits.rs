//! The kits for server authors: their own tests, on what `pip` and `npm` make of them where those may
//! fetch, else on the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Doing, Failure, Outcome, output, succeed};
use crate::test::from_npm;
use crate::workspace::Workspace;

/// What checks declarations of types.
const COMPILER: &[&str] = &["typescript@7.0.2", "@types/node@26.6.7"];

/// Where the kits are installed as packages: a directory of Python modules, and a directory with a
/// `node_modules`.
pub(crate) struct Kits {
    pub(crate) python: PathBuf,
    pub(crate) typescript: PathBuf,
}

/// Packs and installs both kits anew, with `pip install` and `npm pack`.
pub(crate) fn install(workspace: &Workspace) -> Outcome<Kits> {
    let place = workspace.target.join("kits");
    if place.exists() {
        fs::remove_dir_all(&place).doing("remove the kits of the last run")?;
    }
    let kits = Kits { python: place.join("python"), typescript: place.join("typescript") };
    fs::create_dir_all(&kits.typescript).doing("make a place for the kits")?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--root-user-action=ignore", "--target"]).arg(&kits.python);
    // A copy, because building leaves files beside the sources.
    let sources = place.join("python-sources");
    succeed(Command::new("cp").arg("-r").arg(workspace.root.join("kits/python")).arg(&sources))?;
    succeed(pip.arg(&sources))?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(&place);
    let name = output(pack.current_dir(workspace.root.join("kits/typescript")))?;
    let archive = place.join(name.trim());
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--offline", "--loglevel=error", "--prefix"]);
    succeed(npm.arg(&kits.typescript).arg(archive))?;
    Ok(kits)
}

/// Runs both kits' tests; `packed` tests what is installed from the packages.
pub(crate) fn test(workspace: &Workspace, packed: bool) -> Outcome {
    let kits = workspace.root.join("kits");
    if !packed {
        println!("`--peers` also packs and installs them");
        python(&kits.join("python"), &kits.join("python/src"))?;
        return node(&kits.join("typescript"));
    }
    let installed = install(workspace)?;
    python(&kits.join("python"), &installed.python)?;
    // The tests import the package by its name, which inside it means its sources.
    let tests = installed.typescript.join("kit/test");
    fs::create_dir_all(&tests).doing("make a place for tests")?;
    copy(&kits.join("vectors.json"), &installed.typescript.join("vectors.json"))?;
    for name in ["vectors.test.js", "process.test.js"] {
        copy(&kits.join("typescript/test").join(name), &tests.join(name))?;
    }
    fs::write(installed.typescript.join("kit/package.json"), r#"{"type":"module"}"#)
        .doing("write a package for tests")?;
    types(workspace, &installed)?;
    node(&installed.typescript.join("kit"))
}

/// The declarations allow what a server in TypeScript writes, and refuse what they should.
fn types(workspace: &Workspace, installed: &Kits) -> Outcome {
    let tools = workspace.target.join("peers/types");
    from_npm(&tools, COMPILER)?;
    let check = installed.typescript.join("kit/check.ts");
    copy(&workspace.root.join("kits/typescript/types/check.ts"), &check)?;
    let mut tsc = Command::new(tools.join("node_modules/.bin/tsc"));
    tsc.args(["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"]);
    tsc.args(["--types", "node", "--typeRoots"]).arg(tools.join("node_modules/@types"));
    succeed(tsc.arg(&check).current_dir(&installed.typescript))
}

fn python(kit: &Path, modules: &Path) -> Outcome {
    let mut unittest = Command::new("python3");
    unittest.args(["-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "tests"]);
    unittest.env("PYTHONPATH", modules).env("PYTHONDONTWRITEBYTECODE", "1");
    succeed(unittest.current_dir(kit))
}

fn node(kit: &Path) -> Outcome {
    let mut test = Command::new("node");
    test.args(["--test", "--test-reporter=dot", "test/"]);
    succeed(test.current_dir(kit))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).doing(&format!("copy {}", from.display())).map(drop)
}

/// Whether the programs that the kits are written for are here.
pub(super) fn possible() -> Outcome {
    for program in ["python3", "node"] {
        let probe = Command::new(program).arg("--version").output();
        if !probe.is_ok_and(|output| output.status.success()) {
            return Err(Failure::new(format!("`{program}` is missing")));
        }
    }
    Ok(())
}
