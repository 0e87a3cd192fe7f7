//! Tool calls on a stdio server written in C that answers at once: one call from nothing, and
//! calls over a warm connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::cpus::Cpus;
use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools, number_after};
use crate::run::{Doing, Failure, Outcome, output};

const ONE_SHOT_ROUNDS: usize = 200;
const WARM_ROUNDS: usize = 5;
const WARM_CALLS: &str = "5000";
const IN_FLIGHT: &str = "64";
const IN_FLIGHT_CALLS: &str = "30000";
const MOST_TIMES_ONE_SHOT: f64 = 2.0;
const MOST_TIMES_RAW_LOOP: f64 = 1.8;
const LEAST_TIMES_SDK: f64 = 2.5;
/// 60 % of its calls a second.
const MOST_TIMES_RAW_IN_FLIGHT: f64 = 1.0 / 0.6;
const LEAST_TIMES_SDK_IN_FLIGHT: f64 = 6.0;
const NO_FLOORS: &str = "the C server and clients are not there";

/// Whole wall time of `plenipo call`, interleaved with a C program that does the same.
pub(super) fn one_shot(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "one-shot call";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "ms")]) };
    let config = config_of(tools, floors)?;
    let ours = || {
        let mut call = Command::new(&tools.plenipo);
        call.current_dir(&tools.work).arg("call").arg("--config").arg(&config);
        call.args(["echo.echo", "text=hi"]);
        call
    };
    let theirs = || {
        let mut call = Command::new(&floors.one_shot);
        call.args(["echo", r#"{"text":"hi"}"#]).arg(&floors.echo);
        call
    };
    for mut call in [ours(), theirs()] {
        let said = output(&mut call)?;
        if !said.contains("hi") {
            return Err(Failure::new(format!("a call answered `{}`", said.trim_end())));
        }
    }
    let (ours, value) = in_turns(ONE_SHOT_ROUNDS, || timed(ours()), || timed(theirs()))?;
    let against = Against::Floor { name: "the C one-shot", value, most: MOST_TIMES_ONE_SHOT };
    Ok(vec![Row { name, ours, unit: "ms", against }])
}

/// A configuration with the C server as `echo`.
pub(super) fn config_of(tools: &Tools, floors: &Floors) -> Outcome<PathBuf> {
    let config = tools.work.join("bench.toml");
    let text = format!("[mcp_servers.echo]\ncommand = {:?}\n", floors.echo.display().to_string());
    fs::write(&config, text).doing("write the benchmark's configuration")?;
    Ok(config)
}

/// Milliseconds from before the start to after the end.
pub(super) fn timed(mut command: Command) -> Outcome<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().doing("start a call")?;
    let time = start.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(time) } else { Err(Failure::new(format!("a call failed ({status})"))) }
}

/// p50 of sequential calls over one connection, interleaved with a raw loop in C, and with the
/// official SDK on its current-thread runtime when that was built.
///
/// Judged with client and server on one CPU, where a call costs what the programs do. Across CPUs
/// most of it is the machine waking an idle one, the same for everybody: those rows are for
/// information.
pub(super) fn warm(tools: &Tools) -> Outcome<Vec<Row>> {
    let Some(floors) = &tools.floors else {
        return Ok(vec![skipped("warm call p50", "µs")]);
    };
    let measure = tools.measure()?;
    let mut rows = Vec::new();
    for cpus in [Cpus::one(), Cpus::Any] {
        let (name, judged) = match cpus {
            Cpus::One(_) => ("warm call p50, one CPU", true),
            Cpus::Any => ("warm call p50, any CPU", rows.is_empty()),
            Cpus::Unknown => continue,
        };
        rows.extend(warm_on(tools, floors, measure, &cpus)?.into_iter().map(|(ours, against)| {
            let against = if judged { against } else { against.for_information() };
            Row { name, ours, unit: "µs", against }
        }));
    }
    Ok(rows)
}

fn warm_on(
    tools: &Tools,
    floors: &Floors,
    measure: &Path,
    cpus: &Cpus,
) -> Outcome<Vec<(f64, Against)>> {
    // Ours takes the arguments of the loop in C.
    let words = [WARM_CALLS, "0", "echo", "text"];
    let ours = || p50(cpus.command(measure).arg("warm").args(words).arg(&floors.echo));
    let raw = || p50(cpus.command(&floors.raw_loop).args(words).arg(&floors.echo));
    let (time, value) = in_turns(WARM_ROUNDS, ours, raw)?;
    let against = Against::Floor { name: "the raw C loop", value, most: MOST_TIMES_RAW_LOOP };
    let floor = (time, against);
    let sdk = match &tools.sdk {
        Ok(sdk) => sdk,
        Err(why) => return Ok(vec![floor, (time, Against::Skipped(why.clone()))]),
    };
    let sdk_loop = || {
        let mut client = cpus.command(sdk);
        p50(client.env("RT", "current").args(["warm", WARM_CALLS, "0"]).arg(&floors.echo))
    };
    let (ours, value) = in_turns(WARM_ROUNDS, ours, sdk_loop)?;
    let against = Against::Peer { name: "the official SDK", value, least: LEAST_TIMES_SDK };
    Ok(vec![floor, (ours, against)])
}

/// Time a call takes with 64 of them in flight over one connection, client and server wherever the machine puts them.
pub(super) fn in_flight(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "64 calls in flight, each";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "µs")]) };
    let measure = tools.measure()?;
    let words = [IN_FLIGHT_CALLS, IN_FLIGHT, "echo", "text"];
    let ours = || each_in_flight(Command::new(measure).arg("warm").args(words).arg(&floors.echo));
    let raw = || each_in_flight(Command::new(&floors.raw_loop).args(words).arg(&floors.echo));
    let (time, value) = in_turns(WARM_ROUNDS, ours, raw)?;
    let against = Against::Floor { name: "the raw C loop", value, most: MOST_TIMES_RAW_IN_FLIGHT };
    let floor = Row { name, ours: time, unit: "µs", against };
    let sdk = match &tools.sdk {
        Ok(sdk) => sdk,
        Err(why) => {
            let against = Against::Skipped(why.clone());
            return Ok(vec![floor, Row { name, ours: time, unit: "µs", against }]);
        }
    };
    let theirs = || {
        let mut client = Command::new(sdk);
        client.env("RT", "current").args(["warm", IN_FLIGHT_CALLS, IN_FLIGHT]).arg(&floors.echo);
        each_in_flight(&mut client)
    };
    let (ours, value) = in_turns(WARM_ROUNDS, ours, theirs)?;
    let least = LEAST_TIMES_SDK_IN_FLIGHT;
    let against = Against::Peer { name: "the official SDK", value, least };
    Ok(vec![floor, Row { name, ours, unit: "µs", against }])
}

/// Microseconds a call, of the line about those in flight.
pub(super) fn each_in_flight(command: &mut Command) -> Outcome<f64> {
    let said = output(command)?;
    let line = said.lines().find(|line| line.starts_with("conc"));
    let line = line.ok_or_else(|| Failure::new(format!("no calls in flight in `{said}`")))?;
    Ok(1e6 / number_after(line, "calls_per_s=")?)
}

pub(super) fn p50(command: &mut Command) -> Outcome<f64> {
    number_after(&output(command)?, "p50_us=")
}

pub(super) fn skipped(name: &'static str, unit: &'static str) -> Row {
    Row { name, ours: f64::NAN, unit, against: Against::Skipped(NO_FLOORS.to_owned()) }
}
