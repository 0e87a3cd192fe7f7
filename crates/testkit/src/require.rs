//! Skipping, out loud: a skip is printed, collected by `cargo xtask test`, and a failure in CI.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// Whether a test may go on. When `present` is false, prints `SKIPPED <test>: <what>`, appends the
/// line to the file named by `PLENIPO_SKIP_LOG`, and returns false:
///
/// ```
/// # use plenipo_testkit::{find_tool, requires};
/// let Some(python) = find_tool("python3") else {
///     requires("python3 on PATH", false);
///     return;
/// };
/// # drop(python);
/// ```
///
/// # Panics
/// When `present` is false and `CI=true`: CI has everything, so nothing may be skipped there.
#[expect(clippy::print_stderr, reason = "a skip must be seen in the test's output")]
pub fn requires(what: &str, present: bool) -> bool {
    if present {
        return true;
    }
    let line = format!("SKIPPED {}: {what}", test_name());
    eprintln!("{line}");
    if let Some(path) = env::var_os("PLENIPO_SKIP_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(path).expect("skip log");
        log.write_all(format!("{line}\n").as_bytes()).expect("skip log");
    }
    assert!(env::var_os("CI").is_none_or(|value| value != "true"), "{line} (CI skips nothing)");
    false
}

/// The runner's name for the test: libtest names the thread, nextest runs one test in a process and
/// names it in the arguments.
fn test_name() -> String {
    let thread = std::thread::current().name().map(str::to_owned);
    thread
        .filter(|name| name != "main")
        .or_else(|| env::var("NEXTEST_TEST_NAME").ok())
        .or_else(|| env::args().skip(1).find(|argument| !argument.starts_with('-')))
        .unwrap_or_else(|| "(unnamed)".to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::Fixture;

    /// Runs in a child process started by the test below; harmless otherwise.
    #[test]
    fn skips_when_told_to() {
        let missing = env::var_os("PLENIPO_TESTKIT_SKIP").is_some();
        assert_eq!(requires("a thing", !missing), !missing);
    }

    fn run(ci: &str, log: &std::path::Path) -> bool {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "require::tests::skips_when_told_to", "--test-threads=1"])
            .env("PLENIPO_TESTKIT_SKIP", "1")
            .env("PLENIPO_SKIP_LOG", log)
            .env("CI", ci)
            .env_remove("NEXTEST_TEST_NAME")
            .output()
            .unwrap()
            .status
            .success()
    }

    #[test]
    fn a_skip_is_logged_and_fails_in_ci() {
        let fixture = Fixture::new();
        let log = fixture.join("skips");
        assert!(run("", &log));
        let line = "SKIPPED require::tests::skips_when_told_to: a thing\n";
        assert_eq!(fixture.read("skips").as_deref(), Some(line));
        assert!(!run("true", &log));
        assert_eq!(fixture.read("skips"), Some(line.repeat(2)));
    }
}
