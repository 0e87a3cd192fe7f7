//! What the benchmarks run: our release binaries, the payload, and the C floors when they are there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Options;
use crate::dist;
use crate::run::{Doing, Failure, Outcome, cargo, output, succeed};
use crate::workspace::Workspace;

/// Built programs. A floor that cannot be had is `None`.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) plenipo: PathBuf,
    /// The release: static. Built when `--dist` is given; one-shot calls are then measured with it alone.
    dist: Option<PathBuf>,
    pub(super) bwrap: Option<PathBuf>,
    /// The reference CLI's own executable, without what its package wraps around it.
    pub(super) reference: Option<PathBuf>,
    /// The host that makes calls, starts fleets, and is a server of much: the default build, with the
    /// allocator and the C library of the hosts that link the library.
    measure: Option<PathBuf>,
    /// Prints the peak memory of a command.
    pub(super) peak: PathBuf,
    /// Other people's programs are measured, too.
    pub(super) peers: bool,
    /// Says when its first instructions were run.
    pub(super) payload: PathBuf,
    /// Says when its `main` was: a static C program with its library's start.
    pub(super) program: PathBuf,
    pub(super) work: PathBuf,
    pub(super) floors: Option<Floors>,
    /// A client of the official SDK, or why there is none.
    pub(super) sdk: Result<PathBuf, String>,
}

/// The C programs.
#[derive(Debug)]
pub(super) struct Floors {
    /// Prints the time from before `fork` to a payload's first instruction.
    pub(super) timer: PathBuf,
    pub(super) sandbox: PathBuf,
    pub(super) echo: PathBuf,
    pub(super) one_shot: PathBuf,
    pub(super) raw_loop: PathBuf,
    pub(super) http_echo: PathBuf,
    pub(super) http_loop: PathBuf,
}

impl Tools {
    pub(super) fn build(workspace: &Workspace, options: &Options) -> Outcome<Self> {
        let place = workspace.target.join("bench");
        let work = place.join("work");
        fs::create_dir_all(work.join(".git")).doing("make target/bench/work")?;
        let release = || match dist::built(workspace) {
            Ok(built) if options.built => Ok(built),
            _ => dist::build(workspace),
        };
        let dist = options.dist.then(release).transpose()?;
        let dist = dist.map(|release| release.program);
        let plenipo = match &dist {
            Some(dist) if !options.launch => dist.clone(),
            _ => plain(workspace, options, "plenipo", &["--package", "plenipo"])?,
        };
        let package = ["--package", "plenipo-measure"];
        let measure = options.calls.then(|| plain(workspace, options, "measure", &package));
        let measure = measure.transpose()?;
        let own = |name: &str, flags: &[&str]| {
            let source = workspace.root.join("xtask/bench").join(name).with_extension("c");
            compile(&source, &place, flags, options)
        };
        let payload = own("payload", &["-static", "-nostartfiles", "-fno-stack-protector"])?;
        let program = own("program", &["-static"])?;
        let peak = own("peak", &[])?;
        let folder = floor_folder(workspace);
        let floors =
            folder.as_deref().map(|folder| Floors::build(folder, &place, options)).transpose()?;
        let sdk = match folder.filter(|_| options.calls && options.peers) {
            Some(folder) => build_sdk(&folder.join("rmcp-peer"), &place.join("rmcp-peer"), options)
                .map_err(|failure| format!("the official SDK was not built: {failure}")),
            None => Err("the official SDK is built with --peers".to_owned()),
        };
        let peers = options.peers;
        let bwrap = Some(PathBuf::from("/usr/bin/bwrap")).filter(|path| path.is_file());
        Ok(Self {
            plenipo,
            dist,
            bwrap,
            reference: reference(workspace),
            measure,
            peak,
            peers,
            payload,
            program,
            work,
            floors,
            sdk,
        })
    }

    /// The default build, and the release if it was asked for.
    pub(super) fn builds(&self) -> [Option<&Path>; 2] {
        [Some(&self.plenipo), self.dist.as_deref()]
    }

    /// The program that calls and starts fleets.
    pub(super) fn measure(&self) -> Outcome<&Path> {
        self.measure.as_deref().ok_or_else(|| Failure::new("it was not built"))
    }

    /// The release if there is one.
    pub(super) fn best(&self) -> &Path {
        self.dist.as_deref().unwrap_or(&self.plenipo)
    }
}

/// In `$PLENIPO_PEERS`, else where `cargo xtask test --peers` puts it.
fn reference(workspace: &Workspace) -> Option<PathBuf> {
    let given = env::var_os("PLENIPO_PEERS").map(PathBuf::from);
    let peers = given.unwrap_or_else(|| workspace.target.join("peers"));
    let below = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let packages = below(&peers.join("reference/node_modules/@openai"));
    let platforms = packages.iter().flat_map(|package| below(&package.join("vendor")));
    platforms.map(|platform| platform.join("bin/codex")).find(|program| program.is_file())
}

/// The default build of `what`, which is `name` below the folder that it is built into.
fn plain(workspace: &Workspace, options: &Options, name: &str, what: &[&str]) -> Outcome<PathBuf> {
    let built = workspace.target.join("release").join(name);
    if !stands(&built, options) {
        succeed(cargo(&workspace.root).args(["build", "--release"]).args(what))?;
    }
    Ok(built)
}

/// It was built, and what was built last is wanted.
fn stands(built: &Path, options: &Options) -> bool {
    options.built && built.is_file()
}

/// Where the floors' sources are: `PLENIPO_BENCH_DIR`, or beside the clone.
fn floor_folder(workspace: &Workspace) -> Option<PathBuf> {
    let given = env::var_os("PLENIPO_BENCH_DIR").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| workspace.root.join("../shared/bench"));
    if folder.join("sandbox/cand3.c").is_file() {
        return Some(folder);
    }
    println!("bench: no C floors in {}: ratios to them are skipped", folder.display());
    None
}

impl Floors {
    fn build(folder: &Path, place: &Path, options: &Options) -> Outcome<Self> {
        let build =
            |source: &str| compile(&folder.join(source).with_extension("c"), place, &[], options);
        Ok(Self {
            timer: build("sandbox/tte")?,
            sandbox: build("sandbox/cand3")?,
            echo: build("calls/echo")?,
            one_shot: build("calls/oneshot")?,
            raw_loop: build("calls/rawloop")?,
            http_echo: build("calls/httpecho")?,
            http_loop: build("calls/httploop")?,
        })
    }
}

fn compile(source: &Path, place: &Path, flags: &[&str], options: &Options) -> Outcome<PathBuf> {
    let built = place.join(source.file_stem().unwrap_or_default());
    if !stands(&built, options) {
        let mut gcc = Command::new("gcc");
        output(gcc.args(["-O2", "-w"]).args(flags).arg("-o").arg(&built).arg(source))?;
    }
    Ok(built)
}

/// Built in a copy: its own folder may be read-only, and its build output is ours.
fn build_sdk(from: &Path, place: &Path, options: &Options) -> Outcome<PathBuf> {
    let target = place.join("target");
    let built = target.join("release/rmcpbench");
    if stands(&built, options) {
        return Ok(built);
    }
    fs::create_dir_all(place.join("src")).doing("make target/bench/rmcp-peer")?;
    for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        let text = fs::read(from.join(file)).doing(&format!("read {file} of the SDK peer"))?;
        fs::write(place.join(file), text).doing(&format!("write {file} of the SDK peer"))?;
    }
    let mut build = cargo(place);
    succeed(build.args(["build", "--release", "--locked"]).env("CARGO_TARGET_DIR", &target))?;
    Ok(built)
}

/// What is fetched from npm and PyPI, pinned; fetched once.
const NODE_PEERS: [&str; 3] = [
    "mcporter@0.12.3",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
];
const PYTHON_PEERS: [&str; 2] = ["fastmcp==4.2.3", "mcp-server-time==2026.10.19"];

/// Where command lines and servers of others are: `node` and `python` below it.
pub(super) fn prepare_peers(tools: &Tools) -> PathBuf {
    let place = tools.work.with_file_name("peers");
    for (name, wanted, fetch) in [
        ("node", NODE_PEERS.as_slice(), from_npm as fn(&Path, &[&str]) -> Outcome),
        ("python", PYTHON_PEERS.as_slice(), from_pypi),
    ] {
        let (place, text) = (place.join(name), wanted.join("\n"));
        let stamp = place.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|present| present == text) {
            continue;
        }
        let fetched = fs::create_dir_all(&place).doing("make a folder for peers");
        let fetched = fetched.and_then(|()| fetch(&place, wanted));
        // Whoever is not there is named in the row that wants it.
        if let Err(failure) = fetched.and_then(|()| fs::write(&stamp, &text).doing("write a stamp"))
        {
            println!("bench: peers in {}: {failure}", place.display());
        }
    }
    place
}

fn from_npm(place: &Path, packages: &[&str]) -> Outcome {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix"]);
    succeed(npm.arg(place).args(packages))
}

fn from_pypi(place: &Path, packages: &[&str]) -> Outcome {
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    succeed(Command::new(place.join("bin/python3")).args(pip).args(packages))
}

/// Puts this process, and what it starts from now on, at real-time priority if that is permitted.
pub(super) fn real_time() {
    let id = std::process::id().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["-f", "-p", "1", &id]).stdout(Stdio::null()).stderr(Stdio::null());
    let permitted = chrt.status().is_ok_and(|status| status.success());
    println!("bench: real-time priority: {}", if permitted { "yes" } else { "not permitted" });
}

/// The number after `key` in what a measuring program printed.
pub(super) fn number_after(text: &str, key: &str) -> Outcome<f64> {
    let found = text.split_once(key).and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    });
    found.ok_or_else(|| Failure::new(format!("no `{key}` in `{}`", text.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_their_key() {
        let text = "seq n=100 p50_us=12.5 p99_us=20.0\n";
        assert!((number_after(text, "p50_us=").unwrap() - 12.5).abs() < f64::EPSILON);
        assert!(number_after(text, "p10_us=").is_err());
    }
}
