//! Warm calls: `measure warm N K TOOL KEY URL|CMD…` calls `TOOL` with `{KEY: "hello …"}` N times one
//! after the other and, when K is above 0, N times with K in flight, and prints p50, p99 and calls a
//! second like the raw loops in C it is compared with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plenipo_connect::{
    CallRequest, ConnectOptions, Connection, Endpoint, EraHint, HttpEndpoint, ServerName,
    StdioCommand,
};
use plenipo_wire::Fragment;
use tokio::task::JoinSet;

use crate::{Failure, resident};

const WARM_UP: usize = 200;

pub(super) fn run(args: &[String]) -> Result<(String, bool), Failure> {
    let [count, in_flight, tool, key, target, rest @ ..] = args else {
        return Err("read the arguments: N K TOOL KEY URL|CMD…".into());
    };
    let (count, in_flight) = (count.parse::<usize>()?.max(1), in_flight.parse::<usize>()?);
    let endpoint = if target.starts_with("http://") {
        Endpoint::from(HttpEndpoint::new(target)?)
    } else {
        let mut command = StdioCommand::new(target);
        command.args(rest).environment(std::env::vars_os());
        Endpoint::from(command)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let name = ServerName::new("warm").ok_or("name the server")?;
        let mut options = ConnectOptions::default();
        options.era = EraHint::Legacy;
        let connection = Connection::open(name, &endpoint, options).await?;
        let caller = Arc::new(Caller { connection, tool: tool.clone(), key: key.clone() });
        // In a task, as the calls of hosts are.
        let sequential = tokio::spawn(sequential(Arc::clone(&caller), count));
        let mut lines = vec![sequential.await??];
        if in_flight > 0 {
            lines.push(concurrent(&caller, count, in_flight).await?);
        }
        lines.push(format!("client_rss_kb={}\n", resident()));
        caller.connection.shut_down().await;
        Ok((lines.concat(), true))
    })
}

struct Caller {
    connection: Connection,
    tool: String,
    key: String,
}

impl Caller {
    async fn call(&self, number: usize) -> Result<Duration, Failure> {
        let begin = Instant::now();
        let arguments =
            Fragment::object(|object| object.string(&self.key, &format!("hello {number}")));
        let authority = self.connection.capture(None).await;
        let request = CallRequest::new(&*self.tool, Some(arguments), authority);
        self.connection.call(request).await?;
        Ok(begin.elapsed())
    }
}

async fn sequential(caller: Arc<Caller>, count: usize) -> Result<String, Failure> {
    for number in 0..WARM_UP {
        caller.call(number).await?;
    }
    let mut times = Vec::with_capacity(count);
    let start = Instant::now();
    for number in 0..count {
        times.push(caller.call(number).await?);
    }
    Ok(report("seq", times, start.elapsed()))
}

async fn concurrent(
    caller: &Arc<Caller>,
    count: usize,
    in_flight: usize,
) -> Result<String, Failure> {
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..in_flight {
        let caller = Arc::clone(caller);
        workers.spawn(async move {
            let mut times = Vec::with_capacity(count / in_flight + 1);
            for number in (worker..count).step_by(in_flight) {
                times.push(caller.call(number).await?);
            }
            Ok::<_, Failure>(times)
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(worker) = workers.join_next().await {
        times.extend(worker??);
    }
    Ok(report(&format!("conc{in_flight}"), times, start.elapsed()))
}

fn report(label: &str, mut times: Vec<Duration>, wall: Duration) -> String {
    times.sort_unstable();
    let at = |per_mille: usize| {
        let index = times.len().saturating_mul(per_mille) / 1000;
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1e6
    };
    let calls_per_second = times.len() as f64 / wall.as_secs_f64();
    format!(
        "{label} n={} p50_us={:.1} p99_us={:.1} calls_per_s={calls_per_second:.0}\n",
        times.len(),
        at(500),
        at(990)
    )
}
