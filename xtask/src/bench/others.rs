//! One call by other command lines, and one of real servers: our own share of the time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::calls::{config_of, skipped, timed};
use super::stats::{Against, Row, difference, in_turns};
use super::tools::{Tools, prepare_peers};
use crate::run::{Doing, Failure, Outcome, output};

const ROUNDS: usize = 9;
/// A server's own start varies by far more than what is looked for.
const SHARE_ROUNDS: usize = 100;
const LEAST_TIMES: f64 = 100.0;
const MOST_SHARE_MILLISECONDS: f64 = 20.0;
const WHY: &str = "fetched with --peers";

/// Whole wall time of one call of the light server by other command lines.
pub(super) fn command_lines(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "one-shot call";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "ms")]) };
    if !tools.peers {
        return Ok(vec![not_there(name)]);
    }
    let place = prepare_peers(tools);
    let config = config_of(tools, floors)?;
    let echo = floors.echo.display().to_string();
    let ours = || {
        let mut call = Command::new(&tools.plenipo);
        call.current_dir(&tools.work).arg("call").arg("--config").arg(&config);
        timed(std::mem::replace(call.args(["echo.echo", "text=hi"]), Command::new("true")))
    };
    let mut rows = Vec::new();
    for (peer, program, words) in [
        (
            "mcporter",
            "node/node_modules/.bin/mcporter",
            vec!["call", "--stdio", &echo, "echo", "text=hi"],
        ),
        (
            "the inspector",
            "node/node_modules/.bin/mcp-inspector",
            vec![
                "--cli",
                &echo,
                "--method",
                "tools/call",
                "--tool-name",
                "echo",
                "--tool-arg",
                "text=hi",
            ],
        ),
        (
            "fastmcp",
            "python/bin/fastmcp",
            vec![
                "call",
                "--command",
                &echo,
                "--target",
                "echo",
                "--input-json",
                r#"{"text":"hi"}"#,
            ],
        ),
    ] {
        let program = place.join(program);
        let call = || {
            let mut call = Command::new(&program);
            call.current_dir(&tools.work).args(&words);
            call
        };
        let works = output(&mut call()).and_then(|said| match said.contains("hi") {
            true => Ok(()),
            false => Err(Failure::new(format!("it answered `{}`", said.trim_end()))),
        });
        if let Err(failure) = works {
            let against = Against::Skipped(format!("{peer}: {failure}"));
            rows.push(Row { name, ours: f64::NAN, unit: "ms", against });
            continue;
        }
        let (ours, value) = in_turns(ROUNDS, ours, || timed(call()))?;
        rows.push(Row {
            name,
            ours,
            unit: "ms",
            against: Against::Peer { name: peer, value, least: LEAST_TIMES },
        });
    }
    Ok(rows)
}

/// Wall time of one call of real servers, less that of the C one-shot: of a call that nothing is in the way of. One
/// right after another waits until the server before has ended, which is the server's own time.
pub(super) fn own_share(tools: &Tools) -> Outcome<Vec<Row>> {
    let names = ["own share, server-everything", "own share, mcp-server-time"];
    let Some(floors) = &tools.floors else {
        return Ok(names.into_iter().map(|name| skipped(name, "ms")).collect());
    };
    if !tools.peers {
        return Ok(names.into_iter().map(not_there).collect());
    }
    let place = prepare_peers(tools);
    let servers: [(&str, PathBuf, &str, &str, &str); 2] = [
        (
            names[0],
            place.join("node/node_modules/.bin/mcp-server-everything"),
            "echo",
            r#"{"message":"hi"}"#,
            "message=hi",
        ),
        (
            names[1],
            place.join("python/bin/mcp-server-time"),
            "get_current_time",
            r#"{"timezone":"UTC"}"#,
            "timezone=UTC",
        ),
    ];
    let data = tools.work.join("data");
    let mut rows = Vec::new();
    for (name, program, tool, arguments, word) in servers {
        let config = config_for(tools, &program)?;
        let ours = || {
            let mut call = Command::new(&tools.plenipo);
            call.current_dir(&tools.work).env("XDG_DATA_HOME", &data);
            call.arg("call").arg("--config").arg(&config);
            call.args([&format!("real.{tool}"), word]);
            call
        };
        let theirs = || {
            let mut call = Command::new(&floors.one_shot);
            call.current_dir(&tools.work).args([tool, arguments]).arg(&program);
            call
        };
        if let Err(failure) = output(&mut theirs()) {
            let against = Against::Skipped(failure.to_string());
            rows.push(Row { name, ours: f64::NAN, unit: "ms", against });
            continue;
        }
        output(&mut ours())?;
        let alone = |command: Command| {
            wait_for_ends(&data)?;
            timed(command)
        };
        let share = difference(SHARE_ROUNDS, || alone(ours()), || alone(theirs()))?;
        wait_for_ends(&data)?;
        let against = Against::Most(MOST_SHARE_MILLISECONDS);
        rows.push(Row { name, ours: share, unit: "ms", against });
    }
    Ok(rows)
}

/// Waits until no server that was handed over is ending.
fn wait_for_ends(data: &Path) -> Outcome {
    let ending = data.join("plenipo/ending");
    for lock in fs::read_dir(&ending).doing("look for servers that are ending")?.flatten() {
        let mut wait = Command::new("flock");
        output(wait.args(["--exclusive", "--timeout", "10"]).arg(lock.path()).arg("true"))?;
    }
    Ok(())
}

fn config_for(tools: &Tools, program: &Path) -> Outcome<PathBuf> {
    let config = tools.work.join("real.toml");
    let text = format!("[mcp_servers.real]\ncommand = {:?}\n", program.display().to_string());
    fs::write(&config, text).doing("write the benchmark's configuration")?;
    Ok(config)
}

fn not_there(name: &'static str) -> Row {
    Row { name, ours: f64::NAN, unit: "ms", against: Against::Skipped(WHY.to_owned()) }
}
