//! Many servers with bad manners, called for a long time: `measure soak SERVER SECONDS SERVERS CALLS SEED`.
//!
//! Each answer has to carry its question's token. Counted are answers that are lost (none within a
//! minute although the server lives) or crossed, processes and descriptors that are left at the end, and
//! memory after a warm-up. Servers on pipes are killed one by one, those behind URLs all at once. One line each on stdout; the exit code is 1 when one of them is not as it has
//! to be, when fewer calls were made than wanted, or when some of the bad manners was not met over stdio and HTTP each.

mod counts;
mod remote;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plenipo_connect::{
    CallRequest, Canceller, ChangeFilter, ConnectOptions, Endpoint, EraHint, ErrorKind, Fault,
    Grace, HttpEndpoint, Server, ServerName, StdioCommand,
};
use plenipo_wire::Fragment;
use plenipo_wire::views::ContentBlock;

use crate::{Failure, resident};
use counts::{Counts, TRANSPORTS};
use remote::Remote;

const WORKERS: u64 = 4;
/// No machine is so busy that an answer takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const SAMPLE: Duration = Duration::from_secs(2);
/// How long the servers behind URLs live.
const LIFE: Duration = Duration::from_secs(15);
/// So many calls meet everything, whatever the seed.
const MEETS_ALL: u64 = 5_000;
struct Soak {
    program: String,
    seconds: u64,
    servers: u64,
    calls: u64,
    seed: u64,
    mark: String,
}

fn transport(number: u64) -> &'static str {
    if number % 4 < 2 { "stdio" } else { "http" }
}

/// xorshift64*: the same seed gives the same choices, though not the same timing.
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below.max(1)
    }
}

pub(super) fn run(args: &[String]) -> Result<(String, bool), Failure> {
    let soak = Soak::read(args)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // What it finds is said as it is found.
    Ok((String::new(), runtime.block_on(soak.run())?))
}

fn say(line: &str) {
    // Nobody to tell: the exit code still says it.
    writeln!(io::stdout(), "{line}").unwrap_or_default();
}

impl Soak {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let [program, seconds, servers, calls, seed] = args else {
            return Err("read the arguments: SERVER SECONDS SERVERS CALLS SEED".into());
        };
        let seed: u64 = seed.parse()?;
        Ok(Self {
            program: program.clone(),
            seconds: seconds.parse()?,
            servers: servers.parse()?,
            calls: calls.parse()?,
            seed,
            mark: format!("{}-{seed}", std::process::id()),
        })
    }

    async fn run(self) -> Result<bool, Failure> {
        let soak = Arc::new(self);
        let counts = Arc::new(Counts::default());
        let descriptors = entries("/proc/self/fd");
        say(&format!("soak seed={} servers={} calls={}", soak.seed, soak.servers, soak.calls));
        let begin = Instant::now();
        let remote = Remote::start(&soak.program).await?;
        let mut servers = Vec::new();
        for number in 0..soak.servers {
            servers.push(tokio::spawn(Arc::clone(&soak).start(number, remote.port)));
        }
        let mut open = Vec::new();
        for server in servers {
            open.push(server.await??);
        }
        say(&format!("started in {:.1} s", begin.elapsed().as_secs_f64()));
        let end = Instant::now() + Duration::from_secs(soak.seconds);
        let (mut work, mut watching) = (tokio::task::JoinSet::new(), tokio::task::JoinSet::new());
        for (server, number) in open.iter().zip(0..) {
            watching.spawn(watch(server.clone(), Arc::clone(&counts), transport(number)));
            for worker in 0..WORKERS {
                let choices =
                    Choices(soak.seed ^ (number * WORKERS + worker + 1).wrapping_mul(0x9E37_79B9));
                let (soak, counts) = (Arc::clone(&soak), Arc::clone(&counts));
                work.spawn(soak.work((server.clone(), transport(number)), counts, choices, end));
            }
        }
        let killer = tokio::spawn(Arc::clone(&soak).kill(Arc::clone(&counts), end));
        let remote = tokio::spawn(restart(remote, Arc::clone(&counts), end));
        let memory = remember(end, &counts).await;
        while work.join_next().await.is_some() {}
        killer.abort();
        let mut ending = tokio::task::JoinSet::new();
        for server in open {
            ending.spawn(async move { server.shut_down().await });
        }
        while ending.join_next().await.is_some() {}
        // Subscriptions end with their server.
        while watching.join_next().await.is_some() {}
        remote.await??.end().await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(soak.judge(&counts, &memory, descriptors))
    }

    /// Every second one is modern, and two of four are behind a URL.
    async fn start(self: Arc<Self>, number: u64, port: u16) -> Result<Server, Failure> {
        let modern = number.is_multiple_of(2);
        let endpoint = if transport(number) == "stdio" {
            let mut command = StdioCommand::new(&self.program);
            if modern {
                command.args(["modern"]);
            }
            command.environment([("SOAK_MARK", &self.mark)]);
            Endpoint::from(command)
        } else {
            let era = if modern { "modern" } else { "legacy" };
            let url = format!("http://127.0.0.1:{port}/{era}/{number}");
            Endpoint::from(HttpEndpoint::new(&url)?)
        };
        let mut options = ConnectOptions::default();
        options.era = if modern { EraHint::Modern } else { EraHint::Legacy };
        options.start_timeout = PATIENCE;
        options.grace = Grace::new(Duration::from_secs(5), Duration::from_secs(2));
        let name = ServerName::new(&format!("soak-{number}")).ok_or("name a server")?;
        Ok(Server::open(name, endpoint, options).await?)
    }

    /// One call after the other, at the pace that makes all of them in the time there is.
    async fn work(
        self: Arc<Self>,
        (server, transport): (Server, &'static str),
        counts: Arc<Counts>,
        mut choices: Choices,
        end: Instant,
    ) {
        let workers = self.servers * WORKERS;
        let pause =
            Duration::from_secs_f64((self.seconds * workers) as f64 / self.calls.max(1) as f64);
        // Calls that take longer than their turn are made up for at the end.
        let mut left = self.calls.div_ceil(workers.max(1));
        tokio::time::sleep(pause.mul_f64(choices.next(1000) as f64 / 1000.0)).await;
        while left > 0 || Instant::now() < end {
            left = left.saturating_sub(1);
            let next = Instant::now() + pause;
            one_call((&server, transport), &counts, &mut choices).await;
            tokio::time::sleep_until(next.min(end).into()).await;
        }
    }

    /// Ends one server each second from outside.
    async fn kill(self: Arc<Self>, counts: Arc<Counts>, end: Instant) {
        let mut choices = Choices(self.seed | 1);
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let running = marked(&self.mark);
            let chosen = usize::try_from(choices.next(running.len() as u64)).unwrap_or_default();
            if let Some(pid) =
                running.get(chosen).and_then(|pid| rustix::process::Pid::from_raw(*pid))
            {
                let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                counts.killed.fetch_add(killed.is_ok().into(), Ordering::Relaxed);
            }
        }
    }

    fn judge(&self, counts: &Counts, memory: &[u64], descriptors: usize) -> bool {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let leaked = entries("/proc/self/fd").saturating_sub(descriptors);
        let left = marked(&self.mark).len();
        let half = memory.len() / 2;
        let average = |samples: &[u64]| samples.iter().sum::<u64>() / samples.len().max(1) as u64;
        let (warm, late) = (
            average(memory.get(memory.len() / 5..half).unwrap_or_default()),
            average(memory.get(memory.len().saturating_sub(half / 2 + 1)..).unwrap_or_default()),
        );
        let flat = late <= warm + warm / 10 + 2048;
        say(&format!(
            "calls={} right={} crossed={} lost={} server-ended={} cancelled={} timed-out={} refused={} other={} killed={} restarted={}",
            read(&counts.calls),
            read(&counts.right),
            read(&counts.crossed),
            read(&counts.lost),
            read(&counts.ended),
            read(&counts.cancelled),
            read(&counts.timed_out),
            read(&counts.refused),
            read(&counts.other),
            read(&counts.killed),
            read(&counts.restarted),
        ));
        let missed = if self.calls < MEETS_ALL { Vec::new() } else { counts.missed() };
        let enough = read(&counts.calls) >= self.calls;
        say(&format!(
            "calls-wanted={} changes-heard={} missed={missed:?}",
            self.calls,
            TRANSPORTS.map(|transport| counts.times(transport, "changed").to_string()).join("+"),
        ));
        say(&format!(
            "processes-left={left} descriptors-leaked={leaked} rss-warm={warm}KiB rss-late={late}KiB flat={flat}"
        ));
        let bad = [&counts.crossed, &counts.lost, &counts.other].map(read).iter().sum::<u64>();
        let good =
            [&counts.right, &counts.ended, &counts.cancelled, &counts.timed_out, &counts.refused];
        // Each call has come to one end.
        let bad = bad + read(&counts.calls).abs_diff(bad + good.map(read).iter().sum::<u64>());
        bad == 0 && left == 0 && leaked == 0 && flat && enough && missed.is_empty()
    }
}

/// Ends all servers behind URLs from time to time, in the middle of whatever they do.
async fn restart(mut remote: Remote, counts: Arc<Counts>, end: Instant) -> Result<Remote, Failure> {
    while Instant::now() + LIFE < end {
        tokio::time::sleep(LIFE).await;
        remote.restart().await?;
        counts.restarted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(remote)
}

/// Follows the server's changes, and lists again when told.
async fn watch(server: Server, counts: Arc<Counts>, transport: &'static str) {
    let first = server.generation();
    let Ok(mut subscription) = server.subscribe(ChangeFilter::tools()).await else { return };
    while subscription.next().await.is_some() {
        counts.meet(transport, "changed");
        let began_again = match transport {
            "stdio" => server.generation() > first,
            _ => counts.restarted.load(Ordering::Relaxed) > 0,
        };
        if began_again {
            counts.meet(transport, "changed-later");
        }
        if let Ok(connection) = server.connection().await {
            // A server that was just killed lists nothing; the next change tells again.
            connection.catalog().await.ok();
        }
    }
}

async fn one_call(
    (server, transport): (&Server, &'static str),
    counts: &Counts,
    choices: &mut Choices,
) {
    let manner = match choices.next(1000) {
        0..250 => "plain",
        250..600 => "later",
        600..700 => "dribble",
        700..780 => "noise",
        780..800 => "storm",
        800..880 => "progress",
        880..930 => "double",
        930..988 => "deaf",
        988..994 => "die",
        _ => "abort",
    };
    let number = counts.calls.fetch_add(1, Ordering::Relaxed);
    let token = format!("{number}-{}", choices.next(u64::MAX));
    let text =
        format!(r#"{{"token":"{token}","manner":"{manner}","delay":{}}}"#, choices.next(400));
    let Ok(authority) = server.capture(None).await else {
        counts.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let generation = server.generation();
    let mut request = CallRequest::new("echo", Fragment::parse(&text).ok(), authority);
    request.timeout = Some(if manner == "deaf" { Duration::from_millis(300) } else { PATIENCE });
    request.progress = (manner == "progress").then(|| Arc::new(|_: &_| {}) as _);
    let canceller = Canceller::new();
    let cancels = choices.next(20) == 0;
    request.cancel = Some(canceller.cancellation());
    let patience = Duration::from_millis(choices.next(200));
    let outcome = tokio::join!(server.call(request), async {
        if cancels {
            tokio::time::sleep(patience).await;
            canceller.cancel("no longer wanted");
        }
    })
    .0;
    let (counter, met) = match outcome {
        Ok(outcome) => {
            let view = outcome.view();
            let said = view.as_ref().ok().and_then(|view| match view.content.first() {
                Some(ContentBlock::Text(text)) => Some(text.to_string()),
                _ => None,
            });
            match said.as_deref() == Some(&token) {
                true => (&counts.right, manner),
                false => (&counts.crossed, "crossed"),
            }
        }
        Err(error) => match (error.kind(), error.fault()) {
            (ErrorKind::Cancelled, _) if cancels => (&counts.cancelled, "cancelled"),
            (ErrorKind::Timeout, _) if manner == "deaf" => (&counts.timed_out, "timed-out"),
            (ErrorKind::Timeout, _) if server.generation() == generation => (&counts.lost, "lost"),
            (ErrorKind::Transport, Fault::EndsTooOften { .. }) => (&counts.refused, "refused"),
            (ErrorKind::Transport, _) => (&counts.ended, "server-ended"),
            _ => {
                say(&format!("unexpected: {error}"));
                (&counts.other, "other")
            }
        },
    };
    counter.fetch_add(1, Ordering::Relaxed);
    counts.meet(transport, met);
}

/// Resident memory in KiB, every few seconds.
async fn remember(end: Instant, counts: &Counts) -> Vec<u64> {
    let mut samples = Vec::new();
    while Instant::now() < end {
        tokio::time::sleep(SAMPLE).await;
        samples.push(resident());
        if samples.len() % 15 == 0 {
            let calls = counts.calls.load(Ordering::Relaxed);
            say(&format!("calls={calls} rss={}KiB fds={}", resident(), entries("/proc/self/fd")));
        }
    }
    samples
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Running processes with our mark in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let mark = format!("SOAK_MARK={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        })
        .collect()
}
