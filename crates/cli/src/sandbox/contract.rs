//! The form of the command line that servers use, read without building a description of all the others.
//!
//! It is the one whose launches are counted, in time and in memory: a command line parser takes a good part of both.
//! Whatever is not exactly of this form is left to the parser, which has the last word about errors and help.

use std::ffi::{OsStr, OsString};

use super::SandboxArguments;

/// `--sandbox-state-json STATE [--sandbox-state-readable-root DIR]… [--sandbox-state-disable-network] [--report-fd N]`,
/// in any order, then `--` and a command.
pub(super) fn read(words: &[OsString]) -> Option<SandboxArguments> {
    let separator = words.iter().position(|word| word == OsStr::new("--"))?;
    let (options, command) = words.split_at(separator);
    let mut found = SandboxArguments::of_command(command.get(1..)?.to_vec());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.to_str()? {
            "--sandbox-state-json" if found.sandbox_state_json.is_none() => {
                found.sandbox_state_json = Some(value(options.next())?.to_str()?.to_owned());
            }
            "--sandbox-state-readable-root" => {
                found.sandbox_state_readable_root.push(value(options.next())?.into());
            }
            "--sandbox-state-disable-network" if !found.sandbox_state_disable_network => {
                found.sandbox_state_disable_network = true;
            }
            "--report-fd" if found.report_fd.is_none() => {
                found.report_fd = Some(value(options.next())?.to_str()?.parse().ok()?);
            }
            _ => return None,
        }
    }
    (found.sandbox_state_json.is_some() && !found.command.is_empty()).then_some(found)
}

/// A word that looks like an option is no value to the parser, `-` alone excepted.
fn value(word: Option<&OsString>) -> Option<&OsString> {
    word.filter(|word| word.len() == 1 || !word.as_encoded_bytes().starts_with(b"-"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::sandbox::arguments::SandboxProgram;

    /// Every line of these words up to a length that the contract's form takes is taken the same way by the parser.
    #[test]
    fn what_is_read_here_is_what_the_parser_reads() {
        const WORDS: [&str; 9] = [
            "--sandbox-state-json",
            "{}",
            "-",
            "--sandbox-state-readable-root",
            "/x",
            "--sandbox-state-disable-network",
            "--report-fd",
            "3",
            "--",
        ];
        let mut lines: Vec<Vec<&str>> = vec![Vec::new()];
        let mut taken = 0;
        for _ in 0..5 {
            lines = lines
                .iter()
                .flat_map(|line| {
                    WORDS.iter().map(|word| line.iter().copied().chain([*word]).collect())
                })
                .collect();
            for line in &lines {
                let mut words: Vec<OsString> = line.iter().map(OsString::from).collect();
                words.extend(["--", "true"].map(OsString::from));
                let Some(read) = read(&words) else { continue };
                taken += 1;
                let program = SandboxProgram::try_parse_from(
                    [OsString::from("sandbox")].into_iter().chain(words.iter().cloned()),
                );
                let parsed = program.unwrap().arguments;
                assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{line:?}");
            }
        }
        assert!(taken > 100, "{taken}");
    }

    #[test]
    fn everything_else_is_left_to_the_parser() {
        for line in [
            "",
            "--",
            "-- true",
            "--sandbox-state-json {} true",
            "--sandbox-state-json {} --",
            "--sandbox-state-json={} -- true",
            "--sandbox-state-json {} --sandbox-state-json {} -- true",
            "--sandbox-state-json {} -P :workspace -- true",
            "--sandbox-state-json {} --report-fd x -- true",
            "--sandbox-state-json {} --help -- true",
            "--sandbox-state-json --report-fd 3 -- true",
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert!(read(&words).is_none(), "{line}");
        }
    }
}
