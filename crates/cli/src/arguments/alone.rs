//! `plenipo call` read by itself: to describe all the other commands, too, takes a good part of a short call.

use std::ffi::OsString;

use clap::Parser;

use super::{CallArguments, Command, Global, Program};

/// What `plenipo call` takes, and nothing of the other commands.
#[derive(Debug, Parser)]
struct CallAlone {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    call: CallArguments,
}

impl Program {
    /// Reads what was typed, the program's name first.
    pub(crate) fn read(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        match call_alone(&arguments) {
            Some(program) => Ok(program),
            // Help, and what is wrong, come from the description of everything.
            None => Self::try_parse_from(arguments),
        }
    }
}

fn call_alone(arguments: &[OsString]) -> Option<Program> {
    let [program, command, rest @ ..] = arguments else { return None };
    if command != "call" {
        return None;
    }
    let alone = CallAlone::try_parse_from(std::iter::once(program).chain(rest)).ok()?;
    Some(Program { global: alone.global, command: Command::Call(alone.call) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_read_by_itself_is_the_call_that_everything_reads() {
        for (typed, is_short) in [
            ("call a.b", true),
            ("call a.b text=hi n:=3 --json -v --config x.toml --timeout 3s", true),
            ("call --args {} -C /srv --profile :read-only a.b --yes", false),
            ("call a.b -- --help", true),
            ("call help", true),
            ("call", false),
            ("call --help", false),
            ("call a.b -h", false),
            ("call a.b --version", false),
            ("call a.b --nothing-like-it", false),
            ("call a.b --timeout never", false),
            ("--json call a.b", false),
            ("tools call", false),
            ("", false),
        ] {
            let arguments: Vec<OsString> = std::iter::once("plenipo")
                .chain(typed.split_whitespace())
                .map(Into::into)
                .collect();
            let whole = Program::try_parse_from(&arguments);
            let alone = call_alone(&arguments);
            assert_eq!(alone.is_some(), is_short, "{typed}");
            let read = Program::read(arguments);
            match (whole, read) {
                (Ok(whole), Ok(read)) => assert_eq!(format!("{whole:?}"), format!("{read:?}")),
                (Err(whole), Err(read)) => assert_eq!(whole.to_string(), read.to_string()),
                (whole, read) => panic!("{typed}: {whole:?} is not {read:?}"),
            }
        }
    }
}
