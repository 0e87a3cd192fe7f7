//! Waiting for something to become true, with a limit instead of a fixed sleep.

use std::time::{Duration, Instant};

/// A moment after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `limit` from now.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// Whether the moment has passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        Instant::now() >= self.0
    }

    /// What is left, zero once the moment has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Asks `condition` every few milliseconds until it holds or `limit` is over, and says whether
    /// it held. It is asked at least once, and once more after the limit.
    pub fn poll_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
        let deadline = Self::after(limit);
        while !deadline.has_passed() {
            if condition() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(3).min(deadline.remaining()));
        }
        condition()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_until_ends_both_ways() {
        let mut asked = 0;
        assert!(Deadline::poll_until(Duration::from_secs(30), || {
            asked += 1;
            asked == 3
        }));
        assert_eq!(asked, 3);
        assert!(!Deadline::poll_until(Duration::from_millis(5), || false));
        assert!(Deadline::poll_until(Duration::ZERO, || true));
    }
}
