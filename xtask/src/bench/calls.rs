//! Tool calls on a stdio server written in C that answers at once: one call from nothing, and
//! calls over a warm connection.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools, number_after};
use crate::run::{Doing, Failure, Outcome, output};

const ONE_SHOT_ROUNDS: usize = 200;
const WARM_ROUNDS: usize = 5;
const WARM_CALLS: &str = "5000";
const MOST_TIMES_ONE_SHOT: f64 = 2.5;
const MOST_TIMES_RAW_LOOP: f64 = 2.2;
const LEAST_TIMES_SDK: f64 = 1.5;
const NO_FLOORS: &str = "the C server and clients are not there";

/// Whole wall time of `plenipo call`, interleaved with a C program that does the same.
pub(super) fn one_shot(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "one-shot call";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "ms")]) };
    let config = tools.work.join("bench.toml");
    let text = format!("[mcp_servers.echo]\ncommand = {:?}\n", floors.echo.display().to_string());
    fs::write(&config, text).doing("write the benchmark's configuration")?;
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

/// Milliseconds from before the start to after the end.
fn timed(mut command: Command) -> Outcome<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().doing("start a call")?;
    let time = start.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(time) } else { Err(Failure::new(format!("a call failed ({status})"))) }
}

/// p50 of sequential calls over one connection, interleaved with a raw loop in C, and with the
/// official SDK on its current-thread runtime when that was built.
pub(super) fn warm(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "warm call p50";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "µs")]) };
    let Some(warm) = &tools.warm else {
        return Err(Failure::new("crates/connect/examples/warm.rs does not exist"));
    };
    let ours = || raw_loop(warm, floors);
    let (time, value) = in_turns(WARM_ROUNDS, ours, || raw_loop(&floors.raw_loop, floors))?;
    let against = Against::Floor { name: "the raw C loop", value, most: MOST_TIMES_RAW_LOOP };
    let against_floor = Row { name, ours: time, unit: "µs", against };
    let Some(sdk) = &tools.sdk else {
        let against = Against::Skipped("the official SDK is built with --peers".to_owned());
        return Ok(vec![against_floor, Row { name, ours: time, unit: "µs", against }]);
    };
    let (time, value) = in_turns(WARM_ROUNDS, ours, || sdk_p50(sdk, floors))?;
    let against = Against::Peer { name: "the official SDK", value, least: LEAST_TIMES_SDK };
    Ok(vec![against_floor, Row { name, ours: time, unit: "µs", against }])
}

/// Ours takes the arguments of the loop in C.
fn raw_loop(client: &Path, floors: &Floors) -> Outcome<f64> {
    p50(Command::new(client).args([WARM_CALLS, "0", "echo", "text"]).arg(&floors.echo))
}

fn sdk_p50(sdk: &Path, floors: &Floors) -> Outcome<f64> {
    let mut client = Command::new(sdk);
    p50(client.env("RT", "current").args(["warm", WARM_CALLS, "0"]).arg(&floors.echo))
}

fn p50(command: &mut Command) -> Outcome<f64> {
    number_after(&output(command)?, "p50_us=")
}

fn skipped(name: &'static str, unit: &'static str) -> Row {
    Row { name, ours: f64::NAN, unit, against: Against::Skipped(NO_FLOORS.to_owned()) }
}
