//! `cargo xtask test`: everything that has to hold before a change is merged, in one command.

pub(crate) mod kits;
pub(crate) mod peers;
mod tools;

pub(crate) use peers::from_npm;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::run::{Doing, Failure, Outcome, cargo, closing_lines, succeed, tee};
use crate::workspace::Workspace;
use crate::{checklist, layers, sizes};

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    peers: bool,
    install: bool,
    ci: bool,
    crates: Vec<String>,
    filter: Vec<String>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Outcome<Self> {
        let ci = env::var_os("CI").is_some_and(|value| value == "true");
        let mut options = Self { ci, peers: ci, install: ci, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--peers" => options.peers = true,
                "--install" => options.install = true,
                "-p" | "--package" => {
                    let name = words.next().ok_or_else(|| Failure::new("-p needs a crate"))?;
                    options.crates.push(name.clone());
                }
                "--" => options.filter.extend(words.by_ref().cloned()),
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            }
        }
        Ok(options)
    }

    /// `--workspace`, or the crates asked for.
    fn selection(&self) -> Vec<String> {
        if self.crates.is_empty() {
            return vec!["--workspace".to_owned()];
        }
        self.crates.iter().flat_map(|name| ["--package".to_owned(), name.clone()]).collect()
    }
}

/// What is learnt while the steps run.
#[derive(Debug, Default)]
struct Record {
    times: Vec<(&'static str, Duration, bool)>,
    closing: Vec<String>,
    /// The threat model's table, if the run had it.
    rows: Vec<String>,
    built: bool,
}

impl Record {
    /// Runs one step, keeps its time, prints why it failed; the other steps run all the same.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Outcome) -> bool {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = work();
        if let Err(failure) = &outcome {
            println!("xtask: {name}: {failure}");
        }
        self.times.push((name, start.elapsed(), outcome.is_ok()));
        outcome.is_ok()
    }

    fn failed(&self) -> Vec<&str> {
        self.times.iter().filter(|(_, _, passed)| !passed).map(|(name, _, _)| *name).collect()
    }
}

/// Runs every step; fails when one of them failed, or in CI when a test was skipped.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Outcome {
    let skips = workspace.target.join("skips.log");
    fs::create_dir_all(&workspace.target).doing("make the target directory")?;
    fs::write(&skips, "").doing("empty the list of skips")?;
    let mut record = Record::default();
    record.step("tools", || tools::check(options.install, options.ci));
    let peers = workspace.target.join("peers");
    if options.peers {
        record.step("peers", || peers::prepare(workspace, &peers));
    }
    if options.crates.is_empty() {
        record.step("kits", || test_kits(workspace, options, &skips));
    }
    static_checks(workspace, options, &mut record);
    build_and_test(workspace, options, &mut record, &skips);
    record.step("layers", || layers::check(workspace));
    record.step("sizes", || sizes::check(workspace));
    record.step("checklist", || checklist::check(workspace));
    finish(&record, options, &fs::read_to_string(&skips).doing("read the list of skips")?)
}

/// Without their programs the kits are skipped, which CI counts as a failure.
fn test_kits(workspace: &Workspace, options: &Options, skips: &PathBuf) -> Outcome {
    match kits::possible() {
        Ok(()) => kits::test(workspace, options.peers),
        Err(missing) => fs::write(skips, format!("SKIPPED kits: {missing}\n")).doing("note a skip"),
    }
}

fn static_checks(workspace: &Workspace, options: &Options, record: &mut Record) {
    record.step("format", || succeed(cargo(&workspace.root).args(["fmt", "--all", "--check"])));
    record.step("lints", || {
        let mut clippy = cargo(&workspace.root);
        clippy.arg("clippy").args(options.selection()).args(["--all-targets", "--", "-D"]);
        succeed(clippy.arg("warnings"))
    });
}

fn build_and_test(workspace: &Workspace, options: &Options, record: &mut Record, skips: &PathBuf) {
    // Integration tests of several crates run the binary, so it is built whatever is selected; the
    // workspace in one go, so that features, and with them the build, are those of the tests.
    record.built = record.step("build", || {
        let mut build = cargo(&workspace.root);
        build.args(["build", "--workspace", "--bins"]);
        if options.crates.is_empty() {
            build.args(["--tests", "--examples"]);
        }
        succeed(&mut build)
    });
    if !record.built {
        return;
    }
    let peers = workspace.target.join("peers");
    let mut closing = Vec::new();
    let rows = workspace.target.join("rows.log");
    record.step("tests", || {
        if rows.exists() {
            fs::remove_file(&rows).doing("remove the last run's rows")?;
        }
        let mut runner = runner(workspace, options);
        runner.env("PLENIPO_SKIP_LOG", skips).env("PLENIPO_ROWS_LOG", &rows);
        if options.peers {
            runner.env("PLENIPO_PEERS", &peers);
        }
        let said = tee(&mut runner)?;
        closing = closing_lines(&said.lines);
        said.outcome
    });
    record.closing = closing;
    record.rows =
        fs::read_to_string(&rows).unwrap_or_default().lines().map(str::to_owned).collect();
    let mut packages = workspace.packages.iter().filter(|package| package.has_library());
    if options.crates.is_empty() || packages.any(|package| options.crates.contains(&package.name)) {
        record.step("doctests", || {
            let mut doctests = cargo(&workspace.root);
            succeed(doctests.args(["test", "--doc"]).args(options.selection()))
        });
    }
}

/// nextest when it is there, else `cargo test`.
fn runner(workspace: &Workspace, options: &Options) -> std::process::Command {
    let mut probe = cargo(&workspace.root);
    let nextest = probe.args(["nextest", "--version"]).output().is_ok_and(|o| o.status.success());
    let mut runner = cargo(&workspace.root);
    if nextest {
        runner.args(["nextest", "run", "--no-tests=pass"]).args(options.selection());
        if options.ci {
            runner.args(["--profile", "ci"]);
        }
    } else {
        println!("cargo-nextest is not installed; using cargo test");
        runner.args(["test", "--no-fail-fast"]).args(options.selection());
        runner.arg("--tests");
    }
    if !options.filter.is_empty() {
        runner.arg("--").args(&options.filter);
    }
    runner
}

fn finish(record: &Record, options: &Options, skips: &str) -> Outcome {
    println!("\n=== summary");
    for (name, time, passed) in &record.times {
        let verdict = if *passed { "ok" } else { "FAILED" };
        println!("{name:<10} {:>7.1} s  {verdict}", time.as_secs_f64());
    }
    let mut skipped: Vec<_> = skips.lines().collect();
    skipped.sort_unstable();
    println!("skipped: {}", skipped.len());
    for line in &skipped {
        println!("  {line}");
    }
    for line in record.rows.iter().chain(&record.closing) {
        println!("{line}");
    }
    let failed = record.failed();
    if !failed.is_empty() {
        return Err(Failure::new(format!("failed: {}", failed.join(", "))));
    }
    if options.ci && !skipped.is_empty() {
        return Err(Failure::new("tests were skipped, and CI skips nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Outcome<Options> {
        Options::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_select_crates_and_tests() {
        let options = parse(&["--peers", "-p", "plenipo-wire", "--", "framing"]).unwrap();
        assert!(options.peers);
        assert_eq!(options.selection(), ["--package", "plenipo-wire"]);
        assert_eq!(options.filter, ["framing"]);
        assert!(parse(&["--peer"]).is_err());
        assert!(parse(&["-p"]).is_err());
    }

    #[test]
    fn a_failed_step_or_a_skip_in_ci_fails_the_task() {
        let mut record = Record::default();
        assert!(finish(&record, &Options::default(), "SKIPPED x: y\n").is_ok());
        let ci = Options { ci: true, ..Options::default() };
        assert!(finish(&record, &ci, "").is_ok());
        assert!(finish(&record, &ci, "SKIPPED x: y\n").is_err());
        assert!(!record.step("lints", || Err(Failure::new("no"))));
        let failure = finish(&record, &Options::default(), "").unwrap_err();
        assert_eq!(failure.to_string(), "failed: lints");
    }
}
