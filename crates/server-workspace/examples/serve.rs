//! The server at stdin and stdout, as its own program: the values that an operator decides come
//! from here, never from the crate. `cargo run --example serve -- --allow-unsandboxed`

use std::process::ExitCode;

use plenipo_server_workspace::{OperatorPolicy, ServerOptions, serve};

fn main() -> ExitCode {
    let mut options = ServerOptions::default();
    options.inherited_environment = std::env::vars_os().collect();
    if std::env::args().any(|argument| argument == "--allow-unsandboxed") {
        options.operator = OperatorPolicy::AllowUnsandboxed;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    if runtime.block_on(serve(options)).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
