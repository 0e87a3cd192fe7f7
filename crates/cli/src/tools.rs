//! `plenipo tools [SERVER]`: what can be called.

use std::process::ExitCode;
use std::sync::Arc;

use plenipo_connect::catalog::{Catalog, Tool};
use plenipo_connect::{Connection, Fleet, Member, Readiness, ServerName};
use plenipo_wire::RawValue;
use serde::Serialize;

use crate::arguments::{Global, ToolsArguments};
use crate::call::InputSchema;
use crate::failure::{Code, Failure};
use crate::person::Person;
use crate::reach::{Host, Reachable, Unreachable};
use crate::serve::runtime;
use crate::settings::Settings;
use crate::{authority, proxies, sign_in, terminal};

/// One server's tools, or why there are none.
pub(crate) struct Listed {
    pub(crate) name: ServerName,
    pub(crate) transport: &'static str,
    pub(crate) required: bool,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Ready { connection: Box<Connection>, catalog: Arc<Catalog> },
    Disabled(String),
    Failed(Failure),
}

/// Lists the tools of one server or of all.
pub(crate) fn run(global: &Global, arguments: &ToolsArguments) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    for warning in settings.warnings() {
        terminal::warn(warning);
    }
    let failure = match attempt(global, &settings, arguments) {
        Err(failure) if failure.code() == Code::SignIn => failure,
        outcome => return outcome,
    };
    let (Some(server), Some(person)) = (&arguments.server, Person::at_terminal()) else {
        return Err(failure);
    };
    match runtime()?.block_on(sign_in::offer(&settings, &person, server, &failure))? {
        true => attempt(global, &settings, arguments),
        false => Err(failure),
    }
}

fn attempt(
    global: &Global,
    settings: &Settings,
    arguments: &ToolsArguments,
) -> Result<ExitCode, Failure> {
    let wanted = match &arguments.server {
        Some(name) => {
            let server = reachable(settings, name)?;
            vec![(server.name.clone(), Ok(server))]
        }
        None => Reachable::all(settings),
    };
    let alone = arguments.server.is_some();
    runtime()?.block_on(async {
        let mut listed = list(global, settings, wanted, arguments.account.as_deref()).await?;
        if let (true, Some(Listed { outcome: Outcome::Failed(_), .. })) = (alone, listed.last())
            && let Some(Listed { outcome: Outcome::Failed(failure), .. }) = listed.pop()
        {
            return Err(failure);
        }
        let shown = if global.json { show_json(&listed) } else { show(&listed, global.verbose) };
        let code = exit_code(&listed);
        shut_down(listed).await;
        shown.map(|()| code)
    })
}

/// The server called `name`, which may be started.
pub(crate) fn reachable(settings: &Settings, name: &str) -> Result<Reachable, Failure> {
    match Reachable::find(settings, name) {
        Some(Ok(reachable)) => Ok(reachable),
        Some(Err(unreachable)) => Err(unreachable.into_failure(name)),
        None => {
            if let Some(refused) = settings.refused_server(name) {
                return Err(refused);
            }
            let known: Vec<String> =
                Reachable::all(settings).into_iter().map(|(name, _)| name.to_string()).collect();
            Err(Failure::usage(format!("no server is called `{name}`"))
                .with_hint(format!("known servers: {}", known.join(", "))))
        }
    }
}

/// Starts all that may be started at once and lists their tools; the order stays.
pub(crate) async fn list(
    global: &Global,
    settings: &Settings,
    wanted: Vec<(ServerName, Result<Reachable, Unreachable>)>,
    account: Option<&str>,
) -> Result<Vec<Listed>, Failure> {
    let directory = authority::current_directory()?;
    let host = Host::new(global, settings, &directory).acting_as(account);
    let mut listed = Vec::new();
    let mut members: Vec<Member> = Vec::new();
    let mut positions = Vec::new();
    for (name, reachable) in wanted {
        let mut entry = Listed {
            name,
            transport: "",
            required: false,
            outcome: Outcome::Disabled(String::new()),
        };
        match reachable {
            Err(Unreachable::Disabled(reason)) => entry.outcome = Outcome::Disabled(reason),
            Err(Unreachable::Faulty(failure)) => entry.outcome = Outcome::Failed(failure),
            Ok(reachable) => {
                entry.transport = reachable.transport();
                entry.required = reachable.is_required();
                match reachable.member(&host) {
                    Ok(mut member) => {
                        member.readiness = Readiness::Catalog;
                        members.push(member);
                        let place = reachable.environment(settings)?;
                        positions.push((listed.len(), (place, proxies::dropped(&reachable))));
                    }
                    Err(failure) => entry.outcome = Outcome::Failed(failure),
                }
            }
        }
        listed.push(entry);
    }
    let started = Fleet::start(members).finish().await;
    for ((position, (place, dropped)), (_, started)) in positions.into_iter().zip(started) {
        let outcome = match started {
            Ok(connection) => match connection.catalog().await {
                Ok(catalog) => Outcome::Ready { connection: Box::new(connection), catalog },
                Err(error) => Outcome::Failed(error.into()),
            },
            Err(error) => Outcome::Failed(proxies::failed_start(error, place, &dropped)),
        };
        if let Some(entry) = listed.get_mut(position) {
            entry.outcome = outcome;
        }
    }
    Ok(listed)
}

/// A server that is required has to be there.
pub(crate) fn exit_code(listed: &[Listed]) -> ExitCode {
    let failed =
        listed.iter().find(|entry| matches!(entry.outcome, Outcome::Failed(_)) && entry.required);
    match failed.map(|entry| &entry.outcome) {
        Some(Outcome::Failed(failure)) => failure.code().into(),
        _ => ExitCode::SUCCESS,
    }
}

/// Ends all of them at the same time.
pub(crate) async fn shut_down(listed: Vec<Listed>) {
    let mut ending = tokio::task::JoinSet::new();
    for entry in listed {
        if let Outcome::Ready { connection, .. } = entry.outcome {
            ending.spawn(async move { connection.leave().await });
        }
    }
    while ending.join_next().await.is_some() {}
}

fn show(listed: &[Listed], verbose: bool) -> Result<(), Failure> {
    let paint = terminal::stdout();
    let mut lines = Vec::new();
    for entry in listed {
        match &entry.outcome {
            Outcome::Ready { catalog, .. } => {
                lines.push(paint.bold(entry.name.as_str()));
                for tool in catalog.tools() {
                    lines.push(format!("  {}", signature(tool)));
                    if let Some(line) = description(tool, verbose) {
                        lines.push(format!("      {}", paint.dim(&line)));
                    }
                }
                for dropped in catalog.dropped() {
                    let name = dropped.name.as_deref().unwrap_or("(no name)");
                    terminal::warn(&format!("server `{}`: {name}: {}", entry.name, dropped.reason));
                }
            }
            Outcome::Disabled(reason) => {
                terminal::tell(&format!("server `{}` is disabled: {reason}", entry.name));
            }
            Outcome::Failed(failure) => {
                terminal::warn(failure.message());
            }
        }
    }
    terminal::print_lines(&lines)
}

fn signature(tool: &Tool) -> String {
    match tool.view() {
        Ok(view) => InputSchema::read(view.input_schema).signature(tool.name()),
        Err(_) => tool.name().to_owned(),
    }
}

/// The first line, or all of it; a server's text has no say over the terminal.
fn description(tool: &Tool, verbose: bool) -> Option<String> {
    const FIRST_LINE: usize = 160;
    let view = tool.view().ok()?;
    let text = view.description?;
    let clean = |line: &str| -> String {
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    if verbose {
        let lines: Vec<String> = text.lines().map(clean).collect();
        return Some(lines.join("\n      "));
    }
    let line = clean(text.lines().find(|line| !line.trim().is_empty())?.trim());
    let short: String = line.chars().take(FIRST_LINE).collect();
    Some(if short.len() < line.len() { format!("{short}…") } else { line })
}

#[derive(Serialize)]
struct JsonServer<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<&'a str>,
    tools: Vec<&'a RawValue>,
}

/// Every tool as its server sent it.
fn show_json(listed: &[Listed]) -> Result<(), Failure> {
    let servers: Vec<JsonServer<'_>> = listed
        .iter()
        .map(|entry| JsonServer {
            server: entry.name.as_str(),
            error: match &entry.outcome {
                Outcome::Failed(failure) => Some(failure.message()),
                _ => None,
            },
            disabled: match &entry.outcome {
                Outcome::Disabled(reason) => Some(reason),
                _ => None,
            },
            tools: match &entry.outcome {
                Outcome::Ready { catalog, .. } => {
                    catalog.tools().map(|tool| tool.raw().as_raw()).collect()
                }
                _ => Vec::new(),
            },
        })
        .collect();
    terminal::print_json(&servers)
}
