//! Times warm sequential calls over stdio: `warm N K TOOL KEY CMD…` calls `TOOL` with
//! `{KEY: "hello …"}` N times one after the other and, when K is above 0, N times with K in
//! flight, and prints p50, p99 and calls a second like the raw C loop it is compared with.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plenipo_connect::{CallRequest, ConnectOptions, Connection, EraHint, ServerName, StdioCommand};
use plenipo_wire::Fragment;

const WARM_UP: usize = 200;

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
    let [count, in_flight, tool, key, program, rest @ ..] = args else {
        return Err("read the arguments: N K TOOL KEY CMD…".into());
    };
    let (count, in_flight) = (count.parse::<usize>()?.max(1), in_flight.parse::<usize>()?);
    let mut command = StdioCommand::new(program);
    command.args(rest).environment(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let name = ServerName::new("warm").ok_or("name the server")?;
        let mut options = ConnectOptions::default();
        options.era = EraHint::Legacy;
        let connection = Arc::new(Connection::start(name, &command, options).await?);
        let caller = Caller { connection: Arc::clone(&connection), tool, key };
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
struct Caller<'a> {
    connection: Arc<Connection>,
    tool: &'a str,
    key: &'a str,
}

impl Caller<'_> {
    async fn call(&self, number: usize) -> Result<(), Failure> {
        let arguments =
            Fragment::object(|object| object.string(self.key, &format!("hello {number}")));
        let authority = self.connection.capture(None).await;
        let request = CallRequest::new(self.tool, Some(arguments), authority);
        self.connection.call(request).await?;
        Ok(())
    }

    async fn sequential(&self, count: usize) -> Result<String, Failure> {
        let mut times = Vec::with_capacity(count);
        let start = Instant::now();
        for number in 0..count {
            let begin = Instant::now();
            self.call(number).await?;
            times.push(begin.elapsed());
        }
        Ok(report("seq", times, start.elapsed()))
    }

    async fn concurrent(&self, count: usize, in_flight: usize) -> Result<String, Failure> {
        let tasks = tokio::task::LocalSet::new();
        let start = Instant::now();
        let times = tasks
            .run_until(async {
                let workers: Vec<_> = (0..in_flight)
                    .map(|worker| {
                        let share = count / in_flight + usize::from(worker < count % in_flight);
                        let (connection, tool, key) = (
                            Arc::clone(&self.connection),
                            self.tool.to_owned(),
                            self.key.to_owned(),
                        );
                        tokio::task::spawn_local(async move {
                            let caller = Caller { connection, tool: &tool, key: &key };
                            let mut times = Vec::with_capacity(share);
                            for number in 0..share {
                                let begin = Instant::now();
                                caller.call(number).await.map_err(|error| error.to_string())?;
                                times.push(begin.elapsed());
                            }
                            Ok::<_, String>(times)
                        })
                    })
                    .collect();
                let mut times = Vec::with_capacity(count);
                for worker in workers {
                    times.extend(worker.await.map_err(|error| error.to_string())??);
                }
                Ok::<_, String>(times)
            })
            .await?;
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
