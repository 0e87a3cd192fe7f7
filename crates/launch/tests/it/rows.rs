//! The threat model's rows: one attack each, unsandboxed (the control: it must succeed, or the table says why it cannot)
//! and sandboxed (it must not), as root and as an ordinary user.

pub(crate) mod attacks;
mod behaviour;
pub(crate) mod ground;
mod table;

use plenipo_testkit::requires;

use crate::stage::Who;
use table::Line;

#[test]
fn every_row_of_the_threat_model_holds() {
    let python = plenipo_testkit::find_tool("python3").is_some();
    let git = plenipo_testkit::find_tool("git").is_some();
    if !requires("python3 and git on PATH", python && git) {
        return;
    }
    let everybody = Who::everybody();
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(each(attacks::ATTACKS, |attack| table::attack(attack, &everybody)));
    lines.extend(each(behaviour::BEHAVIOURS, |row| table::behaviour(row, &everybody)));
    lines.sort_by_key(|line| line.row);
    table::print(&lines);
    let failed: Vec<&str> =
        lines.iter().flat_map(|line| &line.faults).map(String::as_str).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    table::assert_all_rows_present(&lines);
}

/// Some at a time: most of a launch is waiting.
pub(crate) fn each<T: Sync, R: Send>(all: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const WORKERS: usize = 4;
    let part = all.len().div_ceil(WORKERS).max(1);
    let run = &run;
    std::thread::scope(|scope| {
        let parts: Vec<_> = all
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().map(run).collect::<Vec<R>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// Row 28 alone, which is quick.
#[test]
fn row_28_what_matches_a_deny_pattern_later() {
    let everybody = Who::everybody();
    let mut rows = behaviour::BEHAVIOURS.iter().filter(|row| row.row == 28).peekable();
    assert!(rows.peek().is_some());
    let lines = rows.map(|row| table::behaviour(row, &everybody));
    let failed: Vec<String> = lines.flat_map(|line| line.faults).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}
