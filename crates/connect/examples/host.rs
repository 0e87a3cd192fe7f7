//! A small agent host: `host PROGRAM [ARGUMENT…] [+ PROGRAM [ARGUMENT…]]…`.
//!
//! Starts the servers, prints their tools under names for a model, and takes its words for the model's: each line
//! on standard input, `NAME {arguments}`, is a call, made beside the others. Servers that opt in get `:workspace` with it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example that is talked to")]
#![expect(clippy::disallowed_methods, reason = "a host reads its own environment")]

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plenipo_connect::approval::ApprovalRequest;
use plenipo_connect::authority::SandboxState;
use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::wire::Fragment;
use plenipo_connect::{
    Approval, Approvals, Approver, CallRequest, ConnectOptions, Fleet, Member, NameRules, Server,
    ServerName, StdioCommand, ToolIndex, environment,
};
use plenipo_policy::{Network, PermissionProfile, State, WorkspaceRoots};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The person who would be asked, and told.
struct Terminal;

impl Approver for Terminal {
    fn approve<'a>(
        &'a self,
        call: &'a ApprovalRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        eprintln!("approved: {}.{}", call.server, call.tool.name());
        Box::pin(async { Approval::Session })
    }
}

impl Observer for Terminal {
    fn event(&self, event: &Event<'_>) {
        let Event::Warning { server, text } = event else { return };
        eprintln!("{server}: {text}");
    }
}

fn members(words: &[String], options: &ConnectOptions) -> Vec<Member> {
    let commands = words.split(|word| word == "+").enumerate().filter_map(|(place, words)| {
        let (program, arguments) = words.split_first()?;
        let variables = environment::build(&|name| std::env::var_os(name), &[], &BTreeMap::new());
        let mut command = StdioCommand::new(program);
        command.args(arguments).environment(variables);
        Some(Member::new(ServerName::new(&format!("s{place}"))?, command, options.clone()))
    });
    commands.collect()
}

/// Starts all at once; one that fails is told of, and the others go on.
async fn start(members: Vec<Member>) -> HashMap<ServerName, Server> {
    let endpoints: Vec<_> = members.iter().map(|member| member.endpoint.clone()).collect();
    let mut servers = HashMap::new();
    let started = Fleet::start(members).finish().await;
    for ((name, started), endpoint) in started.into_iter().zip(endpoints) {
        match started {
            Ok(connection) => drop(servers.insert(name, Server::keep(connection, endpoint))),
            Err(error) => eprintln!("{error}"),
        }
    }
    servers
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut options = ConnectOptions::default();
    let mut approvals = Approvals::default();
    approvals.approver = Some(Arc::new(Terminal));
    (options.approvals, options.observer) = (Some(approvals), Arc::new(Terminal));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let servers = start(members(&words, &options)).await;

    let mut connections = Vec::new();
    for server in servers.values() {
        connections.push(server.connection().await?);
    }
    let connected = connections.iter().map(AsRef::as_ref);
    let (index, unlisted) = ToolIndex::of(connected, &NameRules::default()).await;
    unlisted.iter().for_each(|error| eprintln!("{error}"));
    index.tools().for_each(|tool| println!("{} is {}", tool.model_name(), tool.qualified()));

    let directory = std::env::current_dir()?;
    let roots = WorkspaceRoots::new(&directory, None, true)?;
    let profile = PermissionProfile::workspace(&roots, Network::Restricted)?;
    let state = SandboxState::capture(&State::new(profile, &directory).to_json())?;

    let mut turn = tokio::task::JoinSet::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (name, arguments) = line.split_once(' ').unwrap_or((&line, "{}"));
        let tool = index.by_model_name(name).ok_or("there is no such tool")?;
        let server = servers.get(tool.server()).cloned().ok_or("there is no such server")?;
        // From here on the call's authority is settled, whatever changes before it is answered.
        let authority = server.capture(Some(state.clone())).await?;
        let arguments = Fragment::parse_object(arguments)?;
        let mut call = CallRequest::new(tool.tool().name(), Some(arguments), authority);
        call.prepared = Some(tool.tool().clone()); // refused if it is another tool by then
        call.timeout = Some(Duration::from_secs(30));
        call.progress = Some(Arc::new(|update| eprintln!("progress: {}", update.progress)));
        turn.spawn(async move { server.call(call).await });
    }
    while let Some(called) = turn.join_next().await {
        match called? {
            Ok(outcome) if outcome.is_error() => println!("failed: {}", outcome.view()?.text()),
            Ok(outcome) => println!("{}", outcome.view()?.text()),
            Err(error) => eprintln!("{error}"),
        }
    }
    for server in servers.into_values() {
        server.shut_down().await;
    }
    Ok(())
}
