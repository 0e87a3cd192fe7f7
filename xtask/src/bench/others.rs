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
const SHARE_ROUNDS: usize = 60;
const LEAST_TIMES: f64 = 100.0;
const MOST_SHARE_MILLISECONDS: f64 = 20.0;
const WHY: &str = "fetched with --peers";

/// Another command line, and how it is told to call the light server.
struct Peer {
    name: &'static str,
    program: &'static str,
    /// `SERVER` stands for the light server's file.
    words: &'static [&'static str],
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "mcporter",
        program: "node/node_modules/.bin/mcporter",
        words: &["call", "--stdio", "SERVER", "echo", "text=hi"],
    },
    Peer {
        name: "the inspector",
        program: "node/node_modules/.bin/mcp-inspector",
        words: &[
            "--cli",
            "SERVER",
            "--method",
            "tools/call",
            "--tool-name",
            "echo",
            "--tool-arg",
            "text=hi",
        ],
    },
    Peer {
        name: "fastmcp",
        program: "python/bin/fastmcp",
        words: &[
            "call",
            "--command",
            "SERVER",
            "--target",
            "echo",
            "--input-json",
            r#"{"text":"hi"}"#,
        ],
    },
];

impl Peer {
    fn call(&self, place: &Path, server: &str, directory: &Path) -> Command {
        let mut call = Command::new(place.join(self.program));
        let words = self.words.iter().map(|word| if *word == "SERVER" { server } else { word });
        call.current_dir(directory).args(words);
        call
    }
}

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
        call.args(["echo.echo", "text=hi"]);
        timed(call)
    };
    let mut rows = Vec::new();
    for peer in PEERS {
        let call = || peer.call(&place, &echo, &tools.work);
        let works = output(&mut call()).and_then(|said| match said.contains("hi") {
            true => Ok(()),
            false => Err(Failure::new(format!("it answered `{}`", said.trim_end()))),
        });
        if let Err(failure) = works {
            let against = Against::Skipped(format!("{}: {failure}", peer.name));
            rows.push(Row { name, ours: f64::NAN, unit: "ms", against });
            continue;
        }
        let (ours, value) = in_turns(ROUNDS, ours, || timed(call()))?;
        let against = Against::Peer { name: peer.name, value, least: LEAST_TIMES };
        rows.push(Row { name, ours, unit: "ms", against });
    }
    Ok(rows)
}

/// A real server, and one call of it: as JSON, and as words.
struct Real {
    name: &'static str,
    program: &'static str,
    tool: &'static str,
    arguments: &'static str,
    word: &'static str,
}

const REAL: [Real; 2] = [
    Real {
        name: "own share, server-everything",
        program: "node/node_modules/.bin/mcp-server-everything",
        tool: "echo",
        arguments: r#"{"message":"hi"}"#,
        word: "message=hi",
    },
    Real {
        name: "own share, mcp-server-time",
        program: "python/bin/mcp-server-time",
        tool: "get_current_time",
        arguments: r#"{"timezone":"UTC"}"#,
        word: "timezone=UTC",
    },
];

/// Wall time of one call of real servers, less that of the C one-shot: of a call that nothing is in the way of. One
/// right after another waits until the server before has ended, which is the server's own time.
pub(super) fn own_share(tools: &Tools) -> Outcome<Vec<Row>> {
    let Some(floors) = &tools.floors else {
        return Ok(REAL.iter().map(|real| skipped(real.name, "ms")).collect());
    };
    if !tools.peers {
        return Ok(REAL.iter().map(|real| not_there(real.name)).collect());
    }
    let place = prepare_peers(tools);
    REAL.iter()
        .map(|real| share(tools, &floors.one_shot, &place.join(real.program), real))
        .collect()
}

fn share(tools: &Tools, one_shot: &Path, program: &Path, real: &Real) -> Outcome<Row> {
    let config = config_for(tools, program)?;
    let data = tools.work.join("data");
    let ours = || {
        let mut call = Command::new(&tools.plenipo);
        call.current_dir(&tools.work).env("XDG_DATA_HOME", &data);
        call.arg("call").arg("--config").arg(&config);
        call.args([&format!("real.{}", real.tool), real.word]);
        call
    };
    let theirs = || {
        let mut call = Command::new(one_shot);
        call.current_dir(&tools.work).args([real.tool, real.arguments]).arg(program);
        call
    };
    let (name, unit) = (real.name, "ms");
    if let Err(failure) = output(&mut theirs()) {
        let against = Against::Skipped(failure.to_string());
        return Ok(Row { name, ours: f64::NAN, unit, against });
    }
    output(&mut ours())?;
    let alone = |command: Command| {
        wait_for_ends(&data)?;
        timed(command)
    };
    let ours = difference(SHARE_ROUNDS, || alone(ours()), || alone(theirs()))?;
    wait_for_ends(&data)?;
    Ok(Row { name, ours, unit, against: Against::Most(MOST_SHARE_MILLISECONDS) })
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
