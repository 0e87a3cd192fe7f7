//! From a task to what it comes to.

use std::time::Duration;

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::methods;
use plenipo_wire::views::{TaskStatus, TaskView};
use plenipo_wire::{ErrorObject, Fragment, RawValue, object};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Task, TaskOptions};
use crate::call::CallOutcome;
use crate::call::rounds::Rounds;
use crate::catalog::Tool;
use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation, PeerError, TaskFault};
use crate::input::respond::Asker;
use crate::peer::RequestFault;
use crate::request::{Ask, RequestOptions};

/// Failed attempts in a row to ask how a task is.
const FAILURES: u32 = 5;
/// How long saying that a task is cancelled may take.
const NOTICE: Duration = Duration::from_secs(2);

/// What one look at a task leads to.
enum Step {
    Wait,
    Done(CallOutcome),
}

impl Connection {
    pub(super) async fn follow(
        &self,
        task: &mut Task,
        options: &TaskOptions,
    ) -> Result<CallOutcome, RequestFault> {
        let followed = self.follow_to_end(task, options);
        let followed = match options.max_total {
            None => followed.await,
            Some(limit) => {
                let end = Instant::now() + limit;
                tokio::select! {
                    followed = followed => followed,
                    () = sleep_until(end) => {
                        return Err(RequestFault::Fault(Fault::TimedOut { limit, total: true }));
                    }
                }
            }
        };
        if let Err(RequestFault::Fault(Fault::Cancelled { .. })) = &followed {
            let notice = RequestOptions { timeout: Some(NOTICE), ..RequestOptions::default() };
            // The caller has gone on; what the server makes of it is its affair.
            self.ask_about(task, methods::TASKS_CANCEL, &notice, |_| {}).await.ok();
        }
        followed
    }

    async fn follow_to_end(
        &self,
        task: &mut Task,
        options: &TaskOptions,
    ) -> Result<CallOutcome, RequestFault> {
        let mut failures = 0;
        if std::mem::take(&mut task.is_fresh) {
            pause(task, options).await?;
        }
        loop {
            match self.task_raw(task, &options.request).await {
                Ok(state) => {
                    failures = 0;
                    if let Step::Done(outcome) = self.step(task, &state, options).await? {
                        return Ok(outcome);
                    }
                }
                Err(RequestFault::Fault(Fault::Http(fault)))
                    if fault.is_transient() && failures < FAILURES =>
                {
                    failures += 1;
                }
                Err(fault) => return Err(fault),
            }
            pause(task, options).await?;
        }
    }

    async fn step(
        &self,
        task: &mut Task,
        state: &RawValue,
        options: &TaskOptions,
    ) -> Result<Step, RequestFault> {
        let view = read(state)?;
        if view.id != task.id {
            return Err(fault(TaskFault::Another));
        }
        if let Some(pace) = view.poll_interval_ms {
            task.pace = Some(Duration::from_millis(pace));
        }
        let tell = |task: &Task| {
            if let Some(observer) = &options.observer {
                observer(task, &view);
            }
        };
        tell(task);
        match &view.status {
            TaskStatus::Working => Ok(Step::Wait),
            // In 2025-11-25 the questions come while the result is waited for.
            TaskStatus::Completed | TaskStatus::InputRequired if self.modern().is_none() => {
                let result = self.ask_about(task, methods::TASKS_RESULT, &options.request, |_| {});
                CallOutcome::of_task(result.await?).map(Step::Done).map_err(RequestFault::Fault)
            }
            TaskStatus::Completed => {
                let result = view.result.ok_or_else(|| fault(TaskFault::NoResult))?.to_owned();
                CallOutcome::of_task(result).map(Step::Done).map_err(RequestFault::Fault)
            }
            TaskStatus::InputRequired => {
                if self.answer_task(task, &view, options).await? {
                    tell(task);
                }
                Ok(Step::Wait)
            }
            TaskStatus::Failed => Err(RequestFault::Peer(failure(&view))),
            TaskStatus::Cancelled => {
                let message = view.message.as_deref().map(crate::text::shown);
                Err(fault(TaskFault::Cancelled { message }))
            }
            other => Err(fault(TaskFault::Status { found: crate::text::shown(other.as_str()) })),
        }
    }

    /// Answers the questions that were not answered before; tells whether there were any.
    async fn answer_task(
        &self,
        task: &mut Task,
        view: &TaskView<'_>,
        options: &TaskOptions,
    ) -> Result<bool, RequestFault> {
        let asked = view.input_requests.and_then(object::entries).unwrap_or_default();
        let open: Vec<_> =
            asked.iter().filter(|(key, _)| !task.answered.contains(&**key)).collect();
        if open.is_empty() {
            return Ok(false);
        }
        let questions = Fragment::object(|object| {
            object.object("inputRequests", |requests| {
                for (key, request) in &open {
                    requests.fragment(key, &Fragment::from_raw(request));
                }
            });
        });
        let asks = &self.peer.asks;
        let handler = options.request.input.as_ref().or(asks.handler());
        let asker = handler.map(|handler| Asker {
            handler: std::sync::Arc::clone(handler),
            server: self.name().clone(),
            during: Some(Operation::Call { tool: task.tool.clone() }),
        });
        let rounds = Rounds {
            asks,
            asker: asker.as_ref(),
            is_modern: true,
            limit: self.options.max_input_rounds,
            questions: self.options.max_questions,
        };
        let answers = tokio::select! {
            biased;
            reason = cancelled(&options.request) => return Err(reason),
            answers = rounds.answers(questions.as_raw()) => answers?,
        };
        if let Some(captured) = &task.captured {
            self.ensure_same_authority(captured).await?;
        }
        let write = |params: &mut ObjectWriter<'_>| answers.write(params);
        self.ask_about(task, methods::TASKS_UPDATE, &options.request, write).await?;
        task.answered.extend(open.iter().map(|(key, _)| key.clone().into_owned()));
        Ok(true)
    }

    /// Whether a server of revision 2025-11-25 would make a task of a call of this tool, if asked.
    pub(crate) fn has_legacy_tasks(&self, tool: &Tool) -> bool {
        let mut can = self.setting("tasks");
        for name in ["requests", "tools", "call"] {
            can = can.and_then(|found| object::member(found, name));
        }
        let execution = object::member(tool.raw().as_raw(), "execution");
        let support = execution.and_then(|execution| object::member(execution, "taskSupport"));
        let support = support.and_then(object::text);
        self.modern().is_none()
            && can.is_some()
            && matches!(support.as_deref(), Some("optional" | "required"))
    }

    pub(super) async fn task_raw(
        &self,
        task: &Task,
        options: &RequestOptions,
    ) -> Result<Box<RawValue>, RequestFault> {
        self.ask_about(task, methods::TASKS_GET, options, |_| {}).await
    }

    /// A request about a task, with more parameters than its id.
    pub(super) async fn ask_about(
        &self,
        task: &Task,
        method: &'static str,
        options: &RequestOptions,
        more: impl Fn(&mut ObjectWriter<'_>) + Sync,
    ) -> Result<Box<RawValue>, RequestFault> {
        let params = |params: &mut ObjectWriter<'_>| {
            params.string("taskId", &task.id);
            more(params);
        };
        self.ask_raw(Ask { method, subject: Some(&task.id), params: &params, options }).await
    }

    pub(super) fn task_error(&self, task: &Task, fault: RequestFault) -> ConnectError {
        let subject = Some(task.id.clone());
        self.error(Operation::Request { method: methods::TASKS_GET, subject }, fault)
    }
}

async fn pause(task: &Task, options: &TaskOptions) -> Result<(), RequestFault> {
    tokio::select! {
        biased;
        reason = cancelled(&options.request) => Err(reason),
        () = sleep(task.pace()) => Ok(()),
    }
}

async fn cancelled(options: &RequestOptions) -> RequestFault {
    match options.cancel.clone() {
        Some(mut cancellation) => {
            let reason = Some(cancellation.cancelled().await);
            RequestFault::Fault(Fault::Cancelled { reason })
        }
        None => std::future::pending().await,
    }
}

fn read(state: &RawValue) -> Result<TaskView<'_>, RequestFault> {
    TaskView::from_raw(state).map_err(|source| {
        RequestFault::Fault(Fault::BadAnswer { method: methods::TASKS_GET, source })
    })
}

/// The error a task failed with; a server that tells none is believed all the same.
fn failure(view: &TaskView<'_>) -> PeerError {
    match view.error {
        Some(error) => PeerError::from_view(&ErrorObject::from_raw(error)),
        None => PeerError {
            code: plenipo_wire::protocol::error_code::INTERNAL_ERROR,
            message: view.message.clone().unwrap_or_default().into_owned(),
            data: None,
        },
    }
}

fn fault(fault: TaskFault) -> RequestFault {
    RequestFault::Fault(Fault::Task(fault))
}
