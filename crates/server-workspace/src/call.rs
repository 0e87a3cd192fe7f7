//! One `tools/call`, from its parameters to its result.

use std::path::PathBuf;
use std::sync::Arc;

use plenipo_authority::{
    CallAuthority, CallAuthorityError, OperatorPolicy, Refusal, SandboxedCommand,
};
use plenipo_wire::protocol::meta;
use plenipo_wire::{RawValue, RequestId, object};
use tokio::sync::{mpsc, oneshot};

use crate::arguments::RunArguments;
use crate::options::Restriction;
use crate::probe::{Help, Probes, REPORT};
use crate::progress::Progress;
use crate::protocol::{Era, Failure};
use crate::result::{ToolResult, report_budget, stream_budget};
use crate::session::call::SessionArguments;
use crate::session::{Session, Sessions};
use crate::watch::{End, Limits, watch};
use crate::{ServerOptions, directory, session, spawn, text, tool};

const OPERATOR_HINT: &str = "call through a host that sends `codex/sandbox-launcher`; or the \
    operator of this server can allow unsandboxed commands, with `allow_unsandboxed = true` under \
    `[server.workspace]` in the user or managed configuration";

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ServerOptions,
    pub(crate) probes: Probes,
    pub(crate) sessions: Sessions,
}

/// A call as it was accepted. Its authority was read then and does not change.
#[derive(Debug)]
pub(crate) struct Call {
    work: Result<Work, String>,
    authority: Result<CallAuthority, CallAuthorityError>,
    progress_token: Option<RequestId>,
}

/// What a call asks for.
#[derive(Debug)]
enum Work {
    Run(RunArguments),
    Start,
    Send(SessionArguments),
    Close(SessionArguments),
}

/// Why nothing was run: a sentence, and what to do about it.
struct NotRun {
    message: String,
    hint: Option<String>,
}

/// What will be started.
struct Prepared {
    command: SandboxedCommand,
    /// The launcher reports what it enforces.
    reporting: bool,
    /// Only when unsandboxed: a launcher goes to the state's directory itself.
    directory: Option<PathBuf>,
}

impl Call {
    /// Reads the parameters of `tools/call`.
    ///
    /// # Errors
    /// When they are no request for a tool of this server. Wrong arguments of the tool and a wrong
    /// authority are results, which a model gets to read.
    pub(crate) fn accept(params: Option<&RawValue>) -> Result<Self, Failure> {
        let (mut name, mut arguments, mut meta) = (None, None, None);
        for (key, value) in params.and_then(object::entries).unwrap_or_default() {
            let slot = match &*key {
                "name" => &mut name,
                "arguments" => &mut arguments,
                "_meta" => &mut meta,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(Failure::invalid_params(format!("`{key}` is given twice")));
            }
        }
        let name = name.and_then(object::text);
        let work = match name.as_deref() {
            Some(tool::NAME) => RunArguments::parse(arguments).map(Work::Run),
            Some(tool::START) => SessionArguments::none(arguments).map(|()| Work::Start),
            Some(tool::SEND) => SessionArguments::of_send(arguments).map(Work::Send),
            Some(tool::CLOSE) => SessionArguments::of_close(arguments).map(Work::Close),
            Some(other) => return Err(unknown_tool(other)),
            None => return Err(Failure::invalid_params("`name` must be a string".to_owned())),
        };
        Ok(Self {
            work,
            authority: meta.map_or(Ok(CallAuthority::absent()), CallAuthority::from_meta),
            progress_token: meta
                .and_then(|meta| object::member(meta, meta::PROGRESS_TOKEN))
                .and_then(RequestId::from_raw),
        })
    }

    /// Runs the command; `None` when it was cancelled, because then nobody waits for an answer.
    pub(crate) async fn run(
        self,
        shared: Arc<Shared>,
        outbox: mpsc::Sender<Vec<u8>>,
        mut cancelled: oneshot::Receiver<()>,
    ) -> Option<ToolResult> {
        let progress = Progress::new(self.progress_token.as_ref(), outbox);
        match self.carry_out(&shared, progress, &mut cancelled).await {
            Ok(result) => result,
            Err(not_run) => Some(ToolResult::failed(&not_run.message, not_run.hint.as_deref())),
        }
    }

    async fn carry_out(
        self,
        shared: &Shared,
        progress: Progress,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Result<Option<ToolResult>, NotRun> {
        let work = self.work.map_err(NotRun::because)?;
        let authority = self.authority.map_err(|error| NotRun::malformed(&error))?;
        let budget = stream_budget(shared.options.max_message_bytes);
        match work {
            Work::Run(arguments) => run(arguments, &authority, shared, cancelled, progress).await,
            Work::Start => start_session(&authority, shared, cancelled).await,
            Work::Send(arguments) => tokio::select! {
                sent = session::call::send(&shared.sessions, &arguments, &authority, budget) => {
                    sent.map(Some).map_err(NotRun::because)
                }
                // What is dropped with the other branch is the session.
                _ = &mut *cancelled => Ok(None),
            },
            Work::Close(arguments) => {
                let closed = session::call::close(&shared.sessions, &arguments, &authority);
                closed.map(Some).map_err(NotRun::because)
            }
        }
    }
}

async fn run(
    arguments: RunArguments,
    authority: &CallAuthority,
    shared: &Shared,
    cancelled: &mut oneshot::Receiver<()>,
    progress: Progress,
) -> Result<Option<ToolResult>, NotRun> {
    let ready = ready(authority, arguments.argv, shared, cancelled).await?;
    let Some(Prepared { command, directory, reporting }) = ready else { return Ok(None) };
    let sandboxed = command.is_sandboxed();
    let program = command.program().to_string_lossy().into_owned();
    let limits = Limits {
        timeout: arguments.timeout,
        report_bytes: report_budget(shared.options.max_message_bytes),
    };
    let failed = |error| NotRun::because(format!("failed to run `{program}`: {error}"));
    let started = spawn::start(command, directory.as_deref(), reporting).map_err(failed)?;
    let watched = watch(started, limits, cancelled, progress).await.map_err(failed)?;
    if watched.end == End::Cancelled {
        return Ok(None);
    }
    let report = reporting.then_some(&watched.report);
    let enforcement = session::enforcement(sandboxed, report);
    let budget = stream_budget(shared.options.max_message_bytes);
    Ok(Some(ToolResult::of(&watched, &enforcement, budget)))
}

async fn start_session(
    authority: &CallAuthority,
    shared: &Shared,
    cancelled: &mut oneshot::Receiver<()>,
) -> Result<Option<ToolResult>, NotRun> {
    let ready = ready(authority, session::call::shell(), shared, cancelled).await?;
    let Some(Prepared { command, directory, reporting }) = ready else { return Ok(None) };
    let sandboxed = command.is_sandboxed();
    let program = command.program().to_string_lossy().into_owned();
    let failed = |error| NotRun::because(format!("failed to run `{program}`: {error}"));
    let started = spawn::start_session(command, directory.as_deref(), reporting).map_err(failed)?;
    let report_bytes = report_budget(shared.options.max_message_bytes);
    let opened = tokio::select! {
        opened = Session::new(started, authority, report_bytes) => opened.map_err(failed)?,
        _ = &mut *cancelled => return Ok(None),
    };
    let (session, report) = opened;
    let enforcement = session::enforcement(sandboxed, report.as_ref());
    Ok(Some(session::call::started(&shared.sessions, session, &enforcement)))
}

/// The command with all that its launcher has to be told; `None` when the call was cancelled meanwhile.
async fn ready(
    authority: &CallAuthority,
    argv: Vec<String>,
    shared: &Shared,
    cancelled: &mut oneshot::Receiver<()>,
) -> Result<Option<Prepared>, NotRun> {
    let mut prepared = prepare(authority, argv, &shared.options)?;
    if !prepared.command.is_sandboxed() {
        return Ok(Some(prepared));
    }
    let help = tokio::select! {
        help = shared.probes.help(&prepared.command) => help,
        _ = &mut *cancelled => return Ok(None),
    };
    prepared.reporting = help.lists(REPORT);
    prepared.command = restrict(prepared.command, &shared.options.restrictions, &help)?;
    Ok(Some(prepared))
}

fn unknown_tool(name: &str) -> Failure {
    let name = text::name(name);
    let tools = tool::NAMES.join("`, `");
    Failure::invalid_params(format!("unknown tool `{name}`: this server has `{tools}`"))
}

/// Builds the command under the authority of its call, or says why it may not run.
fn prepare(
    authority: &CallAuthority,
    argv: Vec<String>,
    options: &ServerOptions,
) -> Result<Prepared, NotRun> {
    let command = SandboxedCommand::new(authority, argv, options.operator)
        .map(|command| command.with_environment(options.inherited_environment.iter().cloned()))
        .and_then(|command| command.with_additions(options.additions.iter().cloned()))
        .map_err(|refusal| NotRun::refused(&refusal))?;
    let directory = match authority.state() {
        Some(state) if !command.is_sandboxed() => {
            directory::of_state(state).map_err(|why| NotRun::because(format!("refused: {why}")))?
        }
        _ => None,
    };
    Ok(Prepared { command, directory, reporting: false })
}

/// Asks the launcher for what the operator wants it to hold beyond the state.
fn restrict(
    command: SandboxedCommand,
    restrictions: &[Restriction],
    help: &Help,
) -> Result<SandboxedCommand, NotRun> {
    if !command.is_sandboxed() {
        return Ok(command);
    }
    restrictions.iter().try_fold(command, |command, Restriction { option, value, key }| {
        if help.lists(option) {
            return Ok(command.with_restriction(option, value));
        }
        let launcher = text::name(&command.program().to_string_lossy());
        Err(NotRun {
            message: format!(
                "refused: the launcher `{launcher}` has no `{option}`, which `{key}` of the configuration needs"
            ),
            hint: Some(format!("use a launcher that has it, or take `{key}` out")),
        })
    })
}

/// Whether the operator's additions can be given to commands at all.
pub(crate) fn check_additions(options: &ServerOptions) -> Result<(), Refusal> {
    let nothing = CallAuthority::absent();
    SandboxedCommand::new(&nothing, ["true"], OperatorPolicy::AllowUnsandboxed)?
        .with_additions(options.additions.iter().cloned())
        .map(drop)
}

impl NotRun {
    fn because(message: String) -> Self {
        Self { message, hint: None }
    }

    fn malformed(error: &CallAuthorityError) -> Self {
        let message = format!("refused: {}", text::chain(error));
        Self { message, hint: Some("the host has to correct what it sends in `_meta`".to_owned()) }
    }

    fn refused(refusal: &Refusal) -> Self {
        let hint = match refusal {
            Refusal::NoAuthority | Refusal::NoLauncher => Some(OPERATOR_HINT),
            other => other.hint(),
        };
        Self { message: format!("refused: {refusal}"), hint: hint.map(str::to_owned) }
    }
}

/// The result of a call that was not taken on, because too many are running.
pub(crate) fn too_many(running: usize) -> ToolResult {
    let message = format!("{running} commands are running already, which is the most at once");
    ToolResult::failed(&message, Some("call again when one of them has ended"))
}

/// The result as JSON, for the era of its request.
pub(crate) fn frame(id: &RequestId, era: Era, result: &ToolResult) -> Vec<u8> {
    let mut frame = Vec::new();
    plenipo_wire::encode::write_success(&mut frame, id, &result.to_fragment(era));
    frame
}
