//! How long a request is waited for. Progress starts the limit on silence anew; a maximum holds
//! whatever the progress; while a person is asked, neither counts.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::call::progress::ProgressSink;
use crate::error::Fault;
use crate::input::PersonClock;

/// From the limit on silence to the maximum.
const DEFAULT_TOTAL: u32 = 4;

/// The limits of a request, all its rounds together.
pub(crate) struct Patience<'a> {
    clock: &'a PersonClock,
    start: Instant,
    idle: Duration,
    total: Duration,
    /// In which a person was asked between two rounds.
    between_rounds: Mutex<Duration>,
    /// In which the connection's questions were open before the request began.
    before: Duration,
}

/// When a request went out, and how long people had been asked by then.
pub(crate) struct Sent {
    at: Instant,
    asked: Duration,
}

impl<'a> Patience<'a> {
    /// Begins now. Without a maximum it is four times the limit on silence.
    pub(crate) fn new(clock: &'a PersonClock, idle: Duration, total: Option<Duration>) -> Self {
        let total = total.unwrap_or(idle.saturating_mul(DEFAULT_TOTAL));
        let before = clock.spent();
        Self { clock, start: Instant::now(), idle, total, between_rounds: Mutex::default(), before }
    }

    /// The shorter of both limits.
    pub(crate) fn shortest(&self) -> Duration {
        self.idle.min(self.total)
    }

    /// What is sent now.
    pub(crate) fn sent(&self) -> Sent {
        Sent { at: Instant::now(), asked: self.clock.spent() }
    }

    /// When it is time to look whether what was sent took too long; never too late.
    pub(crate) fn due(&self, sent: &Sent) -> Instant {
        (sent.at + self.idle).min(self.start + self.total)
    }

    /// Waits until the server took too long over what was sent.
    pub(crate) async fn run_out(&self, sent: &Sent, sink: Option<&ProgressSink>) -> Fault {
        loop {
            let end = self.end(sent, sink.and_then(ProgressSink::last));
            if end <= Instant::now() {
                return self.timed_out();
            }
            sleep_until(end).await;
            self.clock.idle().await;
        }
    }

    /// A person was asked for so long between two rounds.
    pub(crate) fn spent_asking(&self, time: Duration) {
        *self.between_rounds.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }

    fn end(&self, sent: &Sent, last_progress: Option<Instant>) -> Instant {
        let spent = self.clock.spent();
        let idle = last_progress.unwrap_or(sent.at) + self.idle + (spent - sent.asked);
        idle.min(self.start + self.total + self.asked(spent))
    }

    /// How long people were asked since the request began.
    fn asked(&self, spent: Duration) -> Duration {
        let between = *self.between_rounds.lock().unwrap_or_else(PoisonError::into_inner);
        between + spent.saturating_sub(self.before)
    }

    fn timed_out(&self) -> Fault {
        let asked = self.asked(self.clock.spent());
        let total = self.start.elapsed() >= self.total + asked && self.total > self.idle;
        Fault::TimedOut { limit: if total { self.total } else { self.idle }, total }
    }
}
