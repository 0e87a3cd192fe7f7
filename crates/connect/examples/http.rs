//! Times warm sequential calls over HTTP: `http N K TOOL KEY URL` calls `TOOL` with `{KEY: "hello …"}`
//! N times one after the other and, when K is above 0, N times with K in flight, and prints p50, p99
//! and calls a second like the raw C loop it is compared with.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plenipo_connect::{CallRequest, ConnectOptions, Connection, EraHint, HttpEndpoint, ServerName};
use plenipo_wire::Fragment;
use tokio::task::JoinSet;

const WARM_UP: usize = 200;

type Failure = Box<dyn std::error::Error + Send + Sync>;

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
    let [count, in_flight, tool, key, url] = args else {
        return Err("read the arguments: N K TOOL KEY URL".into());
    };
    let (count, in_flight) = (count.parse::<usize>()?.max(1), in_flight.parse::<usize>()?);
    let endpoint = HttpEndpoint::new(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let name = ServerName::new("http").ok_or("name the server")?;
        let mut options = ConnectOptions::default();
        options.era = EraHint::Legacy;
        let connection = Arc::new(Connection::connect(name, &endpoint, options).await?);
        let caller =
            Caller { connection: Arc::clone(&connection), tool: tool.clone(), key: key.clone() };
        for number in 0..WARM_UP {
            caller.call(number).await?;
        }
        let mut report = caller.sequential(count).await?;
        if in_flight > 0 {
            report.push_str(&caller.concurrent(count, in_flight).await?);
        }
        connection.shut_down().await;
        Ok(report)
    })
}

#[derive(Clone)]
struct Caller {
    connection: Arc<Connection>,
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

    async fn sequential(&self, count: usize) -> Result<String, Failure> {
        let mut times = Vec::with_capacity(count);
        let start = Instant::now();
        for number in 0..count {
            times.push(self.call(number).await?);
        }
        Ok(report("seq", times, start.elapsed()))
    }

    async fn concurrent(&self, count: usize, in_flight: usize) -> Result<String, Failure> {
        let mut workers = JoinSet::new();
        let start = Instant::now();
        for worker in 0..in_flight {
            let caller = self.clone();
            workers.spawn(async move {
                let mut times = Vec::new();
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
