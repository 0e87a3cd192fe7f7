//! The `plenipo` program.

mod env;
mod sandbox;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    sandbox::main(&arguments)
}
