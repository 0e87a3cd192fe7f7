//! `notifications/progress` and `notifications/cancelled`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::id::RequestId;
use crate::object::{number, select, text};

/// Parameters of `notifications/progress`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Which request; string or number, as the requester chose it.
    pub token: RequestId,
    /// Grows with every notification; no unit.
    pub progress: f64,
    /// What `progress` grows to, when known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<Cow<'a, str>>,
}

/// Parameters of `notifications/cancelled`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Cancelled<'a> {
    /// Which request.
    pub request_id: RequestId,
    /// For people.
    pub reason: Option<Cow<'a, str>>,
}

impl<'a> Progress<'a> {
    /// Reads the parameters; token and progress have to be there.
    ///
    /// # Errors
    /// [`ViewError`] when they are not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "progress";
        let [token, progress, total, message] =
            select(raw, ["progressToken", "progress", "total", "message"])
                .ok_or_else(|| wrong(what, "params", "an object", Some(raw)))?;
        Ok(Self {
            token: token
                .and_then(RequestId::from_raw)
                .ok_or_else(|| wrong(what, "progressToken", "a string or number", token))?,
            progress: progress
                .and_then(number)
                .ok_or_else(|| wrong(what, "progress", "a number", progress))?,
            total: total.and_then(number),
            message: message.and_then(text),
        })
    }
}

impl<'a> Cancelled<'a> {
    /// Reads the parameters; the id has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when it is not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "cancellation";
        let [id, reason] = select(raw, ["requestId", "reason"])
            .ok_or_else(|| wrong(what, "params", "an object", Some(raw)))?;
        Ok(Self {
            request_id: id
                .and_then(RequestId::from_raw)
                .ok_or_else(|| wrong(what, "requestId", "a string or number", id))?,
            reason: reason.and_then(text),
        })
    }
}
