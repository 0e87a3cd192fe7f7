//! `plenipo call SERVER.TOOL …`: one tool call, from words to an exit code.

mod interruption;
mod limit;
mod pairs;
mod render;
mod schema;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use plenipo_authority::{CapturedAuthority, SandboxState};
use plenipo_config::EnvironmentSettings;
use plenipo_connect::approval::ApprovalDecision;
use plenipo_connect::catalog::{Catalog, Tool};
use plenipo_connect::environment::EnvironmentId;
use plenipo_connect::{
    Approver, CallOutcome, CallRequest, Cancellation, Canceller, Connection, Endpoint, Fault,
    InputHandler, Member,
};
use plenipo_keeper::Keeper;

use crate::arguments::{CallArguments, Global};
use crate::audit::{Audit, Ending};
use crate::authority::{self, InForce, ProfileChoice};
use crate::failure::{Code, Failure};
use crate::person::{Answers, Given, Person};
use crate::progress::ProgressLine;
use crate::reach::Host;
use crate::serve::run_to_end;
use crate::settings::Settings;
use crate::{confined, proxies, sign_in, terminal};

use interruption::{Interruption, interrupted};
use limit::TimeLimit;
pub(crate) use pairs::Inputs;
use render::Rendered;
pub(crate) use schema::InputSchema;
use target::Target;
pub(crate) use target::tool;

/// Runs the command.
pub(crate) fn run(global: &Global, arguments: CallArguments) -> Result<ExitCode, Failure> {
    let limit = TimeLimit::starting_now(arguments.timeout);
    let settings = Settings::load_in(global.config.as_deref(), arguments.directory.as_deref())?;
    let target = Target::find(&settings, &arguments.target)?;
    // Its process gets ready while the rest is read.
    let keeper = target.server.start_keeper();
    let inputs = Inputs::read(&arguments)?;
    let person = Person::at_terminal();
    let answers = Arc::new(Answers::new(person.clone(), Given::read(&arguments.input)?));
    // Before the authority is worked out: the file is protected like the configuration.
    let mut audit = Audit::open(settings.audit_file())?;
    let (in_force, directory) = authority_of(&settings, &target, &arguments)?;
    let call = Call {
        inputs,
        limit,
        person,
        answers,
        decided: Arc::default(),
        turned_away: OnceLock::new(),
        is_repeated: false,
        state: in_force.as_ref().map(|own| authority::capture(&own.state)).transpose()?,
        directory,
        global,
        arguments,
        target,
        in_force,
    };
    call.warn_about(&settings);
    call.made(&settings, &mut audit, keeper)
}

/// What is sent with the call, if anything is, and where on this machine it is made.
fn authority_of(
    settings: &Settings,
    target: &Target,
    arguments: &CallArguments,
) -> Result<(Option<InForce>, PathBuf), Failure> {
    let choice = ProfileChoice {
        name: arguments.profile.as_deref(),
        directory: arguments.directory.as_deref(),
    };
    let place = target.server.environment(settings)?;
    let in_force = match place {
        None => Some(authority::in_force(settings, choice)?),
        Some(place) => {
            let directory = target.server.directory_in(place)?;
            authority::in_force_elsewhere(settings, choice, place, directory.as_deref())?
        }
    };
    // With -C about a directory over there, the command that leads there starts here.
    let here = arguments.directory.as_deref().filter(|_| place.is_none());
    let directory = authority::working_directory(here)?;
    check_environment(settings, arguments.environment.as_deref())?;
    Ok((in_force.filter(|_| is_selected(place, arguments)), directory))
}

/// Whether the call selects the environment that its server runs in, which it does unless it says otherwise.
fn is_selected(place: Option<&EnvironmentSettings>, arguments: &CallArguments) -> bool {
    let own = place.map_or_else(EnvironmentId::local, |place| place.id.clone());
    arguments.environment.as_deref().is_none_or(|selected| selected == own.as_str())
}

/// Nothing but an environment can be selected.
fn check_environment(settings: &Settings, selected: Option<&str>) -> Result<(), Failure> {
    let Some(id) = selected.map(EnvironmentId::new) else { return Ok(()) };
    if id == EnvironmentId::local() || settings.environment(&id).is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!("unknown environment id `{id}`")))
}

struct Call<'a> {
    global: &'a Global,
    inputs: Inputs,
    limit: TimeLimit,
    /// Who can be asked.
    person: Option<Arc<Person>>,
    /// What servers are answered with.
    answers: Arc<Answers>,
    decided: Arc<OnceLock<ApprovalDecision>>,
    /// Under which authority the server turned it away unread for want of a sign-in, which somebody is here to mend.
    /// It is recorded when it is made once more, or not.
    turned_away: OnceLock<Option<String>>,
    is_repeated: bool,
    arguments: CallArguments,
    target: Target,
    /// Absent when the server's environment is not selected or has no policy.
    in_force: Option<InForce>,
    state: Option<SandboxState>,
    /// On this machine.
    directory: PathBuf,
}

impl Call<'_> {
    fn warn_about(&self, settings: &Settings) {
        for warning in settings.warnings() {
            terminal::warn(warning);
        }
        if self.global.verbose {
            terminal::tell(&match &self.in_force {
                Some(InForce { profile, state }) => {
                    format!("profile {profile} in {}", state.cwd.display())
                }
                None => "no sandbox policy is sent".to_owned(),
            });
        }
    }

    /// Made, and made once more when the server wanted a sign-in that somebody was here for.
    fn made(
        mut self,
        settings: &Settings,
        audit: &mut Audit,
        keeper: Option<Option<Keeper>>,
    ) -> Result<ExitCode, Failure> {
        let outcome = run_to_end(self.perform(settings, audit, keeper));
        let (failure, authority) = match (outcome, self.turned_away.take()) {
            (Err(failure), Some(authority)) => (failure, authority),
            (outcome, _) => return outcome,
        };
        let signed_in = match &self.person {
            Some(person) => run_to_end(self.sign_in(settings, person, &failure)),
            None => Ok(false),
        };
        if !matches!(signed_in, Ok(true)) {
            // It is not made again: this is how it ended.
            audit.record(self.names(), authority, None, Ending::Failed(Code::SignIn))?;
            return Err(signed_in.err().unwrap_or(failure));
        }
        // The time of a sign-in is the person's.
        self.limit = TimeLimit::starting_now(self.arguments.timeout);
        audit.begin_again();
        let keeper = self.target.server.start_keeper();
        self.is_repeated = true;
        run_to_end(self.perform(settings, audit, keeper))
    }

    async fn perform(
        &self,
        settings: &Settings,
        audit: &mut Audit,
        keeper: Option<Option<Keeper>>,
    ) -> Result<ExitCode, Failure> {
        let mut interruption = Interruption::new()?;
        let (server, _) = self.names();
        let part = format!("start server `{server}`");
        let started = tokio::select! {
            started = self.limit.hold(&part, self.connect(settings, keeper)) => started,
            code = interruption.wait() => Err(interrupted(code)),
        };
        let connection = match started {
            Ok(connection) => connection,
            Err(failure) => {
                self.record(audit, None, Ending::Failed(failure.code()))?;
                return Err(failure);
            }
        };
        if self.target.server.confinement(settings).is_some()
            && let Err(refused) = confined::check_nesting(settings, &connection)
        {
            connection.shut_down().await;
            self.record(audit, None, Ending::Failed(refused.code()))?;
            return Err(refused);
        }
        // Captured when the call is accepted; nothing below can change it.
        let authority = connection.capture(self.state.clone()).await;
        let digest = authority.digest().to_string();
        let outcome = self.call_until(&mut interruption, &connection, authority).await;
        let recorded = self.record(audit, Some(digest), ending(&outcome));
        for key in self.answers.unused() {
            terminal::warn(&format!("the server asked for no input `{key}`"));
        }
        // The answer is shown before the server has ended: it may take its time for that. So may its reader.
        let (rendered, code) = match outcome.and_then(|outcome| self.render(outcome)) {
            Ok(rendered) => rendered,
            Err(failure) => {
                tokio::select! {
                    _ = connection.leave() => {}
                    // Asked a second time: what is dropped now is killed.
                    _ = interruption.wait() => {}
                }
                return recorded.and(Err(failure));
            }
        };
        let printing = printing(rendered);
        tokio::select! {
            (printed, _) = async { tokio::join!(printing, connection.leave()) } => {
                recorded.and(printed).map(|()| code)
            }
            code = interruption.wait() => Err(interrupted(code)),
        }
    }

    /// Records how it ended, unless it may be made once more.
    fn record(
        &self,
        audit: &mut Audit,
        authority: Option<String>,
        ending: Ending,
    ) -> Result<(), Failure> {
        let may_repeat = self.person.is_some() && !self.is_repeated;
        if may_repeat && matches!(ending, Ending::Failed(Code::SignIn)) {
            self.turned_away.get_or_init(|| authority);
            return Ok(());
        }
        let decided = self.decided.get().map(|decision| decision.name());
        audit.record(self.names(), authority, decided, ending)
    }

    /// Offers the sign-in that the call wants; whether there is one now.
    async fn sign_in(
        &self,
        settings: &Settings,
        person: &Arc<Person>,
        failure: &Failure,
    ) -> Result<bool, Failure> {
        let mut interruption = Interruption::new()?;
        let server = self.target.server.name.as_str();
        tokio::select! {
            offered = sign_in::offer(settings, person, server, failure) => offered,
            code = interruption.wait() => Err(interrupted(code)),
        }
    }

    /// The call, which the first signal cancels in good order and the second leaves where it is.
    async fn call_until(
        &self,
        interruption: &mut Interruption,
        connection: &Connection,
        authority: CapturedAuthority,
    ) -> Result<CallOutcome, Failure> {
        let canceller = Canceller::new();
        let mut call =
            std::pin::pin!(self.call_on(connection, authority, canceller.cancellation()));
        let code = tokio::select! {
            outcome = &mut call => return outcome,
            code = interruption.wait() => code,
        };
        canceller.cancel("interrupted");
        tokio::select! {
            // An answer that came first is no longer wanted.
            _ = call => {}
            _ = interruption.wait() => {}
        }
        Err(interrupted(code))
    }

    fn names(&self) -> (&str, &str) {
        (self.target.server.name.as_str(), &self.target.tool)
    }

    async fn connect(
        &self,
        settings: &Settings,
        keeper: Option<Option<Keeper>>,
    ) -> Result<Connection, Failure> {
        let host = Host::new(self.global, settings, &self.directory);
        let host = host.deciding(&self.decided).kept_by(keeper);
        let host = host.acting_as(self.arguments.account.as_deref());
        let Member { name, mut endpoint, mut options, .. } = self.target.server.member(&host)?;
        if !self.answers.is_nobody() {
            options.input = Some(Arc::clone(&self.answers) as Arc<dyn InputHandler>);
            if let Endpoint::Http(http) = &mut endpoint {
                http.server_stream(true); // an older server may ask there
            }
        }
        if let (Some(approvals), Some(person)) = (&mut options.approvals, &self.person) {
            approvals.approver = Some(Arc::clone(person) as Arc<dyn Approver>);
        }
        if let Some(limit) = self.arguments.max_message_size {
            options.max_message_bytes = limit;
        }
        let place = self.target.server.environment(settings)?;
        let opened = Connection::open(name, &endpoint, options).await;
        let dropped = || proxies::dropped(&self.target.server);
        opened.map_err(|error| proxies::failed_start(error, place, &dropped()))
    }

    async fn call_on(
        &self,
        connection: &Connection,
        authority: CapturedAuthority,
        cancellation: Cancellation,
    ) -> Result<CallOutcome, Failure> {
        let (server, name) = self.names();
        let part = format!("list the tools of server `{server}`");
        let catalog = self.limit.hold(&part, self.catalog(connection)).await?;
        let tool = tool(&catalog, server, name)?;
        let mut request = CallRequest::new(tool.name(), self.fill_in(tool)?, authority);
        request.listed = Some(Arc::clone(&catalog));
        request.check_schemas = !self.arguments.unchecked;
        request.timeout = self.limit.left();
        request.max_total = request.timeout;
        request.asked_by_person = true;
        request.cancel = Some(cancellation);
        let progress = ProgressLine::new(self.global.verbose);
        // Asked for always: whether a call lives on its progress must not depend on who listens.
        request.progress = Some(Arc::new(move |update| progress.show(update)));
        let called = connection.call(request).await;
        progress.clear();
        called.map_err(|error| match error.fault() {
            Fault::TimedOut { .. } if self.limit.left().is_some() => {
                self.limit.over(&format!("call tool `{name}` of server `{server}`"))
            }
            Fault::Arguments(_) => {
                Failure::from(error).with_hint(format!("the tool is {}", signature(tool)))
            }
            Fault::InputSchema(_) => {
                Failure::from(error).with_hint("--unchecked sends the arguments as they are")
            }
            _ => Failure::from(error),
        })
    }

    /// The tools; remembered ones only if the call fits them.
    async fn catalog(&self, connection: &Connection) -> Result<Arc<Catalog>, Failure> {
        let catalog = connection.catalog_at_hand().await?;
        let (server, name) = self.names();
        let fits = || tool(&catalog, server, name).and_then(|tool| self.fill_in(tool));
        match catalog.is_remembered() && fits().is_err() {
            true => Ok(connection.catalog().await?),
            false => Ok(catalog),
        }
    }

    fn fill_in(&self, tool: &Tool) -> Result<Option<plenipo_wire::Fragment>, Failure> {
        let view = tool.view().map_err(|error| Failure::new(Code::Protocol, error.to_string()))?;
        let mut schema = InputSchema::read(view.input_schema);
        if self.arguments.unchecked {
            schema = schema.without_rules();
        }
        self.inputs.arguments(&schema, tool.name()).map(Some)
    }

    fn render(&self, outcome: CallOutcome) -> Result<(Rendered, ExitCode), Failure> {
        let code = if outcome.is_error() { Code::ToolError.into() } else { ExitCode::SUCCESS };
        let shown = render::Shown {
            server: self.target.server.name.as_str(),
            tool: &self.target.tool,
            profile: self.in_force.as_ref().map(|own| own.profile.as_str()),
            state: self.state.as_ref(),
        };
        let rendered = if self.global.json {
            render::json(&shown, outcome)?
        } else {
            render::text(outcome, self.arguments.output.as_deref())
        };
        Ok((rendered, code))
    }
}

/// On a thread of its own, unless that is sure to take no time: whoever reads stdout may.
async fn printing(rendered: Rendered) -> Result<(), Failure> {
    if rendered.is_short() && terminal::stdout_takes_a_page() {
        return rendered.print();
    }
    let failed = |error| Failure::new(Code::Transport, format!("failed to print: {error}"));
    tokio::task::spawn_blocking(|| rendered.print()).await.map_err(failed)?
}

fn signature(tool: &Tool) -> String {
    match tool.view() {
        Ok(view) => InputSchema::read(view.input_schema).signature(tool.name()),
        Err(_) => tool.name().to_owned(),
    }
}

fn ending(outcome: &Result<CallOutcome, Failure>) -> Ending {
    match outcome {
        Ok(outcome) if outcome.is_error() => Ending::ToolError,
        Ok(_) => Ending::Answered,
        Err(failure) => Ending::Failed(failure.code()),
    }
}
