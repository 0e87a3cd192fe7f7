//! Running the rows, and the table that is printed at the end.

use std::fmt::Write;

use crate::rows::attacks::{Attack, Control, Expected};
use crate::rows::behaviour::Behaviour;
use crate::rows::ground::{Ground, Outcome};
use crate::stage::Who;

/// The rows of the threat model.
const ROWS: std::ops::RangeInclusive<u8> = 1..=45;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) row: u8,
    pub(crate) name: String,
    /// For root and for an ordinary user: control and sandboxed.
    pub(crate) seen: [String; 2],
    /// What is not as it should be.
    pub(crate) faults: Vec<String>,
}

impl Line {
    fn new(row: u8, name: &str) -> Self {
        let skipped = || "not run".to_owned();
        Self { row, name: name.to_owned(), seen: [skipped(), skipped()], faults: Vec::new() }
    }

    fn saw(&mut self, who: Who, control: &str, sandboxed: &str) {
        self.seen[who as usize] = format!("{control} / {sandboxed}");
    }

    fn fault(&mut self, who: Who, what: &str) {
        self.faults.push(format!("row {} {} as {}: {what}", self.row, self.name, who.name()));
    }
}

/// Runs one attack both ways as everybody.
pub(crate) fn attack(attack: &Attack, everybody: &[Who]) -> Line {
    let mut line = Line::new(attack.row, attack.name);
    for who in everybody {
        let control = Ground::new(*who).without_sandbox(attack);
        let sandboxed = Ground::new(*who).sandboxed(attack);
        let shown = judge_control(&mut line, *who, attack.control, &control);
        judge_sandboxed(&mut line, *who, attack, &sandboxed);
        line.saw(*who, &shown, &sandboxed.short());
    }
    line
}

fn judge_control(line: &mut Line, who: Who, expected: Control, seen: &Outcome) -> String {
    let excuse = match (expected, who) {
        (Control::Succeeds, _) | (Control::RootOnly(_), Who::Root) => None,
        (Control::RootOnly(reason) | Control::Never(reason), _) => Some(reason),
        (Control::Depends(errnos, reason), _) => {
            let missing = errnos.iter().any(|errno| seen.answer == format!("DENIED {errno}"));
            if missing {
                return format!("n/a: {reason} ({})", seen.short());
            }
            None
        }
        (Control::Reaches(errno), _) => {
            if seen.answer != format!("DENIED {errno}") {
                line.fault(
                    who,
                    &format!("the control should reach the kernel ({errno}): {seen:?}"),
                );
            }
            return format!("reached ({errno})");
        }
        (Control::RootReaches(errnos, reason), who) => {
            let refused = who == Who::User && seen.answer == "DENIED EPERM";
            if !refused && !errnos.iter().any(|errno| seen.answer == format!("DENIED {errno}")) {
                line.fault(who, &format!("the control should give one of {errnos:?}: {seen:?}"));
            }
            let word = if refused { reason } else { "reached" };
            return format!("n/a: {word} ({})", seen.short());
        }
    };
    match excuse {
        None if !seen.succeeded => {
            line.fault(who, &format!("the control did not succeed: {seen:?}"));
            seen.short()
        }
        Some(reason) if seen.succeeded => {
            line.fault(who, &format!("the control succeeded although \"{reason}\": {seen:?}"));
            seen.short()
        }
        Some(reason) => format!("n/a: {reason}"),
        None => seen.short(),
    }
}

fn judge_sandboxed(line: &mut Line, who: Who, attack: &Attack, seen: &Outcome) {
    if seen.host_changed {
        line.fault(who, &format!("the host was changed: {seen:?}"));
    }
    if seen.arrivals != 0 {
        line.fault(who, &format!("something arrived outside: {seen:?}"));
    }
    let fits = match attack.expected {
        Expected::Denied(errnos) => {
            errnos.iter().any(|errno| seen.answer == format!("DENIED {errno}"))
        }
        Expected::Private => seen.answer == "ALLOWED",
    };
    if !fits {
        line.fault(who, &format!("expected {:?}, got {seen:?}", attack.expected));
    }
    if let Some(fault) = &seen.report_fault {
        line.fault(who, &format!("the report: {fault}"));
    }
}

/// Runs one behaviour as everybody.
pub(crate) fn behaviour(row: &Behaviour, everybody: &[Who]) -> Line {
    let mut line = Line::new(row.row, row.name);
    for who in everybody {
        match std::panic::catch_unwind(|| (row.check)(*who)) {
            Ok((control, sandboxed)) => line.saw(*who, &control, &sandboxed),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("failed", String::as_str);
                line.fault(*who, text);
            }
        }
    }
    line
}

pub(crate) fn print(lines: &[Line]) {
    println!("\n| row | probe | root: control / sandboxed | user: control / sandboxed |");
    println!("|----:|-------|---------------------------|---------------------------|");
    for Line { row, name, seen: [root, user], faults } in lines {
        let mark = if faults.is_empty() { "" } else { " <<<" };
        println!("| {row} | {name} | {root} | {user} |{mark}");
    }
    let rows: std::collections::BTreeSet<u8> = lines.iter().map(|line| line.row).collect();
    println!("{} probes in {} rows", lines.len(), rows.len());
    log(lines);
}

/// For the closing lines of `cargo xtask test`: a line a row, and how many were not run.
fn log(lines: &[Line]) {
    let Some(path) = std::env::var_os("PLENIPO_ROWS_LOG") else { return };
    let mut text = String::new();
    let mut skipped = 0;
    for row in ROWS {
        let probes: Vec<&Line> = lines.iter().filter(|line| line.row == row).collect();
        let seen = |who: Who| {
            let not_run = probes.iter().filter(|line| line.seen[who as usize] == "not run").count();
            (probes.len() - not_run, not_run)
        };
        let ((root, not_root), (user, not_user)) = (seen(Who::Root), seen(Who::User));
        skipped += not_root + not_user;
        let faults: usize = probes.iter().map(|line| line.faults.len()).sum();
        let verdict = if faults > 0 { "FAILED" } else { "ok" };
        let name = probes.first().map_or("no probe", |line| line.name.as_str());
        writeln!(text, "row {row:>2}  root {root:>2}  user {user:>2}  {verdict:<6} {name}")
            .unwrap();
    }
    let probes = lines.len();
    writeln!(text, "threat model: {} rows, {probes} probes, not run: {skipped}", ROWS.count())
        .unwrap();
    std::fs::write(path, text).unwrap();
}

#[track_caller]
pub(crate) fn assert_all_rows_present(lines: &[Line]) {
    for row in ROWS {
        assert!(lines.iter().any(|line| line.row == row), "row {row} has no probe");
    }
}
