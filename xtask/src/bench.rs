//! `cargo xtask bench`: how we compare with C programs that do the least possible.
//!
//! Absolute times are noise between machines; ratios of interleaved runs (A B A B) are not. The
//! floors are C programs outside this repository, in `$PLENIPO_BENCH_DIR`; without them only the
//! launcher's memory and a thousand launches are measured, and the rest is said to be skipped. Runs go at real-time priority
//! if permitted.
//!
//! What a library costs its host is measured with the default build, which is what hosts link; what the program costs,
//! with the build that was asked for.

mod calls;
mod cpus;
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
    /// Programs are measured as they were last built; only those that are not there are built.
    built: bool,
    /// Only the parts with this in their names.
    only: Option<String>,
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
            only: None,
            check: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "all" => {}
                "launch" => (options.calls, options.tokens) = (false, false),
                "calls" => (options.launch, options.tokens) = (false, false),
                "tokens" => (options.launch, options.calls) = (false, false),
                "--peers" => options.peers = true,
                "--dist" => options.dist = true,
                "--built" => options.built = true,
                "--only" => options.only = Some(words.next().cloned().unwrap_or_default()),
                "--check" => options.check = true,
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            }
        }
        if !(options.launch || options.calls || options.tokens) {
            return Err(Failure::new("name one of `launch`, `calls`, `tokens`, `all`"));
        }
        if options.parts().next().is_none() && !options.wants_tokens() {
            let names: Vec<&str> = PARTS.iter().map(|part| part.name).chain([TOKENS]).collect();
            return Err(Failure::new(format!("--only takes a part of: {}", names.join(", "))));
        }
        Ok(options)
    }

    /// What is asked for of what needs built programs.
    fn parts(&self) -> impl Iterator<Item = &'static Part> {
        let asked = |part: &&Part| match part.of {
            Of::Launch => self.launch,
            Of::Library | Of::Program => self.calls,
        };
        PARTS.iter().filter(asked).filter(|part| self.names(part.name))
    }

    fn wants_tokens(&self) -> bool {
        self.tokens && self.names(TOKENS)
    }

    fn names(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// What a part measures, and so which build it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Launch,
    Library,
    Program,
}

/// One measurement, some rows.
#[derive(Debug)]
struct Part {
    name: &'static str,
    of: Of,
    measure: fn(&Tools) -> Outcome<Vec<Row>>,
}

const fn part(name: &'static str, of: Of, measure: fn(&Tools) -> Outcome<Vec<Row>>) -> Part {
    Part { name, of, measure }
}

const TOKENS: &str = "tokens";
const PARTS: [Part; 16] = [
    part("launch", Of::Launch, launch::to_first_instruction),
    part("launch memory", Of::Launch, launch::peak_memory),
    part("many launches", Of::Launch, launch::a_thousand),
    part("one-shot call", Of::Program, calls::one_shot),
    part("memory of a call", Of::Program, load::call_memory),
    part("other command lines", Of::Program, others::command_lines),
    part("real servers", Of::Program, others::own_share),
    part("tools of one server", Of::Program, listing::one_server),
    part("large result", Of::Program, load::large_result),
    part("warm call", Of::Library, calls::warm),
    part("calls in flight", Of::Library, calls::in_flight),
    part("HTTP call", Of::Library, http::sequential),
    part("HTTP calls in flight", Of::Library, http::in_flight),
    part("memory of a connection", Of::Library, listing::memory),
    part("fleet", Of::Library, listing::fleet),
    part("many tools", Of::Library, load::index),
];

/// Builds, measures, prints one row a bar.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Outcome {
    let (mut measured, mut problems) = (Vec::new(), Vec::new());
    let mut measure = |name: &str, part: Outcome<(Option<Of>, Vec<Row>)>| match part {
        Ok(part) => measured.push(part),
        Err(failure) => problems.push(format!("{name}: {failure}")),
    };
    let parts: Vec<&Part> = options.parts().collect();
    let tools = (!parts.is_empty()).then(|| Tools::build(workspace, options)).transpose()?;
    tools::real_time();
    for part in parts {
        let Some(tools) = &tools else { break };
        measure(part.name, (part.measure)(tools).map(|rows| (Some(part.of), rows)));
    }
    if options.wants_tokens() {
        measure(TOKENS, tokens::reads(workspace).map(|rows| (None, rows)));
    }
    print_rows(&measured, options);
    for problem in &problems {
        println!("bench: not measured: {problem}");
    }
    let rows = measured.iter().flat_map(|(_, rows)| rows);
    let missed = rows.filter(|row| row.missed()).count();
    if !problems.is_empty() {
        return Err(Failure::new(format!("bench: {} not measured", problems.len())));
    }
    if options.check && missed > 0 {
        return Err(Failure::new(format!("bench: {missed} bar(s) missed")));
    }
    Ok(())
}

/// Each build's rows below its name.
fn print_rows(measured: &[(Option<Of>, Vec<Row>)], options: &Options) {
    let mut last = None;
    for (of, rows) in measured {
        if of.is_none() || *of != last {
            match of {
                Some(Of::Library) => {
                    println!("\nthe library, as hosts link it (`measure`, the default build):")
                }
                Some(Of::Program) if options.dist && !options.launch => {
                    println!("\nthe program (the release, static):")
                }
                Some(Of::Program) => println!("\nthe program (the default build):"),
                Some(Of::Launch) | None => println!(),
            }
            last = *of;
        }
        for row in rows {
            println!("{row}");
        }
    }
}
