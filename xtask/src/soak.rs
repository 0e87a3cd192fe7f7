//! `soak`: many servers with bad manners, called for a long time. Not part of continuous integration.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::{Failure, Outcome, cargo, succeed};
use crate::workspace::Workspace;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    seconds: u64,
    servers: u64,
    calls: u64,
    seed: Option<u64>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Outcome<Self> {
        let mut options = Self { seconds: 600, servers: 200, calls: 50_000, seed: None };
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let number =
                words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
            let number =
                number.ok_or_else(|| Failure::new(format!("`{option}` takes a number above 0")))?;
            match option.as_str() {
                "--seconds" => options.seconds = number,
                "--servers" => options.servers = number,
                "--calls" => options.calls = number,
                "--seed" => options.seed = Some(number),
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            }
        }
        Ok(options)
    }
}

/// Builds both sides and lets them run, at low priority.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Outcome {
    let seed = options.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()) | 1
    });
    let packages = ["-p", "plenipo-measure"];
    succeed(cargo(&workspace.root).arg("build").args(packages))?;
    let server = ["-p", "plenipo-testkit", "--bin", "soak-server"];
    succeed(cargo(&workspace.root).arg("build").args(server))?;
    let built = workspace.target.join("debug");
    let mut soak = std::process::Command::new("nice");
    soak.arg(built.join("measure")).arg("soak").arg(built.join("soak-server"));
    let numbers = [options.seconds, options.servers, options.calls, seed];
    succeed(soak.args(numbers.map(|number| number.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_and_take_numbers() {
        let parse = |text: &str| {
            Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let usual = Options { seconds: 600, servers: 200, calls: 50_000, seed: None };
        assert_eq!(parse("").unwrap(), usual);
        let given = Options { seconds: 5, servers: 2, calls: 100, seed: Some(7) };
        assert_eq!(parse("--seconds 5 --servers 2 --calls 100 --seed 7").unwrap(), given);
        for text in ["--seconds", "--seconds 0", "--seconds x", "5 6", "--minutes 5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
