//! Where the reader puts changes and a subscription takes them from.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::changes::{Change, ChangeFilter};
use crate::peer::RequestFault;

/// Changes that nobody took yet; a subscriber that sleeps on costs no more than this.
const MOST: usize = 4_096;

/// The open subscriptions of one peer.
#[derive(Debug, Default)]
pub(crate) struct Sinks(Mutex<Vec<Arc<Sink>>>);

/// One subscription.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) filter: ChangeFilter,
    inside: Mutex<Inside>,
    /// For who waits for a change.
    changed: Notify,
    /// For who waits for the acknowledgement.
    settled: Notify,
    /// For who keeps the stream.
    withdrawn: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    /// The request that is open; a legacy server's notices name none.
    listen: Option<i64>,
    granted: Option<ChangeFilter>,
    acknowledgements: u64,
    queue: BTreeSet<Change>,
    ended: Option<End>,
}

#[derive(Debug)]
enum End {
    /// Before it was acknowledged, and not told yet.
    Failed(RequestFault),
    Over,
}

impl Sinks {
    pub(crate) fn add(&self, sink: &Arc<Sink>) {
        self.lock().push(Arc::clone(sink));
    }

    pub(crate) fn remove(&self, sink: &Arc<Sink>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, sink));
    }

    /// The subscription that keeps request `id` open.
    pub(crate) fn of(&self, id: i64) -> Option<Arc<Sink>> {
        self.lock().iter().find(|sink| sink.listens() == Some(id)).cloned()
    }

    /// A change that names no subscription concerns those that have none to name.
    pub(crate) fn tell_unnamed(&self, change: &Change) {
        for sink in self.lock().iter().filter(|sink| sink.listens().is_none()) {
            sink.tell(change.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Sink>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    pub(crate) fn new(filter: ChangeFilter) -> Self {
        Self {
            filter,
            inside: Mutex::default(),
            changed: Notify::new(),
            settled: Notify::new(),
            withdrawn: Notify::new(),
        }
    }

    /// A request is about to be sent that asks for this subscription.
    pub(crate) fn listen_as(&self, id: i64) {
        self.lock().listen = Some(id);
    }

    fn listens(&self) -> Option<i64> {
        self.lock().listen
    }

    /// Takes a change if it was asked for: what was not is no business of this subscription.
    pub(crate) fn tell(&self, change: Change) {
        let asked = match &change {
            Change::List(list) => self.filter.has(*list),
            // A server may name a part of what was subscribed to.
            Change::Resource { .. } => !self.filter.uris.is_empty(),
        };
        let mut inside = self.lock();
        if asked && inside.ended.is_none() && inside.queue.len() < MOST {
            inside.queue.insert(change);
            self.changed.notify_one();
        }
    }

    /// The server grants `granted` of it; once more after a reconnection, when everything may have
    /// changed unseen.
    pub(crate) fn acknowledge(&self, granted: &ChangeFilter) {
        let granted = self.filter.narrowed(granted);
        let again = {
            let mut inside = self.lock();
            inside.acknowledgements += 1;
            inside.granted.replace(granted.clone()).is_some()
        };
        self.settled.notify_waiters();
        if again {
            granted.all().for_each(|change| self.tell(change));
        }
    }

    /// How often it was acknowledged.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.lock().acknowledgements
    }

    pub(crate) fn granted(&self) -> Option<ChangeFilter> {
        self.lock().granted.clone()
    }

    /// The server no longer serves the request.
    pub(crate) fn withdraw(&self) {
        self.withdrawn.notify_one();
    }

    pub(crate) async fn withdrawn(&self) {
        self.withdrawn.notified().await;
    }

    /// There will be no acknowledgement.
    pub(crate) fn fail(&self, fault: RequestFault) {
        self.end_with(End::Failed(fault));
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) {
        self.end_with(End::Over);
    }

    fn end_with(&self, end: End) {
        self.lock().ended.get_or_insert(end);
        self.changed.notify_one();
        self.settled.notify_waiters();
    }

    /// Waits for the first acknowledgement.
    pub(crate) async fn acknowledged(&self) -> Result<(), RequestFault> {
        loop {
            let settled = self.settled.notified();
            {
                let mut inside = self.lock();
                if inside.granted.is_some() {
                    return Ok(());
                }
                if let Some(End::Failed(fault)) = inside.ended.take() {
                    inside.ended = Some(End::Over);
                    return Err(fault);
                }
                if inside.ended.is_some() {
                    return Err(RequestFault::Silence);
                }
            }
            settled.await;
        }
    }

    pub(crate) async fn next(&self) -> Option<Change> {
        loop {
            {
                let mut inside = self.lock();
                if let Some(change) = inside.queue.pop_first() {
                    return Some(change);
                }
                if inside.ended.is_some() {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::List;

    #[tokio::test]
    async fn a_storm_is_told_once_and_what_was_not_asked_for_not_at_all() {
        let sink = Sink::new(ChangeFilter::tools());
        for _ in 0..10_000 {
            sink.tell(Change::List(List::Tools));
            sink.tell(Change::List(List::Prompts));
            sink.tell(Change::Resource { uri: "file:///x".to_owned() });
        }
        assert_eq!(sink.next().await, Some(Change::List(List::Tools)));
        sink.end();
        assert_eq!(sink.next().await, None);
    }

    #[tokio::test]
    async fn nobody_reading_costs_no_memory_without_bound() {
        let sink = Sink::new(ChangeFilter::default().with_uris(["file:///".to_owned()]));
        for number in 0..MOST * 2 {
            sink.tell(Change::Resource { uri: number.to_string() });
        }
        assert_eq!(sink.lock().queue.len(), MOST);
    }
}
