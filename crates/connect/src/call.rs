//! One tool call, from request to outcome.
//!
//! Three kinds of failure stay apart: a tool that says it failed is an outcome with
//! [`is_error`](CallOutcome::is_error); an error answer of the server is
//! [`Fault::Peer`]; everything else is local.

mod attempt;
mod cancel;
mod checks;
mod flight;
pub(crate) mod mirror;
pub(crate) mod progress;
pub(crate) mod rounds;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plenipo_authority::{CapturedAuthority, CredentialPin};
use plenipo_schema::SchemaFault;
use plenipo_wire::views::{CallResult, ResultType, TaskView};
use plenipo_wire::{Fragment, RawValue, ViewError, object};

pub use cancel::{Cancellation, Canceller};
pub use progress::{ProgressObserver, ProgressUpdate};

use attempt::CallAttempt;
use flight::Flight;
use rounds::{Attempt as _, Need, Retry, Rounds};

use crate::catalog::{Catalog, Lookup, Tool};
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::input::InputHandler;
use crate::peer::RequestFault;
use crate::tasks::{Called, Task};
use crate::text::shown;

/// One call. Without an authority there is none.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallRequest {
    /// As the server spells it.
    pub tool: String,
    /// A JSON object, or nothing.
    pub arguments: Option<Fragment>,
    /// The caller's own `_meta`; keys that are the host's to set are refused.
    pub meta: Option<Fragment>,
    /// Captured when the call was accepted, for this connection
    /// ([`Connection::capture`]); nothing changes it afterwards.
    pub authority: CapturedAuthority,
    /// How long silence may last; default: the connection's `tool_timeout`. Progress starts it
    /// anew.
    pub timeout: Option<Duration>,
    /// How long the call may take whatever its progress; default: the connection's
    /// `tool_total_timeout`, else four times the timeout.
    pub max_total: Option<Duration>,
    /// Asks the server for progress, and is told about it.
    pub progress: Option<ProgressObserver>,
    /// Answers what the server asks during this call, instead of the connection's own handler. A
    /// legacy server knows only what the connection's offers.
    pub input: Option<Arc<dyn InputHandler>>,
    /// Asks the server to log from this level on ([`Event::Log`](crate::observer::Event::Log)): a modern one
    /// while it handles the call, which does not log unasked; an older one from now on (`logging/setLevel`).
    pub log_level: Option<LogLevel>,
    /// A person asked for exactly this call: it needs no further approval, unless an administrator's
    /// rules say so.
    pub asked_by_person: bool,
    /// Cancels the call from outside. Dropping the call's future cancels it too.
    pub cancel: Option<Cancellation>,
    /// The tool as it was when the call was prepared; refused when it is another by now.
    pub prepared: Option<Tool>,
    /// A list of this connection that the call goes by, whatever changes were announced since: for a program that
    /// lists, calls and ends, whom a server that announces a change as it starts would make list twice. Default: the
    /// current one, listed if need be.
    pub listed: Option<Arc<Catalog>>,
    /// Check the arguments against the tool's input schema before anything is sent, and the result
    /// against its output schema; default: true.
    pub check_schemas: bool,
    /// The server may make a task of it.
    pub(crate) takes_task: bool,
}

/// From which severity on a server logs (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What usually happens.
    Info,
    /// What usually happens and matters.
    Notice,
    /// What may be wrong.
    Warning,
    /// What is wrong.
    Error,
    /// What breaks a part.
    Critical,
    /// What has to be seen to at once.
    Alert,
    /// What breaks everything.
    Emergency,
}

/// The server's result, as sent.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    result: Box<RawValue>,
    is_error: bool,
    output_fault: Option<SchemaFault>,
}

impl CallRequest {
    /// A call with defaults for the rest.
    #[must_use]
    pub fn new(
        tool: impl Into<String>,
        arguments: Option<Fragment>,
        authority: CapturedAuthority,
    ) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            meta: None,
            authority,
            timeout: None,
            max_total: None,
            progress: None,
            input: None,
            log_level: None,
            asked_by_person: false,
            cancel: None,
            prepared: None,
            listed: None,
            check_schemas: true,
            takes_task: false,
        }
    }
}

impl LogLevel {
    /// As the protocol spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl CallOutcome {
    /// The whole result, unknown members included.
    #[must_use]
    pub fn result(&self) -> &RawValue {
        &self.result
    }

    /// A view of the result.
    ///
    /// # Errors
    /// None in practice: the result was read once before.
    pub fn view(&self) -> Result<CallResult<'_>, ViewError> {
        CallResult::from_raw(&self.result)
    }

    /// The tool says that it failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// How `structuredContent` differs from the tool's output schema, or why that is not known. Of a
    /// tool that failed, and of a call without checks, always `None`.
    #[must_use]
    pub fn output_fault(&self) -> Option<&SchemaFault> {
        self.output_fault.as_ref()
    }
}

impl Connection {
    /// Calls a tool.
    ///
    /// Nothing is sent when the authority was captured for something else, the tool does not
    /// exist, is disabled or changed, or `_meta` or the arguments are not fit to send. On a
    /// timeout or cancellation the server is told, and a late answer is ignored.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Call`]; a tool that failed by itself is no error.
    pub async fn call(&self, request: CallRequest) -> Result<CallOutcome, ConnectError> {
        match self.called(&request).await? {
            Called::Outcome(outcome) => Ok(outcome),
            Called::Task(_) => {
                let fault = RequestFault::Fault(unfinished("task"));
                Err(self.error(Operation::Call { tool: request.tool }, fault))
            }
        }
    }

    pub(crate) async fn called(&self, request: &CallRequest) -> Result<Called, ConnectError> {
        let fault = match self.check_authority(&request.authority) {
            Ok(()) => match self.accepted(request).await {
                Ok(called) => return Ok(called),
                Err(fault) => fault,
            },
            Err(fault) => RequestFault::Fault(fault),
        };
        Err(self.error(Operation::Call { tool: request.tool.clone() }, fault))
    }

    async fn accepted(&self, request: &CallRequest) -> Result<Called, RequestFault> {
        if request.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
            return Err(RequestFault::Fault(Fault::ArgumentsNotObject));
        }
        let flight = Flight::new(self, request);
        let catalog = match request.listed.clone().or_else(|| flight.catalog_at_hand()) {
            Some(catalog) => catalog,
            None => Box::pin(self.catalog_for(&flight, request)).await?,
        };
        if request.listed.is_some() && !self.options.filter.allows(&request.tool) {
            // The list may be another connection's, with a filter of its own.
            return Err(RequestFault::Fault(Fault::ToolDisabled));
        }
        let mut place = may_call(&catalog, request).map_err(RequestFault::Fault)?;
        self.check_arguments(&catalog, place, request)?;
        let catalog = match self.options.approvals.is_some() {
            false => catalog,
            true => {
                let approved = Box::pin(self.approved_catalog(&flight, request, catalog)).await?;
                place = may_call(&approved, request).map_err(RequestFault::Fault)?;
                approved
            }
        };
        if let Some(level) = request.log_level {
            flight.limited(Box::pin(self.log_from(level))).await?;
        }
        let renewed = OnceLock::new();
        let attempt =
            CallAttempt { connection: self, flight: &flight, request, catalog, place, renewed };
        let need = match attempt.send(&Retry::default()).await {
            Ok(result) => match Read::of(result, request).map_err(RequestFault::Fault)? {
                Read::End(called) => return Ok(attempt.checked(called)),
                Read::Needs(result) => Need::Input(result),
            },
            landed => match Need::of(landed)? {
                Ok(need) => need,
                Err(result) => Need::Input(result),
            },
        };
        Box::pin(self.followed(&attempt, need)).await
    }

    /// The catalog for a call; a remembered one only if the tool is in it as the call wants it.
    async fn catalog_for(
        &self,
        flight: &Flight<'_>,
        request: &CallRequest,
    ) -> Result<Arc<Catalog>, RequestFault> {
        let catalog = flight.catalog().await?;
        match catalog.is_remembered() && may_call(&catalog, request).is_err() {
            true => flight.catalog_after(0).await,
            false => Ok(catalog),
        }
    }

    /// Goes on after a first answer that asks for something.
    async fn followed(
        &self,
        attempt: &CallAttempt<'_>,
        need: Need,
    ) -> Result<Called, RequestFault> {
        let rounds = Rounds {
            asks: &self.peer.asks,
            asker: attempt.flight.asker(),
            is_modern: self.modern().is_some(),
            limit: self.options.max_input_rounds,
            questions: self.options.max_questions,
        };
        match Read::of(rounds.follow(attempt, need).await?, attempt.request) {
            Ok(Read::End(called)) => Ok(attempt.checked(called)),
            Ok(Read::Needs(_)) => Err(RequestFault::Fault(unfinished("input_required"))),
            Err(fault) => Err(RequestFault::Fault(fault)),
        }
    }

    /// The authority has to be this connection's.
    fn check_authority(&self, authority: &CapturedAuthority) -> Result<(), Fault> {
        let environment = &self.options.environment;
        if authority.environment() != environment {
            return Err(Fault::AuthorityChanged {
                captured: format!("environment `{}`", shown(authority.environment().as_str())),
                actual: format!("`{}`", shown(environment.as_str())),
            });
        }
        if authority.opt_in() != self.sandbox_opt_in() {
            let word = |opt_in: bool| match opt_in {
                true => "a server that opted in to the sandbox state".to_owned(),
                false => "a server that did not opt in to the sandbox state".to_owned(),
            };
            let (captured, actual) = (word(authority.opt_in()), word(self.sandbox_opt_in()));
            return Err(Fault::AuthorityChanged { captured, actual });
        }
        let credential = self.credential();
        if authority.credential() != credential.as_ref() {
            let word = |pin: Option<&CredentialPin>| match pin {
                Some(pin) => format!("credential `{}`", shown(pin.as_str())),
                None => "no credential".to_owned(),
            };
            let (captured, actual) = (word(authority.credential()), word(credential.as_ref()));
            return Err(Fault::AuthorityChanged { captured, actual });
        }
        Ok(())
    }
}

/// What a result comes to.
enum Read {
    End(Called),
    /// The server asks for input first.
    Needs(Box<RawValue>),
}

impl Read {
    fn of(result: Box<RawValue>, request: &CallRequest) -> Result<Self, Fault> {
        if request.takes_task
            && let Some(task) = task_of(&result, request)?
        {
            return Ok(Self::End(Called::Task(Box::new(task))));
        }
        let view = CallResult::head(&result)
            .map_err(|source| Fault::BadAnswer { method: "tools/call", source })?;
        match view.result_type {
            ResultType::Complete => {}
            ResultType::InputRequired => return Ok(Self::Needs(result)),
            ResultType::Unknown(found) => return Err(unfinished(&found)),
            _ => return Err(unfinished("unknown")),
        }
        let is_error = view.is_error;
        Ok(Self::End(Called::Outcome(CallOutcome { result, is_error, output_fault: None })))
    }
}

/// The task that a server made of a call: said by the result's type, or in 2025-11-25 by the member
/// `task` instead of any content.
fn task_of(result: &RawValue, request: &CallRequest) -> Result<Option<Task>, Fault> {
    let is_task = match ResultType::of(result) {
        Some(ResultType::Unknown(found)) => found == "task",
        _ => {
            let [task, content] = object::select(result, ["task", "content"]).unwrap_or_default();
            task.is_some() && content.is_none()
        }
    };
    if !is_task {
        return Ok(None);
    }
    let view = TaskView::from_raw(result)
        .map_err(|source| Fault::BadAnswer { method: "tools/call", source })?;
    Ok(Some(Task::new(&view, request)))
}

impl CallOutcome {
    /// What a task of a call came to; it has no type of its own.
    pub(crate) fn of_task(result: Box<RawValue>) -> Result<Self, Fault> {
        let view = CallResult::head(&result)
            .map_err(|source| Fault::BadAnswer { method: "tools/call", source })?;
        let is_error = view.is_error;
        Ok(Self { result, is_error, output_fault: None })
    }
}

fn unfinished(found: &str) -> Fault {
    Fault::ResultType { found: shown(found) }
}

/// Where in the catalog the tool is, if it may be called.
fn may_call(catalog: &Catalog, request: &CallRequest) -> Result<usize, Fault> {
    if let Some((place, tool)) = catalog.callable(&request.tool) {
        return match &request.prepared {
            Some(prepared) if prepared != tool => Err(Fault::ToolChanged),
            _ => Ok(place),
        };
    }
    let (nearest, dropped) = match catalog.find(&request.tool) {
        Lookup::Disabled => return Err(Fault::ToolDisabled),
        Lookup::Dropped(tool) => (None, Some(tool.reason.clone())),
        Lookup::Missing { nearest } => (nearest.map(str::to_owned), None),
        Lookup::Found(_) => (None, None),
    };
    Err(Fault::NoSuchTool { nearest, dropped })
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest").field("tool", &self.tool).finish_non_exhaustive()
    }
}
