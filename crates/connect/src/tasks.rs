//! Calls that outlive their request: tasks.
//!
//! A server that was told it may, answers a call with a task instead of a result
//! (`io.modelcontextprotocol/tasks`, SEP-2663); the task is then asked after at the server's pace,
//! what it asks is answered, once, and what it comes to is the call's outcome. A [`Task`] is plain
//! data: kept as a record it is followed on after a restart, over another connection to the same
//! server. Servers of revision 2025-11-25 with tasks of their own are followed too.

mod follow;
mod record;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plenipo_authority::CapturedAuthority;
use plenipo_wire::RawValue;
use plenipo_wire::views::TaskView;

use crate::call::{CallOutcome, CallRequest};
use crate::connection::Connection;
use crate::error::{ConnectError, Operation};
use crate::request::RequestOptions;

pub use crate::error::TaskFault;

/// Without a pace of the server's.
const PACE: Duration = Duration::from_secs(5);
/// The fastest pace.
const SHORTEST: Duration = Duration::from_millis(100);
/// The slowest.
const LONGEST: Duration = Duration::from_secs(300);

/// What a call came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Called {
    /// A result.
    Outcome(CallOutcome),
    /// A task; [`Connection::follow_task`] gives the result.
    Task(Box<Task>),
}

/// A task of a server: its id, what was called, and which of its questions were answered.
#[derive(Debug, Clone)]
pub struct Task {
    id: String,
    tool: String,
    /// Digest of the authority of the call, for people.
    authority: String,
    /// What its questions are answered under; gone after a restart.
    captured: Option<CapturedAuthority>,
    answered: BTreeSet<String>,
    pace: Option<Duration>,
    /// It was made just now: the first question can wait.
    is_fresh: bool,
}

/// Is told how a task is, after each answer: the place to keep its record. Return quickly.
pub type TaskObserver = Arc<dyn Fn(&Task, &TaskView<'_>) + Send + Sync>;

/// How a task is followed. All defaults will do.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Of each request that is made for it; its `cancel` cancels the task.
    pub request: RequestOptions,
    /// How long it is followed; default: to its end. The task goes on when that is over.
    pub max_total: Option<Duration>,
    /// Is told how the task is.
    pub observer: Option<TaskObserver>,
}

impl Task {
    pub(crate) fn new(view: &TaskView<'_>, request: &CallRequest) -> Self {
        Self {
            id: view.id.clone().into_owned(),
            tool: request.tool.clone(),
            authority: request.authority.digest().to_string(),
            captured: Some(request.authority.clone()),
            answered: BTreeSet::new(),
            pace: view.poll_interval_ms.map(Duration::from_millis),
            is_fresh: true,
        }
    }

    /// The server's name for it. Whoever knows it may be able to ask for the result.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tool that was called.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Digest of the authority that the call was made under, for an audit.
    #[must_use]
    pub fn authority_digest(&self) -> &str {
        &self.authority
    }

    /// How long is waited before it is asked after: the server's pace, between 0.1 s and 5 min; 5 s
    /// when it names none.
    #[must_use]
    pub fn pace(&self) -> Duration {
        self.pace.unwrap_or(PACE).clamp(SHORTEST, LONGEST)
    }
}

impl Connection {
    /// As [`call`](Self::call), and the server may make a task of it. A server that does not have
    /// tasks is called as usual.
    ///
    /// ```no_run
    /// # use plenipo_connect::{CallRequest, Called, Connection, TaskOptions};
    /// # async fn f(connection: &Connection) -> Result<(), plenipo_connect::ConnectError> {
    /// let authority = connection.capture(None).await;
    /// let outcome = match connection.call_or_task(CallRequest::new("build", None, authority)).await? {
    ///     Called::Outcome(outcome) => outcome,
    ///     Called::Task(mut task) => {
    ///         std::fs::write("task.json", task.to_record().as_str()).ok();
    ///         connection.follow_task(&mut task, &TaskOptions::default()).await?
    ///     }
    ///     _ => return Ok(()),
    /// };
    /// println!("{}", outcome.result());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_or_task(&self, mut request: CallRequest) -> Result<Called, ConnectError> {
        request.takes_task = true;
        self.called(&request).await
    }

    /// How a task is, now.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]; a task that the server does not know (any more)
    /// is [`Fault::Peer`](crate::Fault::Peer) with code -32602.
    pub async fn task_state(
        &self,
        task: &Task,
        options: &RequestOptions,
    ) -> Result<Box<RawValue>, ConnectError> {
        self.task_raw(task, options).await.map_err(|fault| self.task_error(task, fault))
    }

    /// Waits for a task's end: asks at the server's pace, and answers what the task asks. Dropping
    /// the future leaves the task as it is; cancelling cancels it.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]: as for [`task_state`](Self::task_state);
    /// [`Fault::Peer`](crate::Fault::Peer) with the error a task failed with, and
    /// [`Fault::Task`](crate::Fault::Task) for one that was cancelled.
    pub async fn follow_task(
        &self,
        task: &mut Task,
        options: &TaskOptions,
    ) -> Result<CallOutcome, ConnectError> {
        let followed = self.follow(task, options).await;
        let outcome = followed.map_err(|fault| self.task_error(task, fault))?;
        // Without the tools there is no schema to check it by.
        match self.catalog().await {
            Ok(catalog) => Ok(outcome.checked(&catalog, &task.tool)),
            Err(_) => Ok(outcome),
        }
    }

    /// Says that a task is no longer wanted. Whether it ends is the server's affair.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`].
    pub async fn cancel_task(
        &self,
        task: &Task,
        options: &RequestOptions,
    ) -> Result<(), ConnectError> {
        let method = plenipo_wire::protocol::methods::TASKS_CANCEL;
        let cancelled = self.ask_about(task, method, options, |_| {}).await;
        let operation = Operation::Request { method, subject: Some(task.id.clone()) };
        cancelled.map(drop).map_err(|fault| self.error(operation, fault))
    }
}

impl fmt::Debug for TaskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOptions")
            .field("request", &self.request)
            .field("max_total", &self.max_total)
            .finish_non_exhaustive()
    }
}
