//! Growing delays between attempts, spread so that many clients do not come back at once.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Doubles from a first delay up to a longest one; each is drawn from the upper half.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, attempts: 0 }
    }

    /// How many delays were given since the last success.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The delay before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.attempts.min(20)).min(self.longest);
        self.attempts = self.attempts.saturating_add(1);
        let half = doubled / 2;
        half + half.mul_f64(chance())
    }
}

/// A number from 0 to 1, from the seed that the standard library draws for its maps.
fn chance() -> f64 {
    let drawn = RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(drawn).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_bounds_and_differ() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, second * 60);
        for attempt in 0..40_u32 {
            let full = second.saturating_mul(1 << attempt.min(20)).min(second * 60);
            let delay = backoff.next();
            assert!(delay >= full / 2 && delay <= full, "{attempt}: {delay:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= second);
        let drawn: std::collections::HashSet<_> =
            (0..20).map(|_| Backoff::new(second, second).next()).collect();
        assert!(drawn.len() > 10, "they are spread");
    }
}
