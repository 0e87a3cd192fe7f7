//! What calls, servers and tools cost, for `cargo xtask bench calls`; and the client of `cargo xtask soak`.
//! One program, because linking it as a release takes longer than measuring.
//!
//! `measure warm N K TOOL KEY URL|CMD…`, `measure fan N CMD…`, `measure load …`, `measure soak …`: see the
//! modules. Each prints lines of `key=value`.

#![forbid(unsafe_code)]

mod fan;
mod load;
mod soak;
mod warm;

use std::io::{self, Write as _};
use std::process::ExitCode;

use plenipo_connect::{ConnectOptions, EraHint, Member, Readiness, ServerName, StdioCommand};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let measured = match args.split_first() {
        Some((what, rest)) => match what.as_str() {
            "warm" => warm::run(rest),
            "fan" => fan::run(rest),
            "load" => load::run(rest),
            "soak" => soak::run(rest),
            _ => Err("read the arguments: warm, fan, load or soak first".into()),
        },
        None => Err("read the arguments: warm, fan, load or soak".into()),
    };
    let written = measured.and_then(|(report, fine)| {
        io::stdout().write_all(report.as_bytes())?;
        Ok(fine)
    });
    match written {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody to tell: the exit code still says it.
            writeln!(io::stderr(), "failed to {error}").unwrap_or_default();
            ExitCode::from(2)
        }
    }
}

/// So many servers of one command, known to be of an older revision, to be listed when they are started.
fn members(prefix: &str, count: usize, command: &StdioCommand) -> Result<Vec<Member>, Failure> {
    let mut options = ConnectOptions::default();
    options.era = EraHint::Legacy;
    let member = |number| {
        let name = ServerName::new(&format!("{prefix}-{number}")).ok_or("name the servers")?;
        let mut member = Member::new(name, command.clone(), options.clone());
        member.readiness = Readiness::Catalog;
        Ok(member)
    };
    (0..count).map(member).collect()
}

/// What this process has in memory, in KiB; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}
