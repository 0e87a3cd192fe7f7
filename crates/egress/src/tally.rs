//! What was refused, counted for the report.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::head::Target;

/// Different refusals that are kept apart; a command can make up as many names as it likes.
const MAX_KINDS: usize = 256;

/// One host that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The canonical name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// One word: `not-listed`, `port`, `denied`, `special-address`, `server-name`.
    pub reason: &'static str,
    /// The same for a person: `not listed`.
    pub explanation: String,
    /// How often.
    pub count: u64,
}

/// What a proxy did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Connections that came.
    pub connections: u64,
    /// By host, port and reason.
    pub refused: Vec<Refused>,
    /// Refusals beyond the 256 different ones that are listed.
    pub omitted: u64,
    /// Requests that were none.
    pub malformed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    connections: u64,
    refused: BTreeMap<(String, u16, &'static str), (String, u64)>,
    omitted: u64,
    malformed: u64,
}

impl Tally {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connection(&self) {
        self.counts().connections += 1;
    }

    pub(crate) fn malformed(&self) {
        self.counts().malformed += 1;
    }

    pub(crate) fn refused(&self, target: &Target, reason: &'static str, explanation: &str) {
        let mut counts = self.counts();
        let key = (target.host.to_string(), target.port, reason);
        if !counts.refused.contains_key(&key) && counts.refused.len() >= MAX_KINDS {
            counts.omitted += 1;
            return;
        }
        counts.refused.entry(key).or_insert_with(|| (explanation.to_owned(), 0)).1 += 1;
    }

    pub(crate) fn summary(&self) -> Summary {
        let counts = self.counts();
        let refused = counts.refused.iter().map(|((host, port, reason), (explanation, count))| {
            let (host, port, explanation) = (host.clone(), *port, explanation.clone());
            Refused { host, port, reason, explanation, count: *count }
        });
        Summary {
            connections: counts.connections,
            refused: refused.collect(),
            omitted: counts.omitted,
            malformed: counts.malformed,
        }
    }
}
