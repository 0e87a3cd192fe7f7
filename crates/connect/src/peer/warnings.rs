//! Each kind of warning once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Kinds of warning a server can earn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Noise,
    NotJsonRpc,
    TooLong,
    Stray,
    Overwhelmed,
    RequestOnModern,
    Capability,
    DroppedTools,
    Launcher,
    Exposed,
    Schema,
    Unanswered,
    LogLevel,
}

#[derive(Debug, Default)]
pub(crate) struct Warnings {
    given: AtomicU32,
    language_server_framing: AtomicBool,
}

impl Warnings {
    pub(crate) fn is_first(&self, kind: Kind) -> bool {
        let bit = 1 << (kind as u32);
        self.given.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    pub(crate) fn note_language_server_framing(&self) {
        self.language_server_framing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn language_server_framing(&self) -> bool {
        self.language_server_framing.load(Ordering::Relaxed)
    }
}
