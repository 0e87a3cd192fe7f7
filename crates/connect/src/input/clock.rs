//! The time in which a person is being asked: no deadline counts it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Runs while at least one question is open.
#[derive(Debug)]
pub(crate) struct PersonClock {
    state: watch::Sender<State>,
    /// Whether anybody was ever asked: mostly nobody is, and then there is nothing to add up.
    has_asked: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    open: u32,
    since: Option<Instant>,
    spent: Duration,
}

/// One open question.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a PersonClock);

impl Default for PersonClock {
    fn default() -> Self {
        Self { state: watch::Sender::new(State::default()), has_asked: AtomicBool::new(false) }
    }
}

impl PersonClock {
    /// A question is open until what is returned is dropped.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.has_asked.store(true, Ordering::Release);
        self.state.send_modify(|state| {
            state.open = state.open.saturating_add(1);
            state.since.get_or_insert_with(Instant::now);
        });
        Asking(self)
    }

    /// How long questions were open so far.
    pub(crate) fn spent(&self) -> Duration {
        if !self.has_asked.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let state = *self.state.borrow();
        state.spent + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Waits until no question is open.
    pub(crate) async fn idle(&self) {
        self.state.subscribe().wait_for(|state| state.open == 0).await.ok();
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| {
            state.open = state.open.saturating_sub(1);
            if state.open == 0
                && let Some(since) = state.since.take()
            {
                state.spent += since.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn overlapping_questions_are_counted_once() {
        let clock = PersonClock::default();
        let second = Duration::from_secs(1);
        advance(second).await;
        assert_eq!(clock.spent(), Duration::ZERO);
        let first = clock.ask();
        advance(second).await;
        let other = clock.ask();
        advance(second).await;
        drop(first);
        assert_eq!(clock.spent(), second * 2);
        advance(second).await;
        drop(other);
        advance(second).await;
        assert_eq!(clock.spent(), second * 3);
        clock.idle().await;
    }
}
