//! A thousand launches, eight at a time: how many a second, and what is left of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::policy::Policy;
use crate::bench::stats::{Against, Row};
use crate::bench::tools::Tools;
use crate::run::{Doing, Failure, Outcome};

const LAUNCHES: usize = 1000;
const WORKERS: usize = 8;
/// In the environment of everything that is started here.
const MARK: &str = "PLENIPO_BENCH_LAUNCHES";
/// How long processes that are already killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a run can leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    processes: usize,
    mounts: usize,
    placeholders: usize,
    descriptors: usize,
}

/// Launches per second for information, and each kind of leftover with a bar of none.
pub(in crate::bench) fn a_thousand(tools: &Tools) -> Outcome<Vec<Row>> {
    let mark = format!("{MARK}={}", std::process::id());
    let before = Left::count(&tools.work, &mark)?;
    let start = Instant::now();
    launch_all(tools, &mark)?;
    let seconds = start.elapsed().as_secs_f64();
    let deadline = Instant::now() + PATIENCE;
    let mut after = Left::count(&tools.work, &mark)?;
    while after.processes > 0 && Instant::now() < deadline {
        after = Left::count(&tools.work, &mark)?;
    }
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let number = |count: usize| count as f64;
    let row = |name, after: usize, before: usize| {
        let ours = number(after.saturating_sub(before));
        Row { name, ours, unit: "left", against: Against::Most(0.0) }
    };
    Ok(vec![
        Row {
            name: "1,000 launches, 8 at a time",
            ours: number(LAUNCHES) / seconds,
            unit: "per second",
            against: Against::Nothing,
        },
        row("their processes", after.processes, before.processes),
        row("their mounts", after.mounts, before.mounts),
        row("their placeholders", after.placeholders, before.placeholders),
        row("their descriptors", after.descriptors, before.descriptors),
    ])
}

fn launch_all(tools: &Tools, mark: &str) -> Outcome {
    let argv = Policy::default().launcher(tools, tools.best());
    let next = AtomicUsize::new(0);
    let (name, value) = mark.split_once('=').unwrap_or_default();
    let work = || {
        while next.fetch_add(1, Ordering::Relaxed) < LAUNCHES {
            let mut launch = Command::new(tools.best());
            launch.args(argv.iter().skip(1)).current_dir(&tools.work).env(name, value);
            let status = launch.stdin(Stdio::null()).stdout(Stdio::null()).status();
            let status = status.doing("start the launcher")?;
            if !status.success() {
                return Err(Failure::new(format!("a launch failed ({status})")));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let ended = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(Failure::new("a worker panicked"))));
        ended.collect()
    })
}

impl Left {
    fn count(work: &Path, mark: &str) -> Outcome<Self> {
        let table = fs::read_to_string("/proc/self/mountinfo").doing("read the mounts")?;
        let place = work.display().to_string();
        let entries = fs::read_dir(work).doing("list the work folder")?.flatten();
        let hidden = entries.filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(b".") && name != ".git"
        });
        let descriptors = fs::read_dir("/proc/self/fd").doing("list descriptors")?;
        Ok(Self {
            processes: processes_with(mark)?,
            mounts: table.lines().filter(|line| line.contains(&place)).count(),
            placeholders: hidden.count(),
            descriptors: descriptors.count(),
        })
    }
}

/// Processes with this variable in their environment.
fn processes_with(mark: &str) -> Outcome<usize> {
    let entries = fs::read_dir("/proc").doing("list processes")?.flatten();
    let marked = entries.filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    Ok(marked.count())
}
