//! Starts many servers at once: `measure fan N CMD…` starts `CMD` N times over stdio, lists the tools of each,
//! and prints the wall time and the memory each connection takes, like the peer it is compared with.

use std::time::Instant;

use plenipo_connect::{Fleet, StdioCommand};

use crate::{Failure, members, resident};

pub(super) fn run(args: &[String]) -> Result<(String, bool), Failure> {
    let [count, program, rest @ ..] = args else {
        return Err("read the arguments: N CMD…".into());
    };
    let count = count.parse::<usize>()?.max(1);
    let mut command = StdioCommand::new(program);
    command.args(rest).environment(std::env::vars_os());
    let members = members("fan", count, &command)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let before = resident();
        let start = Instant::now();
        let started = Fleet::start(members).finish().await;
        let wall = start.elapsed().as_secs_f64() * 1e3;
        let after = resident();
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
        let text = format!(
            "fan n={count} tools={tools} wall_ms={wall:.1} client_rss_kb={after} base_kb={before} \
             per_conn_kb={each:.0}\n"
        );
        Ok((text, true))
    })
}
