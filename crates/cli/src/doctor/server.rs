//! `plenipo doctor SERVER`: one watched run of a server, and the smallest profile that it starts under.
//!
//! The profile is what is tried at the end, as it is printed: the server is started inside a sandbox with it and does
//! the same again.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;

use plenipo_connect::{
    Approver, CallRequest, ConnectOptions, Connection, Endpoint, Member, StdioCommand,
};
use plenipo_policy::parse_permissions;
use plenipo_trace::{Collector, Proposal, Surroundings};
use serde_json::json;

use crate::arguments::{DoctorArguments, Global};
use crate::call::{InputSchema, Inputs};
use crate::failure::{Code, Failure};
use crate::person::Person;
use crate::reach::{Host, Reachable};
use crate::serve::run_to_end;
use crate::settings::Settings;
use crate::{authority, call, confined, env, proxies, terminal, tools};

/// A server that is tried, and what is called.
struct Patient<'a> {
    settings: &'a Settings,
    server: Reachable,
    arguments: &'a DoctorArguments,
    inputs: Inputs,
}

/// What a run did.
struct Seen {
    tools: Vec<String>,
    /// The called tool said that it failed.
    failed: bool,
}

pub(super) fn run(
    global: &Global,
    name: &str,
    arguments: &DoctorArguments,
) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    let server = tools::reachable(&settings, name)?.unconfined();
    check(&settings, &server)?;
    let dropped = proxies::dropped(&server);
    if !dropped.is_empty() {
        let (told, key) = (proxies::told(&dropped), proxies::key(&dropped));
        terminal::warn(&format!(
            "{told}, and not passed on to `{name}`: write {key} in its table if it needs a proxy"
        ));
    }
    let keeper = server.start_keeper();
    let inputs = Inputs::of_pairs(&arguments.pairs)?;
    let patient = Patient { settings: &settings, server, arguments, inputs };
    let directory = authority::working_directory(None)?;
    let host = Host::new(global, &settings, &directory).kept_by(keeper);
    let Member { endpoint, options, .. } = patient.server.member(&host)?;
    let Endpoint::Stdio(command) = endpoint else { return Err(elsewhere(name, "has a `url`")) };
    run_to_end(async {
        let collector = Collector::start().map_err(|error| watching(name, &error))?;
        let watched = watched(name, &command, collector.name())?;
        let seen = patient.attempt(watched, options.clone(), false).await;
        let survey = collector.finish();
        let seen = seen?;
        let survey = survey.map_err(|error| watching(name, &error))?;
        let proposal =
            Proposal::new(&patient.profile_name()?, &survey, patient.surroundings(&command)?);
        let again = patient.under(&proposal, &command, options).await;
        patient.show(global, &proposal, &seen, again)
    })
}

/// Only a server of this machine can be watched, and only one that is not inside a sandbox of its own making.
fn check(settings: &Settings, server: &Reachable) -> Result<(), Failure> {
    let name = server.name.as_str();
    match server.transport() {
        "built-in" => Err(elsewhere(name, "is built in: its commands are sandboxed one by one")),
        "http" => Err(elsewhere(name, "has a `url`")),
        _ => match server.environment(settings)? {
            Some(place) => Err(elsewhere(name, &format!("runs in environment `{}`", place.id))),
            None => Ok(()),
        },
    }
}

fn elsewhere(name: &str, why: &str) -> Failure {
    Failure::usage(format!("failed to watch server `{name}`: it {why}"))
        .with_hint("only a server with a `command` on this machine can be watched and confined")
}

fn watching(name: &str, error: &std::io::Error) -> Failure {
    Failure::new(Code::Transport, format!("failed to watch server `{name}`: {error}"))
        .with_hint("it takes Linux 5.5 or newer, with seccomp and without ptrace restrictions (kernel.yama.ptrace_scope below 2)")
}

/// This program between the server and its host, telling a collector what it touches.
fn watched(name: &str, server: &StdioCommand, collector: &str) -> Result<StdioCommand, Failure> {
    let executable = env::executable().map_err(|error| {
        let message = format!("failed to watch server `{name}`: {error}");
        Failure::new(Code::Transport, message)
    })?;
    let mut command = StdioCommand::new(executable);
    command.args(["trace", "--to", collector, "--"].map(OsStr::new));
    command.args([server.program()]).args(server.arguments()).environment(server.variables());
    if let Some(directory) = server.directory() {
        command.current_dir(directory);
    }
    command.standing_for(server);
    Ok(command)
}

impl Patient<'_> {
    /// Starts it, lists its tools, and calls the one that was asked for.
    async fn attempt(
        &self,
        command: StdioCommand,
        mut options: ConnectOptions,
        inside: bool,
    ) -> Result<Seen, Failure> {
        if let (Some(approvals), Some(person)) = (&mut options.approvals, Person::at_terminal()) {
            approvals.approver = Some(person as Arc<dyn Approver>);
        }
        let name = self.server.name.clone();
        let connection = Connection::open(name, &Endpoint::from(command), options).await?;
        let nested =
            if inside { confined::check_nesting(self.settings, &connection) } else { Ok(()) };
        let seen = match nested {
            Ok(()) => self.use_it(&connection).await,
            Err(refused) => Err(refused),
        };
        connection.shut_down().await;
        seen
    }

    async fn use_it(&self, connection: &Connection) -> Result<Seen, Failure> {
        let catalog = connection.catalog().await?;
        let mut seen = Seen {
            tools: catalog.tools().map(|tool| tool.name().to_owned()).collect(),
            failed: false,
        };
        if let Some(name) = &self.arguments.call {
            let tool = call::tool(&catalog, self.server.name.as_str(), name)?;
            let view =
                tool.view().map_err(|error| Failure::new(Code::Protocol, error.to_string()))?;
            let input = self.inputs.arguments(&InputSchema::read(view.input_schema), name)?;
            let authority = connection.capture(None).await;
            let mut request = CallRequest::new(name, Some(input), authority);
            request.asked_by_person = true;
            request.prepared = Some(tool.clone());
            seen.failed = connection.call(request).await?.is_error();
        }
        Ok(seen)
    }

    /// The same inside a sandbox with the proposed profile.
    async fn under(
        &self,
        proposal: &Proposal,
        command: &StdioCommand,
        options: ConnectOptions,
    ) -> Result<Seen, Failure> {
        let tables = parse_permissions(&proposal.toml(), "the proposal")?;
        let profile = |roots: &_| Ok(tables.profile(proposal.name(), roots)?);
        let state = confined::state(self.settings, command.directory(), profile)?;
        let name = &self.server.name;
        let inside = confined::inside(self.settings, (name, proposal.name()), &state, command)?;
        self.attempt(inside, options, true).await
    }

    /// The server's own, unless a profile has it.
    fn profile_name(&self) -> Result<String, Failure> {
        let tables = self.settings.permissions()?;
        let own = self.server.name.as_str();
        let numbered = (2_u32..).map(|number| format!("{own}-{number}"));
        let mut candidates = std::iter::once(own.to_owned()).chain(numbered);
        let free = candidates.find(|name| tables.choices().all(|taken| taken != name));
        Ok(free.unwrap_or_else(|| own.to_owned()))
    }

    fn surroundings(&self, command: &StdioCommand) -> Result<Surroundings, Failure> {
        let mut around = Surroundings::default();
        around.home = env::real_home()?;
        around.directory = authority::working_directory(command.directory())?;
        around.temporary = env::temporary_directory();
        let text = |word: &OsStr| word.to_str().map(str::to_owned);
        around.arguments = command.arguments().filter_map(text).collect();
        let set: Vec<&str> = self.server.variables_set().collect();
        let variables =
            command.variables().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        around.variables = variables.filter(|(name, _)| set.contains(&name.as_str())).collect();
        Ok(around)
    }

    fn show(
        &self,
        global: &Global,
        proposal: &Proposal,
        before: &Seen,
        again: Result<Seen, Failure>,
    ) -> Result<ExitCode, Failure> {
        let verdict = again.and_then(|again| self.compare(before, &again));
        if global.json {
            terminal::print_json(&json!({
                "server": self.server.name.as_str(),
                "profile": proposal.name(),
                "toml": proposal.toml(),
                "tools": before.tools.len(),
                "network": proposal.network(),
                "secrets": proposal.secrets().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
                "sockets": proposal.sockets().collect::<Vec<_>>(),
                "incomplete": proposal.is_incomplete(),
                "works": verdict.is_ok(),
                "reason": verdict.as_ref().err().map(Failure::message),
            }))?;
        } else {
            let confining = proposal.confining(self.server.name.as_str());
            terminal::print(&format!("{}\n{confining}", proposal.toml().trim_end()))?;
        }
        for secret in proposal.secrets() {
            terminal::warn(&format!(
                "SECRET: the server looks at {} or is told to; the proposed profile does not let it",
                terminal::harmless(&secret.to_string_lossy())
            ));
        }
        for place in proposal.unsearched() {
            terminal::warn(&format!(
                "SECRETS MAY BE READABLE in {}: there is too much in it to search, or no profile can name what is there",
                terminal::harmless(&place.to_string_lossy())
            ));
        }
        verdict.map_err(|failure| {
            let message = format!(
                "under the proposed profile server `{}` does not work: {}",
                self.server.name,
                failure.message()
            );
            let hint = match proposal.secrets().next() {
                Some(_) => {
                    "it may want the secrets, which are for you to grant; -v shows what it says"
                }
                None => "look at the comments in the profile; -v shows what the server says",
            };
            Failure::new(Code::ToolError, message).with_hint(hint)
        })?;
        let called = self.arguments.call.iter().map(|tool| format!(" and answers `{tool}`"));
        terminal::tell(&format!(
            "tried: under this profile the server starts, lists {} tools{}",
            before.tools.len(),
            called.collect::<String>()
        ));
        Ok(ExitCode::SUCCESS)
    }

    fn compare(&self, before: &Seen, again: &Seen) -> Result<(), Failure> {
        if before.tools != again.tools {
            let message =
                format!("it lists {} tools instead of {}", again.tools.len(), before.tools.len());
            return Err(Failure::new(Code::ToolError, message));
        }
        match again.failed && !before.failed {
            true => Err(Failure::new(Code::ToolError, "the tool that was called fails there")),
            false => Ok(()),
        }
    }
}

/// The process between: before anything starts a thread.
pub(crate) fn trace(name: &str, command: &[OsString]) -> ExitCode {
    let run = plenipo_trace::run(name, command);
    run.map_or_else(
        |error| {
            let program = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            let message =
                format!("failed to run `{}`, watched: {error}", terminal::harmless(&program));
            Failure::new(Code::Transport, message).report()
        },
        ExitCode::from,
    )
}
