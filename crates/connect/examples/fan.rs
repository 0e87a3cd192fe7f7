//! Starts many servers at once: `fan N CMD…` starts `CMD` N times over stdio, lists the tools of each,
//! and prints the wall time and the memory each connection takes, like the peer it is compared with.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use plenipo_connect::{
    ConnectOptions, EraHint, Fleet, Member, Readiness, ServerName, StdioCommand,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(report) => match io::stdout().write_all(report.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            let shown = writeln!(io::stderr(), "failed to {error}");
            ExitCode::from(if shown.is_ok() { 1 } else { 2 })
        }
    }
}

fn run(args: &[String]) -> Result<String, Failure> {
    let [count, program, rest @ ..] = args else {
        return Err("read the arguments: N CMD…".into());
    };
    let count = count.parse::<usize>()?.max(1);
    let mut command = StdioCommand::new(program);
    command.args(rest).environment(std::env::vars_os());
    let mut options = ConnectOptions::default();
    options.era = EraHint::Legacy;
    let names = (0..count).map(|number| ServerName::new(&format!("fan-{number}")));
    let names = names.collect::<Option<Vec<_>>>().ok_or("name the servers")?;
    let members = names.into_iter().map(|name| {
        let mut member = Member::new(name, command.clone(), options.clone());
        member.readiness = Readiness::Catalog;
        member
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let before = resident_kib();
        let start = Instant::now();
        let started = Fleet::start(members).finish().await;
        let wall = start.elapsed().as_secs_f64() * 1e3;
        let after = resident_kib();
        let mut tools = 0;
        let mut connections = Vec::with_capacity(count);
        for (_, started) in started {
            let connection = started?;
            tools += connection.catalog().await?.tools().count();
            connections.push(connection);
        }
        for connection in &connections {
            connection.shut_down().await;
        }
        let each = after.saturating_sub(before) as f64 / count as f64;
        Ok(format!(
            "fan n={count} tools={tools} wall_ms={wall:.1} client_rss_kb={after} base_kb={before} \
             per_conn_kb={each:.0}\n"
        ))
    })
}

/// What this process has in memory; 0 where the system does not say.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}
