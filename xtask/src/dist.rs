//! `dist`: the release. One static executable, man pages, the licences of everything in it, checksums.
//!
//! Linked without a dynamic loader: nothing of the caller's environment is loaded into the launcher, and it starts in less
//! time and memory. Paths of the building machine are mapped away and the archive's order, owners and times are fixed, so
//! that the same sources and tools give the same bytes.

mod elf;
mod licences;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Doing, Failure, Outcome, cargo, output, succeed};
use crate::workspace::Workspace;

const PROGRAM: &str = "plenipo";
/// Tests of the command line that take the release's executable as well.
const TESTS: &str = "names::";

/// A built release.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) program: PathBuf,
    triple: String,
}

/// Builds the release, tests it, and puts everything into `target/dist`.
pub(crate) fn run(workspace: &Workspace) -> Outcome {
    let release = build(workspace)?;
    test(workspace, &release)?;
    let place = workspace.target.join("dist");
    let version = version(workspace)?;
    let name = format!("{PROGRAM}-{version}-{}", release.triple);
    let folder = place.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).doing("remove the last release")?;
    }
    fs::create_dir_all(folder.join("man")).doing("make the release's folder")?;
    copy(&release.program, &folder.join(PROGRAM))?;
    copy(&release.program, &place.join(PROGRAM))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&workspace.root.join(file), &folder.join(file))?;
    }
    succeed(Command::new(&release.program).arg("man").arg(folder.join("man")))?;
    let text = licences::of(workspace, PROGRAM, &release.triple)?;
    fs::write(folder.join("THIRD-PARTY-LICENSES.txt"), text).doing("write the licences")?;
    let archive = format!("{name}.tar.gz");
    pack(workspace, &place, &name, &archive)?;
    let mut sum = Command::new("sha256sum");
    let sums = output(sum.current_dir(&place).args([PROGRAM, archive.as_str()]))?;
    fs::write(place.join("SHA256SUMS"), &sums).doing("write the checksums")?;
    println!("dist: {}\n{}", place.display(), sums.trim_end());
    Ok(())
}

/// The static executable, without anything around it.
pub(crate) fn build(workspace: &Workspace) -> Outcome<Release> {
    let triple = triple(workspace)?;
    let program = build_one(workspace, &triple, &["--package", PROGRAM])?.join(PROGRAM);
    let bytes = fs::read(&program).doing(&format!("read {}", program.display()))?;
    elf::check_static(&bytes)?;
    Ok(Release { program, triple })
}

/// An example of a library, built as the release is.
pub(crate) fn build_example(workspace: &Workspace, package: &str, name: &str) -> Outcome<PathBuf> {
    let triple = triple(workspace)?;
    let built = build_one(workspace, &triple, &["--package", package, "--example", name])?;
    Ok(built.join("examples").join(name))
}

/// Gives the folder that it is built into.
fn build_one(workspace: &Workspace, triple: &str, what: &[&str]) -> Outcome<PathBuf> {
    let target = workspace.target.join("dist-build");
    let mut build = cargo(&workspace.root);
    build.args(["build", "--release", "--locked", "--target", triple]).args(what);
    build.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", flags(workspace)?);
    build.env_remove("CARGO_ENCODED_RUSTFLAGS");
    succeed(&mut build)?;
    Ok(target.join(triple).join("release"))
}

fn flags(workspace: &Workspace) -> Outcome<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))?;
    let (root, home) = (workspace.root.display(), home.display());
    let flags = format!(
        "-C target-feature=+crt-static -C relocation-model=static --remap-path-prefix={root}=/plenipo \
         --remap-path-prefix={home}=/cargo"
    );
    if flags.split(' ').count() == 6 {
        return Ok(flags);
    }
    Err(Failure::new(format!("a space in {root} or {home} cannot be passed to rustc")))
}

/// The host's triple; only glibc's static libraries are known to resolve names right.
fn triple(workspace: &Workspace) -> Outcome<String> {
    let text = output(cargo(&workspace.root).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failure::new("cargo -vV names no host"))?;
    if host.ends_with("-unknown-linux-gnu") {
        return Ok(host.to_owned());
    }
    Err(Failure::new(format!("there is no release for {host}: only for Linux with glibc")))
}

fn test(workspace: &Workspace, release: &Release) -> Outcome {
    let mut tests = cargo(&workspace.root);
    tests.args(["test", "--package", PROGRAM, "--test", "it", TESTS]);
    succeed(tests.env("PLENIPO_DIST", &release.program))
}

fn version(workspace: &Workspace) -> Outcome<&str> {
    let package = workspace.packages.iter().find(|package| package.name == PROGRAM);
    package
        .map(|package| package.version.as_str())
        .ok_or_else(|| Failure::new(format!("no package `{PROGRAM}`")))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).map(drop).doing(&format!("copy {}", from.display()))
}

/// Same names, same bytes: sorted, without owners, with the commit's time.
fn pack(workspace: &Workspace, place: &Path, name: &str, archive: &str) -> Outcome {
    let mut log = Command::new("git");
    let time = output(log.current_dir(&workspace.root).args(["log", "-1", "--format=%ct"]));
    let time = time.map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned());
    let mut tar = Command::new("tar");
    tar.current_dir(place).env("GZIP", "-n");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"]);
    tar.arg(format!("--mtime=@{time}")).args(["--mode=go=rX,u+rw", "-czf", archive, name]);
    succeed(&mut tar)
}
