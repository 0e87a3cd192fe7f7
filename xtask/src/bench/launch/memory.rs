//! Memory of the launcher's own processes.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::policy::Policy;
use super::skipped;
use crate::bench::stats::{Against, Row, median};
use crate::bench::tools::Tools;
use crate::run::{Doing, Failure, Outcome};

const MOST_MEBIBYTES: f64 = 4.0;
const ROUNDS: usize = 5;

/// The highest resident size of any of the launcher's own processes while a command runs in it.
pub(in crate::bench) fn peak_memory(tools: &Tools) -> Outcome<Vec<Row>> {
    let names = ["launcher peak RSS", "launcher peak RSS, dist"];
    let mut rows = Vec::new();
    for (name, build) in names.into_iter().zip(tools.builds()) {
        let Some(program) = build else {
            rows.push(skipped(name, "MiB", "without --dist"));
            continue;
        };
        let peaks: Outcome<Vec<f64>> = (0..ROUNDS).map(|_| peak(tools, program)).collect();
        let against = Against::Most(MOST_MEBIBYTES);
        rows.push(Row { name, ours: median(peaks?), unit: "MiB", against });
    }
    Ok(rows)
}

fn peak(tools: &Tools, program: &Path) -> Outcome<f64> {
    let argv = Policy::default().launcher(tools, program);
    let mut command = Command::new(program);
    command.args(argv.iter().skip(1)).arg("wait").current_dir(&tools.work);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().doing("start the launcher")?;
    let peak = peak_of(&mut child, program);
    drop(child.stdin.take());
    let status = child.wait().doing("wait for the launcher")?;
    if status.success() {
        peak
    } else {
        Err(Failure::new(format!("the launcher failed ({status})")))
    }
}

/// Waits for the payload's first word, then reads `VmHWM` of the launcher and of every descendant
/// that runs the same executable.
fn peak_of(child: &mut Child, program: &Path) -> Outcome<f64> {
    let mut word = [0; 8];
    let stdout = child.stdout.as_mut().ok_or_else(|| Failure::new("no pipe"))?;
    stdout.read_exact(&mut word).doing("wait for the payload")?;
    let executable = fs::canonicalize(program).doing("find the launcher")?;
    let mut waiting = vec![child.id().to_string()];
    let mut peak = 0.0_f64;
    while let Some(id) = waiting.pop() {
        let process = format!("/proc/{id}");
        if fs::read_link(format!("{process}/exe")).is_ok_and(|path| path == executable) {
            let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
            peak = peak.max(kibibytes.unwrap_or(0.0) / 1024.0);
        }
        let children = fs::read_to_string(format!("{process}/task/{id}/children"));
        waiting.extend(children.unwrap_or_default().split_whitespace().map(str::to_owned));
    }
    if peak > 0.0 { Ok(peak) } else { Err(Failure::new("the launcher's status is not readable")) }
}
