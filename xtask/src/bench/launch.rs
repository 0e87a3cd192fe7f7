//! `plenipo sandbox`: time to the payload's first instruction beside the C launcher, bwrap and the reference CLI under the
//! same policy, what carve-outs and patterns add, and what starting the program costs.

mod many;
mod memory;
mod policy;

use std::process::Command;

use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools, number_after};
use crate::run::{Failure, Outcome, output};
use policy::Policy;

pub(super) use many::a_thousand;
pub(super) use memory::peak_memory;

/// Rounds, and launches in each: medians of medians of 60 in all for the slow ones.
const ROUNDS: usize = 9;
const LAUNCHES: &str = "30";
const SLOW_ROUNDS: usize = 4;
const SLOW_LAUNCHES: &str = "15";

const DEFAULT_TIMES_THE_CANDIDATE: f64 = 1.5;
const DIST_TIMES_THE_CANDIDATE: f64 = 1.2;
const TIMES_BWRAP: f64 = 2.5;
const TIMES_REFERENCE: f64 = 15.0;
const CARVE_OUTS_MILLISECONDS: f64 = 1.3;
const GLOB_MILLISECONDS: f64 = 2.0;
const DEFAULT_TAX_MILLISECONDS: f64 = 1.3;
const DIST_TAX_MILLISECONDS: f64 = 0.6;
const BWRAP: &str = "bwrap, equal flags";
const CANDIDATE: &str = "the C candidate";

/// Everything that the timer measures; rows of what is not there say so.
pub(super) fn to_first_instruction(tools: &Tools) -> Outcome<Vec<Row>> {
    let Some(floors) = &tools.floors else {
        let why = "the timer and the C launcher are not there";
        return Ok(vec![skipped("launch", "ms", why)]);
    };
    let bench = Bench { tools, floors };
    let mut rows = bench.beside_the_candidate()?;
    rows.extend(bench.beside_bwrap()?);
    rows.extend(bench.beside_the_reference()?);
    rows.extend(bench.of_rules()?);
    rows.extend(bench.start_tax()?);
    Ok(rows)
}

fn skipped(name: &'static str, unit: &'static str, why: &str) -> Row {
    Row { name, ours: f64::NAN, unit, against: Against::Skipped(why.to_owned()) }
}

struct Bench<'a> {
    tools: &'a Tools,
    floors: &'a Floors,
}

impl Bench<'_> {
    /// Median milliseconds to the first instruction of the payload.
    fn first(&self, launches: &str, argv: &[String]) -> Outcome<f64> {
        let text = self.timed(launches, argv)?;
        if number_after(&text, "bad=")? > 0.0 {
            return Err(Failure::new(format!("a launch failed: {} ({argv:?})", text.trim_end())));
        }
        number_after(&text, "med ")
    }

    fn timed(&self, launches: &str, argv: &[String]) -> Outcome<String> {
        let mut timer = Command::new(&self.floors.timer);
        output(timer.current_dir(&self.tools.work).arg(launches).args(argv))
    }

    fn beside_the_candidate(&self) -> Outcome<Vec<Row>> {
        let builds = self.tools.builds();
        let mut rows = Vec::new();
        for network in [false, true] {
            let names = if network {
                ["launch, net on", "launch, net on, dist"]
            } else {
                ["launch, net off", "launch, net off, dist"]
            };
            let mosts = [DEFAULT_TIMES_THE_CANDIDATE, DIST_TIMES_THE_CANDIDATE];
            let policy = Policy { network, ..Policy::default() };
            for ((name, most), build) in names.into_iter().zip(mosts).zip(&builds) {
                let Some(program) = build else {
                    rows.push(skipped(name, "ms", "without --dist"));
                    continue;
                };
                let ours = policy.launcher(self.tools, program);
                let theirs = policy.candidate(self.tools, self.floors);
                let (ours, value) = in_turns(
                    ROUNDS,
                    || self.first(LAUNCHES, &ours),
                    || self.first(LAUNCHES, &theirs),
                )?;
                let against = Against::Floor { name: CANDIDATE, value, most };
                rows.push(Row { name, ours, unit: "ms", against });
            }
        }
        Ok(rows)
    }

    fn beside_bwrap(&self) -> Outcome<Vec<Row>> {
        let name = "launch beside bwrap";
        let Some(bwrap) = &self.tools.bwrap else {
            return Ok(vec![skipped(name, "ms", "no /usr/bin/bwrap")]);
        };
        let policy = Policy::default();
        let theirs = policy.bwrap(self.tools, bwrap);
        let mut rows = self.beside(name, &policy, &theirs, (BWRAP, TIMES_BWRAP))?;
        let policy = Policy { program: true, ..policy };
        let theirs = policy.bwrap(self.tools, bwrap);
        let name = "a C program's main beside it";
        let more = self.beside(name, &policy, &theirs, (BWRAP, TIMES_BWRAP))?;
        rows.extend(
            more.into_iter().map(|row| Row { against: row.against.for_information(), ..row }),
        );
        Ok(rows)
    }

    fn beside_the_reference(&self) -> Outcome<Vec<Row>> {
        let name = "launch beside the reference";
        let Some(program) = &self.tools.reference else {
            return Ok(vec![skipped(name, "ms", "no reference CLI in target/peers")]);
        };
        let policy = Policy::default();
        let theirs = policy.launcher(self.tools, program);
        self.beside(name, &policy, &theirs, ("the reference CLI, same state", TIMES_REFERENCE))
    }

    /// The release beside a slower peer, without one the default build.
    fn beside(
        &self,
        name: &'static str,
        policy: &Policy,
        theirs: &[String],
        (peer, least): (&'static str, f64),
    ) -> Outcome<Vec<Row>> {
        let ours = policy.launcher(self.tools, self.tools.best());
        let (ours, value) = in_turns(
            SLOW_ROUNDS,
            || self.first(SLOW_LAUNCHES, &ours),
            || self.first(SLOW_LAUNCHES, theirs),
        )?;
        let against = Against::Peer { name: peer, value, least };
        Ok(vec![Row { name, ours, unit: "ms", against }])
    }

    /// What rules add to the same launch without them.
    fn of_rules(&self) -> Outcome<Vec<Row>> {
        let plain = Policy::default().launcher(self.tools, self.tools.best());
        let carved = Policy { carve_outs: 100, ..Policy::default() };
        let walked = Policy { glob: true, ..Policy::default() };
        let cases = [
            ("100 carve-outs add", carved, CARVE_OUTS_MILLISECONDS),
            ("walk of 2,000 files adds", walked, GLOB_MILLISECONDS),
        ];
        let mut rows = Vec::new();
        for (name, policy, most) in cases {
            policy.make(self.tools)?;
            let ruled = policy.launcher(self.tools, self.tools.best());
            let (ruled, plain) =
                in_turns(ROUNDS, || self.first(LAUNCHES, &ruled), || self.first(LAUNCHES, &plain))?;
            let against = Against::Most(most);
            rows.push(Row { name, ours: ruled - plain, unit: "ms", against });
        }
        Ok(rows)
    }

    /// From before `fork` to after `wait`, of a start that does nothing, less the same of a static C program.
    fn start_tax(&self) -> Outcome<Vec<Row>> {
        let whole = |argv: &[String]| {
            let text = self.timed(LAUNCHES, argv)?;
            let (_, whole) = text.split_once("whole").unwrap_or_default();
            number_after(whole, "med ")
        };
        let nothing = [self.tools.program.display().to_string()];
        let builds = self.tools.builds();
        let names = ["start tax", "start tax, dist"];
        let mosts = [DEFAULT_TAX_MILLISECONDS, DIST_TAX_MILLISECONDS];
        let mut rows = Vec::new();
        for ((name, most), build) in names.into_iter().zip(mosts).zip(&builds) {
            let Some(program) = build else {
                rows.push(skipped(name, "ms", "without --dist"));
                continue;
            };
            // A stage without a descriptor ends where it begins.
            let program = program.display().to_string();
            let ours = [program, "sandbox".into(), "--inner-stage".into(), "-1".into()];
            let (ours, floor) = in_turns(ROUNDS, || whole(&ours), || whole(&nothing))?;
            rows.push(Row { name, ours: ours - floor, unit: "ms", against: Against::Most(most) });
        }
        Ok(rows)
    }
}
