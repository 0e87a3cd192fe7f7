//! Plenipo's own tasks: `cargo xtask test | kits | layers | sizes | bench | fuzz | conformance |
//! interop | checklist`.
//!
//! Everything runs from a bare clone with a Rust toolchain. Debian packages are only installed with
//! `--install` or `CI=true`; what tests take from npm and PyPI goes below `target/`.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "a task runner starts processes and reads the environment"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to a person")]

mod bench;
mod checklist;
mod conformance;
mod dist;
mod fuzz;
mod interop;
mod layers;
mod run;
mod scan;
mod sizes;
mod soak;
mod test;
mod workspace;

use std::env;
use std::process::ExitCode;

use run::{Failure, Outcome};
use workspace::Workspace;

const HELP: &str = "\
Usage: cargo xtask <task>

  test [--peers] [--install] [-p CRATE]… [-- FILTER]
           format, the kits' own tests, lints, build, tests, doctests, layers, sizes
             --peers     also prepare real MCP servers from npm and PyPI in target/peers, and install the kits
             --install   install missing Debian packages with apt-get
             -p CRATE    only this crate's lints and tests
           CI=true means --peers --install, and a skipped test is a failure
  kits [--peers]
           the own tests of the kits in kits/, with --peers as `pip install` and `npm pack` make them
  layers   which crate may use which, and where unsafe code may be
  sizes    lengths of files, functions and crates; exceptions stand in xtask/sizes.allow
  bench [launch|calls|tokens|all] [--dist] [--built] [--peers] [--only PART] [--check]
           ratios to C programs in one run, floors from $PLENIPO_BENCH_DIR
             --dist      also launches of the release, and one-shot calls of the release only (builds it: minutes)
             --built     measures what was built last, and builds only what is not there
             --only      the parts with this in their names; a name that none has prints them all
             --peers     also the official SDK (builds it: minutes), and command lines and servers from npm and PyPI
             --check     fail when a bar is missed
  fuzz [--seconds N]
           each fuzz target for N seconds (60); failing inputs are kept in target/fuzz
  soak [--seconds N] [--servers N] [--calls N] [--seed N]
           200 servers with bad manners, 50000 calls, 600 seconds: no answer may be lost or crossed,
           no process or descriptor left, and memory has to stay flat
  dist [--verify]
           the release in target/dist: a static executable (tested), man pages, licences, checksums
             --verify    makes it once more, from a copy in another place, and compares every byte (twice the minutes)
  layout   writes the functions of an ordinary launch into crates/cli/launch.ld, for the linker (builds the release)
  conformance [--scenario NAME]…
           the official suite's client scenarios, both revisions; fetched from npm into target/conformance
             --scenario  only these
  interop  host × server × launcher × policy with the reference runtime and the kits' examples, each cell run
  checklist [--check]
           docs/conformance.md from xtask/checklist.txt: each row and where its test is
             --check     only compare, and fail when a named test is gone
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Outcome {
    let Some((task, rest)) = words.split_first() else {
        print!("{HELP}");
        return Err(Failure::new("name a task"));
    };
    match task.as_str() {
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        "test" => test::run(&Workspace::load()?, &test::Options::parse(rest)?),
        "kits" => match rest {
            [] => test::kits::test(&Workspace::load()?, false),
            [word] if word == "--peers" => test::kits::test(&Workspace::load()?, true),
            _ => no_arguments(rest),
        },
        "layers" => no_arguments(rest).and_then(|()| layers::check(&Workspace::load()?)),
        "sizes" => no_arguments(rest).and_then(|()| sizes::check(&Workspace::load()?)),
        "bench" => bench::run(&Workspace::load()?, &bench::Options::parse(rest)?),
        "soak" => soak::run(&Workspace::load()?, &soak::Options::parse(rest)?),
        "fuzz" => fuzz::run(&Workspace::load()?, fuzz::seconds(rest)?),
        "checklist" => checklist::run(&Workspace::load()?, rest),
        "conformance" => conformance::run(&Workspace::load()?, &conformance::Options::parse(rest)?),
        "interop" => no_arguments(rest).and_then(|()| interop::run(&Workspace::load()?)),
        "layout" => no_arguments(rest).and_then(|()| dist::layout::run(&Workspace::load()?)),
        "dist" => {
            dist::is_verified(rest).and_then(|verified| dist::run(&Workspace::load()?, verified))
        }
        other => Err(Failure::new(format!("there is no task `{other}`; see `cargo xtask help`"))),
    }
}

fn no_arguments(words: &[String]) -> Outcome {
    match words.first() {
        None => Ok(()),
        Some(word) => Err(Failure::new(format!("unexpected argument `{word}`"))),
    }
}
