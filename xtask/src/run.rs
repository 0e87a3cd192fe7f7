//! Starting programs, and the one error a task ends with.

use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a task failed: one sentence for the person who started it.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// What a task or a step of it comes to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Adds what was being done to an I/O error.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Outcome<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &str) -> Outcome<T> {
        self.map_err(|error| Failure::new(format!("{what}: {error}")))
    }
}

/// The cargo that runs this task, in the workspace's root.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// Runs a command with this terminal; fails when it does.
pub(crate) fn succeed(command: &mut Command) -> Outcome {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().doing(&format!("start `{shown}`"))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{shown}` failed ({status})")))
    }
}

/// Runs a command and returns its standard output; fails with its standard error.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().doing(&format!("start `{shown}`"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("`{shown}` failed ({}): {}", output.status, said.trim_end())))
}

/// What a command printed, line by line without colour, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) lines: Vec<String>,
    pub(crate) outcome: Outcome,
}

/// Runs a command, shows what it prints as it comes, and keeps it.
pub(crate) fn tee(command: &mut Command) -> Outcome<Said> {
    let shown = show(command);
    println!("$ {shown}");
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .doing(&format!("start `{shown}`"))?;
    let stderr = child.stderr.take();
    let beside = std::thread::spawn(move || copy_lines(stderr, io::stderr()));
    let mut lines = copy_lines(child.stdout.take(), io::stdout());
    lines.extend(beside.join().unwrap_or_default());
    let status = child.wait().doing(&format!("wait for `{shown}`"))?;
    let outcome = if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{shown}` failed ({status})")))
    };
    Ok(Said { lines, outcome })
}

fn copy_lines(from: Option<impl Read>, mut to: impl Write) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(from) = from else { return lines };
    let mut reader = BufReader::new(from);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            break;
        }
        lines.push(without_colour(String::from_utf8_lossy(&bytes).trim_end()));
        bytes.clear();
    }
    lines
}

fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' {
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

/// What a test runner says last: nextest's summary with the failures below it, or the result lines
/// of every libtest binary.
pub(crate) fn closing_lines(lines: &[String]) -> Vec<String> {
    let summary = lines.iter().position(|line| line.trim_start().starts_with("Summary ["));
    match summary {
        Some(from) => lines.iter().skip(from).filter(|line| !line.is_empty()).cloned().collect(),
        None => lines.iter().filter(|line| line.starts_with("test result:")).cloned().collect(),
    }
}

/// The words of a command, as a person would write them.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_the_runners_own() {
        let nextest = ["a", "  Summary [ 1s] 2 tests run", "", "  FAIL x"].map(String::from);
        assert_eq!(closing_lines(&nextest), ["  Summary [ 1s] 2 tests run", "  FAIL x"]);
        let libtest = ["running 1 test", "test result: ok. 1 passed"].map(String::from);
        assert_eq!(closing_lines(&libtest), ["test result: ok. 1 passed"]);
    }

    #[test]
    fn colour_is_removed() {
        assert_eq!(without_colour("\u{1b}[32;1m Summary\u{1b}[0m [x]"), " Summary [x]");
    }

    #[test]
    fn what_a_failing_command_said_is_kept() {
        let said = tee(Command::new("sh").args(["-c", "echo a; exit 3"])).unwrap();
        assert_eq!(said.lines, ["a"]);
        let failure = said.outcome.unwrap_err().to_string();
        assert_eq!(failure, "`sh -c echo a; exit 3` failed (exit status: 3)");
    }
}
