//! Listing tools: of one server by the command line, and of fifty at once.

use std::process::Command;

use super::calls::{config_of, skipped, timed};
use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools, number_after};
use crate::run::{Failure, Outcome, output};

const ROUNDS: usize = 100;
const FLEET_ROUNDS: usize = 15;
const FLEET: &str = "50";
const MOST_MILLISECONDS: f64 = 10.0;
const MOST_TIMES_SDK: f64 = 1.0;
const MOST_KIBIBYTES_EACH: f64 = 80.0;

/// Whole wall time of `plenipo tools` on one server that answers at once: an upper bound of what is its own.
pub(super) fn one_server(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "tools of one server";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "ms")]) };
    let config = config_of(tools, floors)?;
    let list = || {
        let mut list = Command::new(&tools.plenipo);
        list.current_dir(&tools.work).args(["tools", "echo", "--config"]).arg(&config);
        list
    };
    if !output(&mut list())?.contains("echo(text") {
        return Err(Failure::new("the tools of the C server were not listed"));
    }
    let (ours, _) = in_turns(ROUNDS, || timed(list()), || Ok(0.0))?;
    Ok(vec![Row { name, ours, unit: "ms", against: Against::Most(MOST_MILLISECONDS) }])
}

/// What this library takes for a connection.
pub(super) fn memory(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "memory of a connection";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "KiB")]) };
    let said = output(&mut fan(tools, floors)?)?;
    let ours = number_after(&said, "per_conn_kb=")?;
    Ok(vec![Row { name, ours, unit: "KiB", against: Against::Most(MOST_KIBIBYTES_EACH) }])
}

/// Fifty servers started and listed at once, interleaved with the official SDK.
pub(super) fn fleet(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "50 servers started, listed";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "ms")]) };
    let ours = || number_after(&output(&mut fan(tools, floors)?)?, "wall_ms=");
    let sdk = match &tools.sdk {
        Ok(sdk) => sdk,
        Err(why) => {
            let against = Against::Skipped(why.clone());
            return Ok(vec![Row { name, ours: ours()?, unit: "ms", against }]);
        }
    };
    let theirs = || {
        let mut client = Command::new(sdk);
        client.env("RT", "current").args(["fan", FLEET]).arg(&floors.echo);
        number_after(&output(&mut client)?, "wall_ms=")
    };
    let (ours, value) = in_turns(FLEET_ROUNDS, ours, theirs)?;
    let against = Against::Floor { name: "the official SDK", value, most: MOST_TIMES_SDK };
    Ok(vec![Row { name, ours, unit: "ms", against }])
}

fn fan(tools: &Tools, floors: &Floors) -> Outcome<Command> {
    let mut command = Command::new(tools.measure()?);
    command.args(["fan", FLEET]).arg(&floors.echo);
    Ok(command)
}
