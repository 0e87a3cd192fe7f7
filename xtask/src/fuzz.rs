//! `fuzz`: the fuzz targets, for a while. They are tests with a corpus; here they get time and a new seed.

use crate::run::{Failure, Outcome, cargo, succeed};
use crate::workspace::Workspace;

/// Where targets are, as packages; a target is a test whose name begins with `fuzz_`.
const PACKAGES: [&str; 7] = [
    "plenipo-policy",
    "plenipo-filter",
    "plenipo-launch",
    "plenipo-egress",
    "plenipo-wire",
    "plenipo-authority",
    "plenipo-schema",
];
const DEFAULT_SECONDS: u64 = 60;

/// Reads `[--seconds N]`.
pub(crate) fn seconds(words: &[String]) -> Outcome<u64> {
    let wrong = || Failure::new("fuzz takes --seconds N, a number above 0");
    match words {
        [] => Ok(DEFAULT_SECONDS),
        [option, number] if option == "--seconds" => {
            number.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// Runs each target for `seconds`, one after the other.
pub(crate) fn run(workspace: &Workspace, seconds: u64) -> Outcome {
    let mut command = cargo(&workspace.root);
    command.arg("test").env("PLENIPO_FUZZ_SECONDS", seconds.to_string());
    for package in PACKAGES {
        command.args(["-p", package]);
    }
    command.args(["--lib", "--test", "it", "fuzz_", "--", "--nocapture", "--test-threads=1"]);
    succeed(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_a_number_of_seconds() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(seconds(&words("")).unwrap(), 60);
        assert_eq!(seconds(&words("--seconds 5")).unwrap(), 5);
        for text in ["--seconds", "--seconds 0", "--seconds x", "5", "--seconds 5 6"] {
            assert!(seconds(&words(text)).is_err(), "{text}");
        }
    }
}
