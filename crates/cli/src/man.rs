//! Man pages from the same description as `--help`.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::arguments::Program;
use crate::failure::{Code, Failure};

/// Writes `plenipo.1` and one page for each command into `directory`.
pub(crate) fn write(directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("failed to write man pages into {}: {error}", directory.display());
        Failure::new(Code::Transport, message)
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let command = Program::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
