//! What many tools and long results cost. As a server: `measure load tools COUNT` lists tools,
//! `measure load result BYTES` answers every call with so much text. As a client: `measure load index SERVERS
//! COUNT` lists the tools of so many such servers, indexes them, looks each up, and prints times and memory.

use std::hint::black_box;
use std::io::{self, BufRead as _, Write as _};
use std::time::Instant;

use plenipo_connect::{Fleet, NameRules, StdioCommand, ToolIndex};
use plenipo_wire::{Incoming, RequestId};

use crate::{Failure, members, resident};

type Answer = fn(&mut dyn io::Write, &str, usize) -> io::Result<bool>;

pub(super) fn run(args: &[String]) -> Result<(String, bool), Failure> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let text = match *words {
        ["tools", count] => serve(count, tools).map(|()| String::new()),
        ["result", bytes] => serve(bytes, result).map(|()| String::new()),
        ["index", servers, count] => index(servers, count),
        _ => Err("read the arguments: tools COUNT, result BYTES, or index SERVERS COUNT".into()),
    };
    Ok((text?, true))
}

/// Answers requests; `answer` takes those it knows.
fn serve(size: &str, answer: Answer) -> Result<(), Failure> {
    let size = size.parse()?;
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Ok(Incoming::Request { id, method, params }) = Incoming::parse(line.as_bytes()) else {
            continue;
        };
        begin(&mut stdout, &id)?;
        let known = match &*method {
            "initialize" => {
                let version = params.and_then(|params| {
                    let found = plenipo_wire::object::member(params, "protocolVersion")?;
                    plenipo_wire::object::text(found)
                });
                write!(
                    stdout,
                    "\"result\":{{\"protocolVersion\":\"{}\",\"capabilities\":{{\"tools\":{{}}}},\
                     \"serverInfo\":{{\"name\":\"load\",\"version\":\"0\"}}}}}}",
                    version.as_deref().unwrap_or("2025-11-25")
                )?;
                true
            }
            method => answer(&mut stdout, method, size)?,
        };
        if !known {
            write!(stdout, "\"error\":{{\"code\":-32601,\"message\":\"no such method\"}}}}")?;
        }
        writeln!(stdout)?;
        stdout.flush()?;
    }
    Ok(())
}

fn begin(out: &mut dyn io::Write, id: &RequestId) -> io::Result<()> {
    write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},")
}

/// About a kibibyte a tool.
fn tools(out: &mut dyn io::Write, method: &str, count: usize) -> io::Result<bool> {
    if method != "tools/list" {
        return Ok(false);
    }
    let prose = "Finds what is asked for. ".repeat(24);
    write!(out, "\"result\":{{\"tools\":[")?;
    for number in 0..count {
        let comma = if number > 0 { "," } else { "" };
        write!(
            out,
            "{comma}{{\"name\":\"find.things-{number}\",\"description\":\"{prose}\",\
             \"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"query\":{{\"type\":\"string\"}},\
             \"limit\":{{\"type\":\"integer\"}}}},\"required\":[\"query\"]}}}}"
        )?;
    }
    write!(out, "]}}}}").map(|()| true)
}

/// Lines of text, so that a tenth of them are escapes.
fn result(out: &mut dyn io::Write, method: &str, bytes: usize) -> io::Result<bool> {
    const LINE: &str = "0123456789abcdefgh\\n";
    match method {
        "tools/list" => {
            write!(out, "\"result\":{{\"tools\":[{{\"name\":\"big\",\"inputSchema\":{{}}}}]}}}}")?;
        }
        "tools/call" => {
            write!(out, "\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"")?;
            for _ in 0..bytes / LINE.len() {
                out.write_all(LINE.as_bytes())?;
            }
            write!(out, "\"}}]}}}}")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn index(servers: &str, count: &str) -> Result<String, Failure> {
    let servers: usize = servers.parse()?;
    let mut command = StdioCommand::new(std::env::current_exe()?);
    command.args(["load", "tools", count]);
    let members = members("load", servers, &command)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let before = resident();
        let mut connections = Vec::with_capacity(servers);
        for (_, started) in Fleet::start(members).finish().await {
            connections.push(started?);
        }
        let start = Instant::now();
        let (index, failed) = ToolIndex::of(&connections, &NameRules::default()).await;
        let indexed = start.elapsed();
        if let Some(error) = failed.into_iter().next() {
            return Err(error.into());
        }
        let taken = resident().saturating_sub(before);
        let names: Vec<String> = index.tools().map(|tool| tool.model_name().to_string()).collect();
        let start = Instant::now();
        for name in &names {
            black_box(index.by_model_name(name).ok_or("find every tool")?);
        }
        let each = start.elapsed().as_secs_f64() * 1e9 / names.len().max(1) as f64;
        let text = format!(
            "tools={} index_ms={:.2} lookup_ns={each:.0} taken_kb={taken}\n",
            index.len(),
            indexed.as_secs_f64() * 1e3
        );
        for connection in &connections {
            connection.shut_down().await;
        }
        Ok(text)
    })
}
