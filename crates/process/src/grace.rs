//! How long a server is given to end.

use std::time::Duration;

/// How long each step of the shutdown ladder is given: close stdin → `stdin_closed` → SIGTERM →
/// `terminated` → SIGKILL. Both default to 2 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grace {
    /// Between closing stdin and SIGTERM.
    pub stdin_closed: Duration,
    /// Between SIGTERM and SIGKILL.
    pub terminated: Duration,
}

impl Grace {
    /// Both steps.
    #[must_use]
    pub fn new(stdin_closed: Duration, terminated: Duration) -> Self {
        Self { stdin_closed, terminated }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::new(Duration::from_secs(2), Duration::from_secs(2))
    }
}
