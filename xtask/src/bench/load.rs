//! What much costs: ten thousand tools, a result of 100 MiB, the memory of one call.

use std::fs;
use std::process::Command;

use super::calls::{config_of, skipped};
use super::stats::{Against, Row, median};
use super::tools::{Tools, number_after};
use crate::run::{Doing, Failure, Outcome, output};

const ROUNDS: usize = 5;
const SERVERS: &str = "20";
const TOOLS_EACH: &str = "500";
const MOST_INDEX_MILLISECONDS: f64 = 50.0;
const MOST_INDEX_MEBIBYTES: f64 = 40.0;
const MOST_LOOKUP_NANOSECONDS: f64 = 2_000.0;
const MOST_CALL_MEBIBYTES: f64 = 12.0;
const LARGE_MEBIBYTES: usize = 100;
const MOST_TIMES_SIZE: f64 = 2.0;
/// A doubled size may take this much more than double the time.
const MOST_GROWTH: f64 = 3.0;

/// Ten thousand tools of twenty servers.
pub(super) fn index(tools: &Tools) -> Outcome<Vec<Row>> {
    let measure = tools.measure()?;
    let mut figures = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let said = output(Command::new(measure).args(["load", "index", SERVERS, TOOLS_EACH]))?;
        figures.0.push(number_after(&said, "index_ms=")?);
        figures.1.push(number_after(&said, "lookup_ns=")?);
        figures.2.push(number_after(&said, "taken_kb=")? / 1024.0);
    }
    let most = |name, values, unit, most| Row {
        name,
        ours: median(values),
        unit,
        against: Against::Most(most),
    };
    Ok(vec![
        most("10,000 tools indexed", figures.0, "ms", MOST_INDEX_MILLISECONDS),
        most("10,000 tools, a look-up", figures.1, "ns", MOST_LOOKUP_NANOSECONDS),
        most("10,000 tools, memory", figures.2, "MiB", MOST_INDEX_MEBIBYTES),
    ])
}

/// The highest resident size of `plenipo call` of the light server.
pub(super) fn call_memory(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "one-shot call peak RSS";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "MiB")]) };
    let config = config_of(tools, floors)?.display().to_string();
    let words = ["call", "--config", &config, "echo.echo", "text=hi"];
    let (peak, _) = peak(tools, &words)?;
    Ok(vec![Row { name, ours: peak, unit: "MiB", against: Against::Most(MOST_CALL_MEBIBYTES) }])
}

/// A result of 100 MiB, as text and as JSON, into a file; and one half as long, to see how time grows.
pub(super) fn large_result(tools: &Tools) -> Outcome<Vec<Row>> {
    let measure = tools.measure()?;
    let mut rows = Vec::new();
    for (name, json) in [("100 MiB result, text, RSS", false), ("100 MiB result, JSON, RSS", true)]
    {
        let (ours, _) = large(tools, measure, LARGE_MEBIBYTES, json)?;
        let value = LARGE_MEBIBYTES as f64;
        let against = Against::Floor { name: "its size", value, most: MOST_TIMES_SIZE };
        rows.push(Row { name, ours, unit: "MiB", against });
    }
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        times.0.push(large(tools, measure, LARGE_MEBIBYTES, false)?.1);
        times.1.push(large(tools, measure, LARGE_MEBIBYTES / 2, false)?.1);
    }
    let (ours, value) = (median(times.0), median(times.1));
    let against = Against::Floor { name: "one of 50 MiB", value, most: MOST_GROWTH };
    rows.push(Row { name: "100 MiB result, time", ours, unit: "ms", against });
    Ok(rows)
}

fn large(
    tools: &Tools,
    measure: &std::path::Path,
    mebibytes: usize,
    json: bool,
) -> Outcome<(f64, f64)> {
    let config = tools.work.join("large.toml");
    let bytes = mebibytes << 20;
    let text = format!(
        "[mcp_servers.load]\ncommand = {:?}\nargs = [\"load\", \"result\", \"{bytes}\"]\n",
        measure.display().to_string()
    );
    fs::write(&config, text).doing("write the benchmark's configuration")?;
    let config = config.display().to_string();
    let limit = format!("{}MiB", mebibytes * 5 / 4);
    let mut words = vec!["call", "--config", &config, "load.big", "--max-message-size", &limit];
    words.extend(json.then_some("--json"));
    peak(tools, &words)
}

/// MiB and milliseconds of a run of ours with its output in a file, which has to be there.
fn peak(tools: &Tools, words: &[&str]) -> Outcome<(f64, f64)> {
    let file = tools.work.join("output");
    let begin = std::time::Instant::now();
    let mut run = Command::new(&tools.peak);
    let said = output(run.current_dir(&tools.work).arg(&file).arg(&tools.plenipo).args(words))?;
    let time = begin.elapsed().as_secs_f64() * 1e3;
    let written = fs::metadata(&file).doing("look at the output")?.len();
    fs::remove_file(&file).doing("remove the output")?;
    if written == 0 {
        return Err(Failure::new("a call wrote nothing"));
    }
    Ok((number_after(&said, "peak_kb=")? / 1024.0, time))
}
