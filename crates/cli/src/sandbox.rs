//! `plenipo sandbox`: run one command under a sandbox state or a permission profile.
//!
//! Dispatched before any runtime, logger or configuration is set up: launch time is what it is judged by.

mod arguments;
mod contract;
mod explain;
mod limited;
mod state_text;

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use clap::Parser;
use plenipo_config::EnvironmentPolicy;
use plenipo_launch::{ErrorKind, LaunchError, LaunchRequest, Protections, launch};
use plenipo_policy::{SandboxPolicy, State};

pub(crate) use arguments::SandboxArguments;

use crate::arguments::Global;
use crate::authority::{self, ProfileChoice};
use crate::env;
use crate::failure::{Code, Failure, with_sources};
use crate::settings::Settings;
use crate::terminal;
use arguments::SandboxProgram;
use limited::Limited;

/// The sandbox itself refused; 125 is ours alone when the report says so.
const REFUSED: u8 = 125;

/// What this program calls itself with inside bwrap; nobody else has a use for it.
const INNER_STAGE: [&str; 2] = ["sandbox", "--inner-stage"];

/// Runs the command; `None` when it was asked for help.
pub(crate) fn main(arguments: &[OsString]) -> Option<ExitCode> {
    if let [_, words @ .., descriptor] = arguments
        && words == INNER_STAGE
    {
        let descriptor = descriptor.to_str().and_then(|number| number.parse().ok());
        return Some(ExitCode::from(plenipo_launch::inner_stage(descriptor.unwrap_or(-1))));
    }
    if let Some(found) = contract::read(arguments.get(2..).unwrap_or_default()) {
        return Some(run(found, &Global::default()));
    }
    match SandboxProgram::try_parse_from(arguments.iter().skip(1)) {
        Ok(program) => Some(run(program.arguments, &program.global)),
        Err(error) if !error.use_stderr() => None,
        Err(error) => error.exit(),
    }
}

pub(crate) fn run(arguments: SandboxArguments, global: &Global) -> ExitCode {
    if arguments.sandbox_state_json.is_some() && global.config.is_some() {
        // What a caller names can't have a say about a state.
        return Failure::usage("--config cannot be used with --sandbox-state-json").report();
    }
    let inherited = |number: Option<i32>| number.map(plenipo_launch::take_inherited).transpose();
    let (report, end) = match (inherited(arguments.report_fd), inherited(arguments.end_report_fd)) {
        (Ok(report), Ok(end)) => (report, end),
        (Err(error), _) | (_, Err(error)) => return refuse(&error),
    };
    let request = match arguments.sandbox_state_json.as_deref() {
        Some(text) => from_state(text, &arguments),
        None => match from_profile(&arguments, global) {
            Ok(request) => request,
            Err(failure) if failure.code() == Code::Refused => Err(as_refusal(&failure)),
            Err(failure) => {
                write_refusal(&as_refusal(&failure), report);
                return failure.report();
            }
        },
    };
    let request = request.and_then(|mut request| {
        let limited = Limited::attach(&mut request)?;
        Ok((request, limited))
    });
    if arguments.explain {
        return match request.and_then(|(request, _)| plenipo_launch::explain(&request)) {
            Ok(report) => explain::show(&report, global.json),
            Err(error) => {
                explain::show_refusal(&error, global.json);
                refuse(&error)
            }
        };
    }
    let outcome = match request {
        Ok((mut request, limited)) => {
            request.report = report;
            launch(request).inspect(|code| ended(*code, limited.as_ref(), (end, global.verbose)))
        }
        Err(error) => {
            write_refusal(&error, report);
            Err(error)
        }
    };
    outcome.map_or_else(|error| refuse(&error), ExitCode::from)
}

/// Ends what served the command, and says how it went where that is wanted.
fn ended(code: u8, limited: Option<&Limited>, (report, verbose): (Option<OwnedFd>, bool)) {
    let network = limited.map(|limited| limited.finish(verbose));
    if let Some(report) = report {
        limited::write_end(report, code, network.as_ref());
    }
}

fn as_refusal(failure: &Failure) -> LaunchError {
    let error = LaunchError::new(ErrorKind::Invalid, failure.message());
    match failure.hint() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// For what is refused before there is a request; a launch writes its own.
fn write_refusal(error: &LaunchError, report: Option<OwnedFd>) {
    if let Some(report) = report {
        // The exit code and stderr still say it if the reader is gone.
        drop(std::fs::File::from(report).write_all(error.to_line().as_bytes()));
    }
}

fn refuse(error: &LaunchError) -> ExitCode {
    let paint = terminal::stderr();
    let sentence = with_sources(error);
    let sentence = terminal::line(&sentence);
    terminal::tell(&format!("{} the sandbox refused: {sentence}", paint.red("plenipo:")));
    if let Some(hint) = error.hint() {
        terminal::tell(&format!("{} {}", paint.bold("hint:"), terminal::line(hint)));
    }
    ExitCode::from(REFUSED)
}

/// The state form: nothing that the caller's environment or directory says has a part in it but `TMPDIR`, which the
/// policy itself asks about.
fn from_state(text: &str, arguments: &SandboxArguments) -> Result<LaunchRequest, LaunchError> {
    let state = State::parse(&state_text::read(text)?).map_err(|error| invalid(&error))?;
    let mut context = authority::context(&state);
    context.readable_roots.clone_from(&arguments.sandbox_state_readable_root);
    context.disable_network = arguments.sandbox_state_disable_network;
    let policy = state.profile.resolve(&context).map_err(|error| invalid(&error))?;
    let mut request = request(policy, arguments)?;
    request.unknown_members = state.unknown_members;
    match Settings::of_passwd_user() {
        Ok(settings) => {
            allow(&mut request, &settings, arguments);
            request.environment = environment(&settings);
        }
        // Without a configuration nothing weak is allowed, and what it may have asked for is asked for.
        Err(failure) => {
            allow(&mut request, &Settings::default(), arguments);
            request.strict_globs = true;
            request.notes.push(failure.message().to_owned());
            request.environment = Some(EnvironmentPolicy::default().apply(env::variables(), false));
        }
    }
    Ok(request)
}

fn from_profile(
    arguments: &SandboxArguments,
    global: &Global,
) -> Result<Result<LaunchRequest, LaunchError>, Failure> {
    // The administrator's file is no part of the command line: one that cannot be relied on is a refusal.
    if let Err(failure) = Settings::managed() {
        return Ok(Err(as_refusal(&failure)));
    }
    let settings = Settings::load_in(global.config.as_deref(), arguments.cd.as_deref())?;
    let choice = ProfileChoice {
        name: arguments.permission_profile.as_deref(),
        directory: arguments.cd.as_deref(),
    };
    let state = authority::in_force(&settings, choice)?.state;
    let policy = state
        .profile
        .resolve(&authority::context(&state))
        .map_err(|error| Failure::new(Code::Refused, error.to_string()))?;
    Ok(request(policy, arguments).map(|mut request| {
        allow(&mut request, &settings, arguments);
        request.environment = environment(&settings);
        request
    }))
}

/// A person's own command gets the person's environment, unless the operator says otherwise.
fn environment(settings: &Settings) -> Option<Vec<(OsString, OsString)>> {
    settings.environment_policy().map(|policy| policy.apply(env::variables(), true))
}

/// What a caller asks for raises what the operator does, and never lowers it.
fn allow(request: &mut LaunchRequest, settings: &Settings, arguments: &SandboxArguments) {
    let configured = settings.minimum_rung();
    let asked = arguments.minimum_rung.unwrap_or(configured);
    request.minimum_rung = asked.or_stronger(configured);
    request.strict_globs = settings.strict_globs() || arguments.deny_glob.is_some();
}

fn request(
    policy: SandboxPolicy,
    arguments: &SandboxArguments,
) -> Result<LaunchRequest, LaunchError> {
    let mut command = arguments.command.clone();
    if command.is_empty() {
        command.push("true".into()); // only explained
    }
    let mut request = LaunchRequest::new(policy, command);
    request.protections = protections()?;
    request.inner_stage = INNER_STAGE.map(OsString::from).to_vec();
    request.terminal = arguments.tty;
    Ok(request)
}

/// Both homes, the passwd file's and the environment's: protecting one place more can lower nothing.
fn protections() -> Result<Protections, LaunchError> {
    let executable = env::executable().map_err(|error| invalid(&error))?;
    let mut protections = Protections::of_executable(&executable).with_system();
    for home in [env::passwd_home(), env::home()].into_iter().flatten() {
        protections = protections.with_home(&home);
    }
    protections.read_only.extend(env::configuration_directory());
    protections.read_only.extend(env::data_directory());
    Ok(protections)
}

fn invalid(error: &dyn std::error::Error) -> LaunchError {
    LaunchError::new(ErrorKind::Invalid, with_sources(error))
}
