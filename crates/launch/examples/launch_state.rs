//! The smallest program that runs a command under a sandbox state:
//!
//! ```text
//! launch_state --sandbox-state-json STATE|@FILE [--report-fd N] [--home DIR] [--minimum-rung NAME]
//!     [--strict-globs] [--explain] [--tty] [--egress greets|fails] -- COMMAND [ARGUMENT…]
//! ```
//!
//! `plenipo sandbox` is the same with configuration, hints and proper argument checks; this one exists to show the
//! library's use, and for the crate's own tests. Exit codes are those of [`plenipo_launch::launch`], 125 for a refusal.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use plenipo_launch::{Egress, LaunchRequest, Protections, Rung, explain, launch, take_inherited};
use plenipo_policy::State;

const REFUSED: u8 = 125;
/// What this program calls itself with inside bwrap.
const INNER_STAGE: &str = "--inner-stage";

/// What the command line says.
#[derive(Default)]
struct Arguments {
    state: String,
    report: Option<i32>,
    home: Option<PathBuf>,
    minimum_rung: Option<Rung>,
    explain: bool,
    strict_globs: bool,
    terminal: bool,
    egress: Option<Greeter>,
    command: Vec<OsString>,
}

/// Serves a limited network with one word; a real one asks each connection where it is to go.
#[derive(Debug)]
struct Greeter {
    fails: bool,
}

impl Egress for Greeter {
    fn serve(&self, listener: TcpListener) -> io::Result<()> {
        if self.fails {
            return Err(io::Error::other("nobody is at home"));
        }
        std::thread::Builder::new().spawn(move || {
            for mut stream in listener.incoming().flatten() {
                drop(stream.write_all(b"greetings\n"));
            }
        })?;
        Ok(())
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [word, number] = words.as_slice()
        && word == INNER_STAGE
    {
        let number = number.to_str().and_then(|number| number.parse().ok());
        return ExitCode::from(plenipo_launch::inner_stage(number.unwrap_or(-1)));
    }
    let arguments = match parse(words.into_iter()) {
        Ok(arguments) => arguments,
        Err(error) => return say(&*error),
    };
    // Taken over before anything else is opened: a descriptor of this program's own could get the same number.
    let report = match arguments.report.map(take_inherited).transpose() {
        Ok(report) => report,
        Err(error) => return say(&error),
    };
    run(arguments, report).unwrap_or_else(|error| say(&*error))
}

fn run(arguments: Arguments, report: Option<OwnedFd>) -> Result<ExitCode, Box<dyn Error>> {
    let only_explain = arguments.explain;
    let mut request = request(arguments)?;
    if only_explain {
        return Ok(match explain(&request) {
            Ok(report) => show(&report.to_line()),
            Err(error) => {
                if let Some(report) = report {
                    std::fs::File::from(report).write_all(error.to_line().as_bytes())?;
                }
                say(&error)
            }
        });
    }
    request.report = report;
    match launch(request) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => Ok(say(&error)),
    }
}

#[expect(clippy::disallowed_methods, reason = "a launcher says which TMPDIR counts")]
fn request(arguments: Arguments) -> Result<LaunchRequest, Box<dyn Error>> {
    let text = match arguments.state.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)?,
        None => arguments.state,
    };
    let state = State::parse(&text)?;
    let mut context = state.resolve_context();
    context.home.clone_from(&arguments.home);
    context.tmpdir = std::env::var_os("TMPDIR").and_then(|path| std::fs::canonicalize(path).ok());
    let policy = state.profile.resolve(&context)?;
    let mut request = LaunchRequest::new(policy, arguments.command);
    request.protections = Protections::of_executable(&std::env::current_exe()?).with_system();
    if let Some(home) = &arguments.home {
        request.protections = request.protections.with_home(home);
    }
    request.unknown_members = state.unknown_members;
    request.terminal = arguments.terminal;
    request.egress = arguments.egress.map(|egress| Box::new(egress) as Box<dyn Egress>);
    request.strict_globs = arguments.strict_globs;
    request.inner_stage = vec![INNER_STAGE.into()];
    if let Some(minimum) = arguments.minimum_rung {
        request.minimum_rung = minimum;
    }
    Ok(request)
}

fn show(line: &str) -> ExitCode {
    match io::stdout().write_all(line.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&error),
    }
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut text = || words.next().and_then(|value| value.into_string().ok());
        match word.to_str() {
            Some("--sandbox-state-json") => arguments.state = text().ok_or("a state is missing")?,
            Some("--report-fd") => {
                arguments.report = Some(text().ok_or("a descriptor is missing")?.parse()?);
            }
            Some("--minimum-rung") => {
                let name = text().ok_or("a rung is missing")?;
                arguments.minimum_rung = Some(Rung::from_name(&name).ok_or("no such rung")?);
            }
            Some("--explain") => arguments.explain = true,
            Some("--strict-globs") => arguments.strict_globs = true,
            Some("--home") => arguments.home = text().map(PathBuf::from),
            Some("--tty") => arguments.terminal = true,
            Some("--egress") => {
                let fails = text().ok_or("a word is missing")? == "fails";
                arguments.egress = Some(Greeter { fails });
            }
            Some("--") => arguments.command = words.by_ref().collect(),
            _ => return Err(format!("unexpected argument {}", word.display()).into()),
        }
    }
    Ok(arguments)
}

fn say(error: &dyn Error) -> ExitCode {
    let mut text = format!("launch_state: failed to {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    drop(writeln!(io::stderr(), "{text}"));
    ExitCode::from(REFUSED)
}
