//! `plenipo server workspace`.

use std::process::ExitCode;

use plenipo_server_workspace::{OperatorPolicy, ServerOptions, serve};

use crate::arguments::Global;
use crate::env;
use crate::failure::{Code, Failure, with_sources};
use crate::settings::Settings;

/// Serves on stdin and stdout until stdin ends.
pub(crate) fn workspace(global: &Global) -> Result<ExitCode, Failure> {
    // A project has no say in how commands are run.
    let settings = Settings::of_user(global.config.as_deref())?;
    let mut options = ServerOptions::default();
    options.inherited_environment = env::variables();
    if settings.allow_unsandboxed() {
        options.operator = OperatorPolicy::AllowUnsandboxed;
    }
    let runtime = runtime()?;
    runtime.block_on(serve(options)).map(|()| ExitCode::SUCCESS).map_err(|error| {
        Failure::new(Code::Transport, format!("failed to {}", with_sources(&error)))
    })
}

/// One thread is enough for one person's calls, and starts fastest.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::new(Code::Transport, format!("failed to start the runtime: {error}"))
    })
}

/// Runs a command's future to its end. What still blocks then, a reader that reads no more, is not waited for.
pub(crate) fn run_to_end<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}
