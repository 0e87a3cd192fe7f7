//! Calls over HTTP keep-alive against a server in C, beside a client in C and the official SDK.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::calls::{each_in_flight, p50, skipped};
use super::cpus::Cpus;
use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools};
use crate::run::{Doing, Failure, Outcome};

const ROUNDS: usize = 5;
const CALLS: &str = "5000";
const IN_FLIGHT: &str = "64";
const IN_FLIGHT_CALLS: &str = "10000";
const MOST_TIMES_RAW: f64 = 2.2;
const LEAST_TIMES_POOLED: f64 = 3.0;
const LEAST_TIMES_DEFAULT: f64 = 4.0;
const POOLED: &str = "the official SDK, pooled";
const START: Duration = Duration::from_secs(5);

/// p50 of sequential calls, judged with client and server on one CPU.
pub(super) fn sequential(tools: &Tools) -> Outcome<Vec<Row>> {
    let Some(floors) = &tools.floors else { return Ok(vec![skipped("HTTP call p50", "µs")]) };
    let mut rows = Vec::new();
    for cpus in [Cpus::one(), Cpus::Any] {
        let (name, judged) = match cpus {
            Cpus::One(_) => ("HTTP call p50, one CPU", true),
            Cpus::Any => ("HTTP call p50, any CPU", rows.is_empty()),
            Cpus::Unknown => continue,
        };
        rows.extend(sequential_on(tools, floors, &cpus)?.into_iter().map(|(ours, against)| {
            let against = if judged { against } else { against.for_information() };
            Row { name, ours, unit: "µs", against }
        }));
    }
    Ok(rows)
}

fn sequential_on(tools: &Tools, floors: &Floors, cpus: &Cpus) -> Outcome<Vec<(f64, Against)>> {
    let measure = tools.measure()?;
    let server = Server::start(floors, cpus)?;
    let url = server.url();
    let ours = || p50(cpus.command(measure).args(["warm", CALLS, "0", "echo", "text", &url]));
    let raw = || p50(cpus.command(&floors.http_loop).args([&server.port.to_string(), CALLS]));
    let (time, value) = in_turns(ROUNDS, ours, raw)?;
    let against = Against::Floor { name: "the raw C client", value, most: MOST_TIMES_RAW };
    let mut rows = vec![(time, against)];
    for (name, pooled, least) in
        [(POOLED, true, LEAST_TIMES_POOLED), ("the official SDK", false, LEAST_TIMES_DEFAULT)]
    {
        let sdk = match &tools.sdk {
            Ok(sdk) => sdk,
            Err(why) => {
                rows.push((time, Against::Skipped(why.clone())));
                continue;
            }
        };
        let theirs = || p50(as_client(&mut cpus.command(sdk), pooled, [CALLS, "0", &url]));
        let (ours, value) = in_turns(ROUNDS, ours, theirs)?;
        rows.push((ours, Against::Peer { name, value, least }));
    }
    Ok(rows)
}

/// Time a call takes with 64 of them in flight, each on a connection of its own as HTTP/1.1 has it.
pub(super) fn in_flight(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "HTTP, 64 in flight, each";
    let Some(floors) = &tools.floors else { return Ok(vec![skipped(name, "µs")]) };
    let (measure, cpus) = (tools.measure()?, Cpus::Any);
    let server = Server::start(floors, &cpus)?;
    let (url, words) = (server.url(), [IN_FLIGHT_CALLS, IN_FLIGHT, "echo", "text"]);
    let ours = || each_in_flight(cpus.command(measure).arg("warm").args(words).arg(&url));
    let sdk = match &tools.sdk {
        Ok(sdk) => sdk,
        Err(why) => {
            let against = Against::Skipped(why.clone());
            return Ok(vec![Row { name, ours: ours()?, unit: "µs", against }]);
        }
    };
    let words = [IN_FLIGHT_CALLS, IN_FLIGHT, &url];
    let theirs = || each_in_flight(as_client(&mut cpus.command(sdk), true, words));
    let (ours, value) = in_turns(ROUNDS, ours, theirs)?;
    Ok(vec![Row { name, ours, unit: "µs", against: Against::Beside { name: POOLED, value } }])
}

/// The official SDK's client on the runtime that is best for it.
fn as_client<'a>(client: &'a mut Command, pooled: bool, words: [&str; 3]) -> &'a mut Command {
    if pooled {
        client.env("POOL", "1");
    }
    client.env("RT", "current").arg("warm").args(words)
}

/// The C server on a free port; it ends with this value.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(floors: &Floors, cpus: &Cpus) -> Outcome<Self> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.doing("find a free port")?.port();
        let mut command = cpus.command(&floors.http_echo);
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

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has no other end; a process that is gone already needs none.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}
