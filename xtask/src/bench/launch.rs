//! `plenipo sandbox`: time to the payload's first instruction, and peak memory of the launcher.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use super::stats::{Against, Row, in_turns};
use super::tools::{Floors, Tools, number_after};
use crate::run::{Doing, Failure, Outcome, output};

const ROUNDS: usize = 9;
const LAUNCHES: &str = "30";
const MOST_TIMES_THE_CANDIDATE: f64 = 1.5;
const MOST_MEBIBYTES: f64 = 4.0;

/// Interleaved with the C launcher under the same policy: everything readable, the work folder and
/// `/tmp` writable, its `.git` read-only, no network.
pub(super) fn to_first_instruction(tools: &Tools) -> Outcome<Vec<Row>> {
    let name = "launch to first instruction";
    let Some(floors) = &tools.floors else {
        let against = Against::Skipped("the timer and the C launcher are not there".to_owned());
        return Ok(vec![Row { name, ours: f64::NAN, unit: "ms", against }]);
    };
    let timed = |argv: &[String]| {
        let mut timer = Command::new(&floors.timer);
        let text = output(timer.current_dir(&tools.work).arg(LAUNCHES).args(argv))?;
        if number_after(&text, "bad=")? > 0.0 {
            return Err(Failure::new(format!("a launch failed: {}", text.trim_end())));
        }
        number_after(&text, "med ")
    };
    let (ours, theirs) = (launcher(tools), candidate(tools, floors));
    let (ours, value) = in_turns(ROUNDS, || timed(&ours), || timed(&theirs))?;
    let against = Against::Floor { name: "the C candidate", value, most: MOST_TIMES_THE_CANDIDATE };
    Ok(vec![Row { name, ours, unit: "ms", against }])
}

fn launcher(tools: &Tools) -> Vec<String> {
    let plenipo = tools.plenipo.display().to_string();
    let payload = tools.payload.display().to_string();
    let words = ["sandbox", "--sandbox-state-json", &state(tools), "--", &payload];
    std::iter::once(plenipo).chain(words.map(str::to_owned)).collect()
}

fn state(tools: &Tools) -> String {
    let work = tools.work.display();
    let entry = |path: serde_json::Value, access: &str| serde_json::json!({ "path": path, "access": access });
    let special = |kind: &str| serde_json::json!({ "type": "special", "value": { "kind": kind } });
    let path = |path: String| serde_json::json!({ "type": "path", "path": path });
    serde_json::json!({
        "permissionProfile": {
            "type": "managed",
            "file_system": { "type": "restricted", "entries": [
                entry(special("root"), "read"),
                entry(path(work.to_string()), "write"),
                entry(special("slash_tmp"), "write"),
                entry(path(format!("{work}/.git")), "read"),
            ] },
            "network": "restricted",
        },
        "sandboxCwd": format!("file://{work}"),
    })
    .to_string()
}

fn candidate(tools: &Tools, floors: &Floors) -> Vec<String> {
    let work = tools.work.display().to_string();
    let git = format!("{work}/.git");
    let sandbox = floors.sandbox.display().to_string();
    let payload = tools.payload.display().to_string();
    [&sandbox, "-n", "-w", &work, "-w", "/tmp", "-r", &git, "--", &payload]
        .map(str::to_owned)
        .to_vec()
}

/// The highest resident size of any of the launcher's own processes while a command runs in it.
pub(super) fn peak_memory(tools: &Tools) -> Outcome<Vec<Row>> {
    let argv = launcher(tools);
    let (program, rest) = argv.split_first().ok_or_else(|| Failure::new("no launcher"))?;
    let mut command = Command::new(program);
    command.args(rest).arg("wait").current_dir(&tools.work);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().doing("start the launcher")?;
    let peak = peak_of(&mut child, program);
    drop(child.stdin.take());
    let status = child.wait().doing("wait for the launcher")?;
    if !status.success() {
        return Err(Failure::new(format!("the launcher failed ({status})")));
    }
    let against = Against::Most(MOST_MEBIBYTES);
    Ok(vec![Row { name: "launcher peak RSS", ours: peak?, unit: "MiB", against }])
}

/// Waits for the payload's first word, then reads `VmHWM` of the launcher and of every descendant
/// that runs the same executable.
fn peak_of(child: &mut Child, program: &str) -> Outcome<f64> {
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
