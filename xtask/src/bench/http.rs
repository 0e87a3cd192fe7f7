//! Calls over HTTP keep-alive against a server in C, beside a client in C and the official SDK.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::calls::skipped;
use super::stats::{Against, Row, in_turns};
use super::tools::{Tools, number_after};
use crate::run::{Doing, Failure, Outcome, output};

const ROUNDS: usize = 5;
const CALLS: &str = "5000";
const MOST_TIMES_RAW: f64 = 2.2;
const LEAST_TIMES_POOLED: f64 = 3.0;
const LEAST_TIMES_DEFAULT: f64 = 4.0;
const START: Duration = Duration::from_secs(5);

/// p50 of sequential calls.
pub(super) fn sequential(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "HTTP call p50";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "µs")]) };
    let measure = tools.measure()?;
    let server = Server::start(&floors.http_echo)?;
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let p50 = |command: &mut Command| number_after(&output(command)?, "p50_us=");
    let ours = || p50(Command::new(measure).args(["warm", CALLS, "0", "echo", "text", &url]));
    let raw = || p50(Command::new(&floors.http_loop).args([&server.port.to_string(), CALLS]));
    let (time, value) = in_turns(ROUNDS, ours, raw)?;
    let against = Against::Floor { name: "the raw C client", value, most: MOST_TIMES_RAW };
    let mut rows = vec![Row { name, ours: time, unit: "µs", against }];
    for (peer, pooled, least) in [
        ("the official SDK, pooled", true, LEAST_TIMES_POOLED),
        ("the official SDK", false, LEAST_TIMES_DEFAULT),
    ] {
        let sdk = match &tools.sdk {
            Ok(sdk) => sdk,
            Err(why) => {
                let against = Against::Skipped(why.clone());
                rows.push(Row { name, ours: time, unit: "µs", against });
                continue;
            }
        };
        let theirs = || {
            let mut client = Command::new(sdk);
            client.env("RT", "current").args(["warm", CALLS, "0", &url]);
            if pooled {
                client.env("POOL", "1");
            }
            p50(&mut client)
        };
        let (ours, value) = in_turns(ROUNDS, ours, theirs)?;
        rows.push(Row {
            name,
            ours,
            unit: "µs",
            against: Against::Peer { name: peer, value, least },
        });
    }
    Ok(rows)
}

/// The C server on a free port; it ends with this value.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &std::path::Path) -> Outcome<Self> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.doing("find a free port")?.port();
        let mut command = Command::new(program);
        command.arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        let server = Self { child: command.spawn().doing("start the C server")?, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begin.elapsed() > START {
                return Err(Failure::new("the C server does not listen"));
            }
            std::thread::yield_now();
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has no other end; a process that is gone already needs none.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}
