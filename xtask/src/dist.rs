//! `dist`: the release. One static executable, man pages, the licences of everything in it, checksums.
//!
//! Linked without a dynamic loader: nothing of the caller's environment is loaded into the launcher, and it starts in less
//! time and memory. Paths of the building machine are mapped away and the archive's order, owners and times are fixed, so
//! that the same sources and tools give the same bytes.

mod elf;
pub(crate) mod layout;
mod licences;
mod pack;
mod verify;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Doing, Failure, Outcome, cargo, output, succeed};
use crate::workspace::Workspace;

use pack::Stamp;

const PROGRAM: &str = "plenipo";
const SUMS: &str = "SHA256SUMS";
/// Where the code that a launch runs is to be, for the linker.
const LAYOUT: &str = "crates/cli/launch.ld";
/// Tests of the command line that take the release's executable as well.
const TESTS: &str = "names::";

/// A built release.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) program: PathBuf,
    triple: String,
}

/// Reads `[--verify]`.
pub(crate) fn is_verified(words: &[String]) -> Outcome<bool> {
    match words {
        [] => Ok(false),
        [option] if option == "--verify" => Ok(true),
        _ => Err(Failure::new("dist takes --verify and nothing else")),
    }
}

/// Builds the release, tests it, and puts everything into `target/dist`; with `verified`, only if everything made somewhere
/// else is the same.
pub(crate) fn run(workspace: &Workspace, verified: bool) -> Outcome {
    let stamp = Stamp::of(workspace)?;
    let release = build(workspace)?;
    test(workspace, &release)?;
    let staged = workspace.target.join("dist-build/dist");
    pack::assemble(workspace, &release, &staged, &stamp)?;
    if verified {
        verify::verify(workspace, &staged, &stamp)?;
    }
    let place = workspace.target.join("dist");
    if place.exists() {
        fs::remove_dir_all(&place).doing("remove the last release")?;
    }
    fs::rename(&staged, &place).doing("move the release to its place")?;
    let sums = fs::read_to_string(place.join(SUMS)).doing("read the checksums")?;
    println!("dist: {}\n{}", place.display(), sums.trim_end());
    Ok(())
}

/// The static executable, without anything around it.
pub(crate) fn build(workspace: &Workspace) -> Outcome<Release> {
    build_release(workspace, &[])
}

fn build_release(workspace: &Workspace, more: &[&str]) -> Outcome<Release> {
    let triple = triple(workspace)?;
    let what = ["--package", PROGRAM, "--bin", PROGRAM];
    // Read from the workspace's root, wherever that is: the path is part of what cargo calls the same build.
    let layout = format!("link-arg=-Wl,-T,{LAYOUT}");
    let options = [layout.as_str()].into_iter().chain(more.iter().copied());
    let options: Vec<&str> = options.flat_map(|option| ["-C", option]).collect();
    build_one(workspace, &triple, &what, &options)?;
    built(workspace)
}

/// The one that was built last.
pub(crate) fn built(workspace: &Workspace) -> Outcome<Release> {
    let triple = triple(workspace)?;
    let program = folder(workspace, &triple).join(PROGRAM);
    let bytes = fs::read(&program).doing(&format!("read {}", program.display()))?;
    elf::check_static(&bytes)?;
    Ok(Release { program, triple })
}

/// Gives the folder that it is built into; `last` is for the compiler of the program alone.
fn build_one(
    workspace: &Workspace,
    triple: &str,
    what: &[&str],
    last: &[&str],
) -> Outcome<PathBuf> {
    check_target(triple)?;
    let target = workspace.target.join("dist-build");
    let mut build = cargo(&workspace.root);
    build.args(["rustc", "--release", "--locked", "--target", triple]).args(what);
    build.arg("--").args(last);
    build.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", flags(workspace)?);
    build.env_remove("CARGO_ENCODED_RUSTFLAGS");
    // The little C in it calls no library.
    build.env(format!("CC_{}", triple.replace('-', "_")), "cc");
    succeed(&mut build)?;
    Ok(folder(workspace, triple))
}

fn folder(workspace: &Workspace, triple: &str) -> PathBuf {
    workspace.target.join("dist-build").join(triple).join("release")
}

fn flags(workspace: &Workspace) -> Outcome<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))?;
    let (root, home) = (workspace.root.display(), home.display());
    let flags = [
        "-C target-feature=+crt-static -C relocation-model=static".to_owned(),
        format!("--remap-path-prefix={root}=/plenipo --remap-path-prefix={home}=/cargo"),
    ];
    if [root.to_string(), home.to_string()].iter().any(|path| path.contains(' ')) {
        return Err(Failure::new(format!("{root} or {home} cannot be passed to rustc")));
    }
    Ok(flags.join(" "))
}

fn check_target(triple: &str) -> Outcome {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let place = output(rustc.args(["--print", "target-libdir", "--target", triple]))?;
    if Path::new(place.trim()).is_dir() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the standard library for {triple} is missing: rustup target add {triple}"
    )))
}

/// The host's processor with musl, which needs no library and no module to resolve names, and starts without asking the
/// processor what it is: a virtual machine makes each such question slow.
fn triple(workspace: &Workspace) -> Outcome<String> {
    let text = output(cargo(&workspace.root).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failure::new("cargo -vV names no host"))?;
    match host.split_once("-unknown-linux-") {
        Some((processor, _)) => Ok(format!("{processor}-unknown-linux-musl")),
        None => Err(Failure::new(format!("there is no release for {host}: only for Linux"))),
    }
}

fn test(workspace: &Workspace, release: &Release) -> Outcome {
    let mut tests = cargo(&workspace.root);
    tests.args(["test", "--package", PROGRAM, "--test", "it", TESTS]);
    succeed(tests.env("PLENIPO_DIST", &release.program))
}
