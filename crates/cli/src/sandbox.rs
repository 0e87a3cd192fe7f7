//! `plenipo sandbox`: run one command under a sandbox state or a permission profile.
//!
//! Dispatched before any runtime, logger or configuration is set up: launch time is what it is judged by.

mod arguments;
mod state_text;

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use plenipo_launch::{ErrorKind, LaunchError, LaunchRequest, Protections, launch};
use plenipo_policy::{ResolveContext, State};

use crate::env;
use arguments::{SandboxArguments, SandboxProgram};

/// The sandbox itself refused; 125 is ours alone when the report says so.
const REFUSED: u8 = 125;

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    match SandboxProgram::try_parse_from(arguments.iter().skip(1)) {
        Ok(program) => run(program.arguments),
        Err(error) => error.exit(),
    }
}

pub(crate) fn run(arguments: SandboxArguments) -> ExitCode {
    let report = match arguments.report_fd.map(plenipo_launch::inherited_descriptor).transpose() {
        Ok(report) => report,
        Err(error) => return refuse(&error, None),
    };
    let for_refusal = match report.as_ref().map(OwnedFd::try_clone).transpose() {
        Ok(copy) => copy,
        Err(error) => return refuse(&LaunchError::new(ErrorKind::Setup, error.to_string()), None),
    };
    let outcome = request(arguments).and_then(|mut request| {
        request.report = report;
        launch(request)
    });
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => refuse(&error, for_refusal),
    }
}

fn refuse(error: &LaunchError, report: Option<OwnedFd>) -> ExitCode {
    if let Some(report) = report {
        // The exit code and stderr still say it if the reader is gone.
        drop(std::fs::File::from(report).write_all(error.to_line().as_bytes()));
    }
    eprintln!("{error}");
    ExitCode::from(REFUSED)
}

fn request(arguments: SandboxArguments) -> Result<LaunchRequest, LaunchError> {
    let argument = arguments.sandbox_state_json.unwrap_or_default();
    let text = state_text::read(&argument)?;
    let state = State::parse(&text).map_err(invalid)?;
    let tmpdir = env::temporary_directory();
    let home = env::passwd_home();
    let mut context = ResolveContext::new(&state.cwd);
    context.tmpdir.clone_from(&tmpdir);
    context.home.clone_from(&home);
    context.readable_roots = arguments.sandbox_state_readable_root;
    context.disable_network = arguments.sandbox_state_disable_network;
    let policy = state.profile.resolve(&context).map_err(invalid)?;
    let mut request = LaunchRequest::new(policy, arguments.command);
    request.protections = protections(home)?;
    request.temporary = tmpdir.into_iter().chain([PathBuf::from("/tmp")]).collect();
    request.unknown_members = state.unknown_members;
    Ok(request)
}

fn protections(home: Option<PathBuf>) -> Result<Protections, LaunchError> {
    let executable = std::env::current_exe().map_err(invalid)?;
    let protections = Protections::of_executable(&executable);
    Ok(match home {
        Some(home) => protections.with_home(&home),
        None => protections,
    })
}

fn invalid(error: impl std::fmt::Display) -> LaunchError {
    LaunchError::new(ErrorKind::Invalid, error.to_string())
}
