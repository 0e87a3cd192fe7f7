//! How calls ended, and which manners of servers they met.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a server does that still answers.
const ANSWERING: [&str; 7] = ["plain", "later", "dribble", "noise", "storm", "progress", "double"];
/// What has to have been met otherwise, over each transport; `changed-later` is a change that was heard of a server that
/// had been killed since the subscription.
const MET: [&str; 5] = ["changed", "changed-later", "cancelled", "timed-out", "server-ended"];
pub(super) const TRANSPORTS: [&str; 2] = ["stdio", "http"];

#[derive(Default)]
pub(super) struct Counts {
    pub(super) calls: AtomicU64,
    pub(super) right: AtomicU64,
    pub(super) crossed: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) timed_out: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) other: AtomicU64,
    /// Servers on pipes.
    pub(super) killed: AtomicU64,
    /// The process of all servers behind URLs.
    pub(super) restarted: AtomicU64,
    met: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

impl Counts {
    pub(super) fn meet(&self, transport: &'static str, what: &'static str) {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        *met.entry((transport, what)).or_default() += 1;
    }

    pub(super) fn times(&self, transport: &'static str, what: &'static str) -> u64 {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.get(&(transport, what)).copied().unwrap_or_default()
    }

    /// What was not met, of all that a long soak is for.
    pub(super) fn missed(&self) -> Vec<String> {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = TRANSPORTS.iter().flat_map(|transport| {
            ANSWERING.iter().chain(&MET).map(move |what| (*transport, *what))
        });
        let missed = wanted.filter(|wanted| !met.contains_key(wanted));
        let mut missed: Vec<String> =
            missed.map(|(transport, what)| format!("{what} over {transport}")).collect();
        for (counter, what) in [(&self.killed, "killed"), (&self.restarted, "restarted")] {
            if counter.load(Ordering::Relaxed) == 0 {
                missed.push(what.to_owned());
            }
        }
        missed
    }
}
