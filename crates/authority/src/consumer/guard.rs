//! What outlives a call keeps the authority of the call that made it.

use crate::{AuthorityChanged, AuthorityPart, CallAuthority};

/// The authority under which a long-lived process, a pool or a cached result was made.
///
/// Keep it with the thing, and ask before each reuse. Do not keep it after the host is gone: paths
/// in a state may be ephemeral.
#[derive(Clone, Debug)]
pub struct AuthorityGuard(CallAuthority);

impl AuthorityGuard {
    /// Retains the exact state text and launcher of the call.
    pub fn retain(authority: &CallAuthority) -> Self {
        Self(authority.clone())
    }

    /// Allows reuse by a call whose state text and launcher path are exactly those retained.
    ///
    /// # Errors
    ///
    /// [`AuthorityChanged`] when either differs, or is present on one side only: start anew or
    /// refuse.
    pub fn ensure_same(&self, authority: &CallAuthority) -> Result<(), AuthorityChanged> {
        AuthorityChanged::unless_same([
            (AuthorityPart::State, self.0.state() == authority.state()),
            (AuthorityPart::Launcher, self.0.launcher() == authority.launcher()),
        ])
    }
}
