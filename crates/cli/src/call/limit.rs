//! `--timeout`: one limit for all of a call, from before its server is started to the answer.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::failure::{Code, Failure};

/// When the call has to be done, if that was said.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLimit(Option<(Instant, Duration)>);

impl TimeLimit {
    /// Begins now.
    pub(super) fn starting_now(limit: Option<Duration>) -> Self {
        // What is too far away to be a time is never reached.
        Self(limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit))))
    }

    /// Time that is left.
    pub(super) fn left(self) -> Option<Duration> {
        self.0.map(|(end, _)| end.saturating_duration_since(Instant::now()))
    }

    /// Does a part of the call, which reads well after "failed to".
    pub(super) async fn hold<T>(
        self,
        part: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Self(Some((end, _))) = self else { return work.await };
        timeout_at(end, work).await.unwrap_or_else(|_| Err(self.over(part)))
    }

    /// The limit was reached in that part.
    pub(super) fn over(self, part: &str) -> Failure {
        let limit = self.0.map(|(_, limit)| limit).unwrap_or_default().as_secs_f64();
        let message = format!("failed to {part}: the {limit} s that `--timeout` allows are over");
        Failure::new(Code::Timeout, message).with_hint("raise `--timeout`")
    }
}
