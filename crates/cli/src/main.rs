//! The `plenipo` program: arguments, output, hints and exit codes around the crates that do the work.

#![forbid(unsafe_code)]

mod arguments;
mod audit;
mod authority;
mod call;
mod configuration;
mod confined;
mod credentials;
mod doctor;
mod edit;
mod env;
mod guard;
mod man;
mod memory;
mod proxies;
mod reach;
mod sandbox;
mod serve;
mod servers;
mod settings;
mod sign_in;
mod tools;
mod trust;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use arguments::{AuthCommand, Command, Global, IdentityCommand, Program, ServerCommand};
use failure::Failure;
use plenipo_console::{failure, person, progress, terminal};
use plenipo_enterprise::Source;

/// The release's.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: plenipo_launch::Allocator = plenipo_launch::Allocator::new();

fn main() -> ExitCode {
    let arguments = env::arguments();
    // The launcher goes ahead of everything else, the description of the other commands included.
    if arguments.get(1).is_some_and(|word| word == OsStr::new("sandbox")) {
        // Its help comes from the whole description below, like that of the other commands.
        if let Some(code) = sandbox::main(&arguments) {
            return code;
        }
    }
    everything_else(arguments)
}

// A function of its own: its frame is several pages, which a launch need not touch.
#[inline(never)]
fn everything_else(arguments: Vec<OsString>) -> ExitCode {
    let program = match Program::read(arguments) {
        Ok(program) => program,
        Err(error) => return shown(&error),
    };
    let global = program.global;
    if let Err(error) = plenipo_launch::resolve_without_modules() {
        return Failure::usage(format!("failed to choose how names are looked up: {error}"))
            .report();
    }
    let outcome = match program.command {
        Command::Call(call) => call::run(&global, call),
        Command::Sandbox(sandbox) => return sandbox::run(sandbox, &global),
        Command::Tools(tools) => tools::run(&global, &tools),
        Command::Servers => servers::run(&global),
        Command::Add(add) => edit::add(&global, &add),
        Command::Remove { name } => edit::remove(&global, &name),
        Command::Login(login) => sign_in::login(&global, &login),
        Command::Logout(logout) => sign_in::logout(&global, &logout),
        Command::Auth(AuthCommand::Status) => sign_in::status(&global),
        Command::Enterprise(command) => identity(&global, Source::Enterprise, &command),
        Command::Account(command) => identity(&global, Source::Account, &command),
        Command::Trust(trust) => trust::run(&global, &trust),
        Command::Config(command) => configuration::run(&global, &command),
        Command::Doctor(doctor) => doctor::run(&global, &doctor),
        Command::Trace { name, command } => return doctor::trace(&name, &command),
        Command::Server(ServerCommand::Workspace) => serve::workspace(&global),
        Command::Man { directory } => man::write(&directory),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}

/// What clap has to say: help and the version are an answer, the rest is about what was typed.
fn shown(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        error.exit();
    }
    let printed = terminal::print(&error.render().to_string());
    printed.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

/// A person at an identity provider.
fn identity(
    global: &Global,
    source: Source,
    command: &IdentityCommand,
) -> Result<ExitCode, Failure> {
    match command {
        IdentityCommand::Login(login) => sign_in::identity::login(global, source, login),
        IdentityCommand::Status => sign_in::identity::status(global, source),
        IdentityCommand::Logout { person } => {
            sign_in::identity::logout(global, source, person.as_deref())
        }
    }
}
