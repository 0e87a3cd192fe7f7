//! Tasks: of the extension (`io.modelcontextprotocol/tasks`, SEP-2663), and of revision 2025-11-25.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{integer, member, non_null, select, text};

/// A task as a server describes it, whichever way: the answer that made it, `tasks/get`, or a
/// notice. The revision of 2025-11-25 puts the first into a member `task` and has other names for
/// the times.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskView<'a> {
    /// What names it from now on.
    pub id: Cow<'a, str>,
    /// How it is.
    pub status: TaskStatus<'a>,
    /// Untrusted text.
    pub message: Option<Cow<'a, str>>,
    /// ISO 8601.
    pub created_at: Option<Cow<'a, str>>,
    /// From its creation on, in milliseconds; absent means for ever, or unknown.
    pub ttl_ms: Option<u64>,
    /// How long to wait before asking again, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// Of one that needs input, raw.
    pub input_requests: Option<&'a RawValue>,
    /// Of one that is completed, raw: what the request would have been answered with.
    pub result: Option<&'a RawValue>,
    /// Of one that failed, raw: a JSON-RPC error.
    pub error: Option<&'a RawValue>,
    /// The whole task, unknown members included.
    pub raw: &'a RawValue,
}

/// `status` of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskStatus<'a> {
    /// It goes on.
    Working,
    /// It waits for answers.
    InputRequired,
    /// It has a result; the tool may say in it that it failed.
    Completed,
    /// It ended with a JSON-RPC error.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// A value this crate does not know: not to be taken as an end.
    Unknown(Cow<'a, str>),
}

impl<'a> TaskView<'a> {
    /// Reads a task; only its id and status have to be there.
    ///
    /// # Errors
    /// [`ViewError`] when they are not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "task";
        let raw = member(raw, "task").and_then(non_null).unwrap_or(raw);
        let names = ["taskId", "status", "statusMessage", "createdAt"];
        let [id, status, message, created_at] =
            select(raw, names).ok_or_else(|| wrong(what, "task", "an object", Some(raw)))?;
        let times = ["ttlMs", "ttl", "pollIntervalMs", "pollInterval"];
        let [ttl_ms, ttl, poll_ms, poll] = select(raw, times).unwrap_or_default();
        let ends = ["inputRequests", "result", "error"];
        let [input_requests, result, error] = select(raw, ends).unwrap_or_default();
        let status_text =
            status.and_then(text).ok_or_else(|| wrong(what, "status", "a string", status))?;
        let id = id.and_then(text).filter(|text| !text.is_empty());
        Ok(Self {
            id: id.ok_or_else(|| wrong(what, "taskId", "a string that is not empty", None))?,
            status: TaskStatus::read(status_text),
            message: message.and_then(text),
            created_at: created_at.and_then(text),
            ttl_ms: ttl_ms.or(ttl).and_then(milliseconds),
            poll_interval_ms: poll_ms.or(poll).and_then(milliseconds),
            input_requests: input_requests.and_then(non_null),
            result: result.and_then(non_null),
            error: error.and_then(non_null),
            raw,
        })
    }
}

impl<'a> TaskStatus<'a> {
    fn read(text: Cow<'a, str>) -> Self {
        match &*text {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => Self::Unknown(text),
        }
    }

    /// As the protocol spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown(text) => text,
        }
    }
}

fn milliseconds(raw: &RawValue) -> Option<u64> {
    integer(raw).map(|number| u64::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn both_revisions_are_read() {
        for text in [
            r#"{"taskId":"t","status":"working","ttlMs":9,"pollIntervalMs":-5}"#,
            r#"{"task":{"taskId":"t","status":"working","ttl":9.0,"pollInterval":-5}}"#,
        ] {
            let raw = Fragment::parse(text).unwrap();
            let view = TaskView::from_raw(raw.as_raw()).unwrap();
            assert_eq!((&*view.id, view.status), ("t", TaskStatus::Working));
            assert_eq!((view.ttl_ms, view.poll_interval_ms), (Some(9), Some(0)));
        }
    }

    #[test]
    fn an_unknown_status_is_no_end_and_a_task_has_a_name() {
        let raw = Fragment::parse(r#"{"taskId":"t","status":"paused","ttlMs":null}"#).unwrap();
        let view = TaskView::from_raw(raw.as_raw()).unwrap();
        assert_eq!((view.status.as_str(), view.ttl_ms), ("paused", None));
        for text in [r#"{"taskId":"t"}"#, r#"{"taskId":"","status":"working"}"#, "[]"] {
            assert!(TaskView::from_raw(Fragment::parse(text).unwrap().as_raw()).is_err(), "{text}");
        }
    }
}
