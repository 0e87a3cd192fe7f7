//! A small host around `plenipo-connect` for the official conformance suite, which starts it once a
//! scenario: the server's URL is the last argument, the rest comes in `MCP_CONFORMANCE_…`.
//!
//! It connects, lists and calls through the same API as any other host. A scenario may say *what* to
//! call; how that is done on the wire is the runtime's affair. The last line on standard output says
//! how the client ended (`cargo xtask conformance` reads it).
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the suite keeps both")]

mod auth;
mod host;
mod person;
mod sample;
mod scenario;
mod situation;

use std::error::Error;
use std::process::ExitCode;

use plenipo_connect::text::with_sources;
use situation::Situation;

/// What a step of the client comes to.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => {
            println!("client: ok");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("client: failed to {}", with_sources(&*error).replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let situation = Situation::read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(scenario::play(&situation))
}
