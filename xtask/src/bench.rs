//! `cargo xtask bench`: how we compare with C programs that do the least possible.
//!
//! Absolute times are noise between machines; ratios of interleaved runs (A B A B) are not. The
//! floors are C programs outside this repository, in `$PLENIPO_BENCH_DIR`; without them only the
//! launcher's memory and a thousand launches are measured, and the rest is said to be skipped. Runs go at real-time priority
//! if permitted.

mod calls;
mod http;
mod launch;
mod listing;
mod load;
mod others;
mod stats;
mod tokens;
mod tools;

use crate::run::{Failure, Outcome};
use crate::workspace::Workspace;
use stats::Row;
use tools::Tools;

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    launch: bool,
    calls: bool,
    tokens: bool,
    peers: bool,
    dist: bool,
    /// Programs are measured as they were last built.
    built: bool,
    check: bool,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Outcome<Self> {
        let mut options = Self {
            launch: true,
            calls: true,
            tokens: true,
            peers: false,
            dist: false,
            built: false,
            check: false,
        };
        for word in words {
            match word.as_str() {
                "all" => {}
                "launch" => (options.calls, options.tokens) = (false, false),
                "calls" => (options.launch, options.tokens) = (false, false),
                "tokens" => (options.launch, options.calls) = (false, false),
                "--peers" => options.peers = true,
                "--dist" => options.dist = true,
                "--built" => options.built = true,
                "--check" => options.check = true,
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            }
        }
        if options.launch || options.calls || options.tokens {
            return Ok(options);
        }
        Err(Failure::new("name one of `launch`, `calls`, `tokens`, `all`"))
    }
}

/// Builds, measures, prints one row a bar.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Outcome {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    let mut measure = |name: &str, measured: Outcome<Vec<Row>>| match measured {
        Ok(measured) => rows.extend(measured),
        Err(failure) => problems.push(format!("{name}: {failure}")),
    };
    let wants_programs = options.launch || options.calls;
    let tools = wants_programs.then(|| Tools::build(workspace, options)).transpose()?;
    tools::real_time();
    if let Some(tools) = tools.as_ref().filter(|_| options.launch) {
        measure("launch", launch::to_first_instruction(tools));
        measure("memory", launch::peak_memory(tools));
        measure("many launches", launch::a_thousand(tools));
    }
    if let Some(tools) = tools.as_ref().filter(|_| options.calls) {
        measure("one-shot call", calls::one_shot(tools));
        measure("memory of a call", load::call_memory(tools));
        measure("other command lines", others::command_lines(tools));
        measure("real servers", others::own_share(tools));
        measure("warm call", calls::warm(tools));
        measure("calls in flight", calls::in_flight(tools));
        measure("HTTP", http::sequential(tools));
        measure("tools", listing::one_server(tools));
        measure("fleet", listing::fleet(tools));
        measure("many tools", load::index(tools));
        measure("large result", load::large_result(tools));
    }
    if options.tokens {
        measure("tokens", tokens::reads(workspace));
    }
    println!();
    for row in &rows {
        println!("{row}");
    }
    for problem in &problems {
        println!("bench: not measured: {problem}");
    }
    let missed = rows.iter().filter(|row| row.missed()).count();
    if !problems.is_empty() {
        return Err(Failure::new(format!("bench: {} not measured", problems.len())));
    }
    if options.check && missed > 0 {
        return Err(Failure::new(format!("bench: {missed} bar(s) missed")));
    }
    Ok(())
}
