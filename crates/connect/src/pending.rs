//! Requests that wait for their answer, and the alarm of those that wait too long.
//!
//! Everything about a request is one entry of one table: what its caller is told, whom to wake, and
//! when to look whether it waited long enough. One task a connection sleeps to the earliest of those
//! times, so a request that is answered in time costs no timer.

mod alarm;
mod answer;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use plenipo_wire::{LineTooLong, RawValue};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::call::progress::ProgressSink;
use crate::error::{Fault, PeerError};
use crate::input::respond::Asker;

pub(crate) use answer::{Answer, Landed};

/// Why a connection ended, with what the server last wrote to stderr.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) fault: Fault,
    pub(crate) stderr_tail: Vec<String>,
}

/// What a waiting call is told.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Box<RawValue>),
    Error(PeerError),
    TooLong(LineTooLong),
    Closed(Arc<Closed>),
}

/// Request ids and who waits for them. Ids are never reused on a connection.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    ended: watch::Sender<bool>,
    /// The alarm has to ring earlier than it was set to, or not at all any more.
    alarm_set: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: i64,
    waiting: HashMap<i64, Waiting, BuildHasherDefault<OwnIds>>,
    closed: Option<Arc<Closed>>,
    alarm: alarm::Alarm,
}

#[derive(Debug)]
struct Waiting {
    slot: Slot,
    progress: Option<Arc<ProgressSink>>,
    attended: Option<Attended>,
    /// When to wake whoever waits although there is no answer.
    due: Option<Instant>,
    is_due: bool,
}

/// Where an answer is put.
#[derive(Debug)]
enum Slot {
    Open(Option<Waker>),
    /// Nobody will fetch it.
    Abandoned,
    Full(Reply),
}

/// A call that has somebody to answer the server's questions.
#[derive(Debug)]
struct Attended {
    asker: Asker,
    /// Goes with the entry, which tells those who answer that the call is over.
    alive: Option<watch::Sender<()>>,
}

/// We give the ids out one after the other, so that nobody can choose them to collide.
#[derive(Debug, Default)]
struct OwnIds(u64);

impl Hasher for OwnIds {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }

    fn write_i64(&mut self, id: i64) {
        // Fibonacci hashing: the map looks at the highest bits, too.
        self.0 = id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Waiting {
    fn waits(&self) -> bool {
        !matches!(self.slot, Slot::Full(_))
    }
}

impl Pending {
    /// A fresh id and where its answer will come.
    pub(crate) fn register(
        &self,
        progress: Option<Arc<ProgressSink>>,
    ) -> Result<(i64, Answer), Arc<Closed>> {
        self.register_until(progress, None)
    }

    /// As [`register`](Self::register); at `due` whoever waits with
    /// [`landed`](Answer::landed) is told the time.
    pub(crate) fn register_until(
        &self,
        progress: Option<Arc<ProgressSink>>,
        due: Option<Instant>,
    ) -> Result<(i64, Answer), Arc<Closed>> {
        let mut table = self.lock();
        if let Some(closed) = &table.closed {
            return Err(Arc::clone(closed));
        }
        let id = table.next;
        table.next = id.saturating_add(1);
        let slot = Slot::Open(None);
        let waiting = Waiting { slot, progress, attended: None, due, is_due: false };
        table.waiting.insert(id, waiting);
        let set = due.map(|due| (due, table.alarm.set(due, alarm::here())));
        drop(table);
        let mut answer = Answer::new(Arc::clone(&self.shared), id);
        match set {
            None | Some((_, alarm::Set::Done)) => {}
            Some((_, alarm::Set::Earlier)) => self.shared.alarm_set.notify_one(),
            Some((_, alarm::Set::Unkept)) => alarm::start(&self.shared),
            Some((due, alarm::Set::Elsewhere)) => answer.watch(due),
        }
        Ok((id, answer))
    }

    /// Questions that come while `id` waits may be put to `asker`.
    pub(crate) fn attend(&self, id: i64, asker: Asker) {
        if let Some(waiting) = self.lock().waiting.get_mut(&id) {
            waiting.attended = Some(Attended { asker, alive: None });
        }
    }

    /// Who answers a question that came with the answer to `id`, or with no answer and there is only
    /// one call that it can belong to; and what ends when that call does.
    pub(crate) fn asker(&self, id: Option<i64>) -> Option<(Asker, watch::Receiver<()>)> {
        let mut table = self.lock();
        let attended = match id.filter(|id| table.is_waiting(*id)) {
            Some(id) => table.waiting.get_mut(&id)?.attended.as_mut()?,
            None => {
                let mut all = table.waiting.values_mut().filter_map(|w| w.attended.as_mut());
                let first = all.next()?;
                if all.next().is_some() {
                    return None;
                }
                first
            }
        };
        let alive = attended.alive.get_or_insert_with(|| watch::Sender::new(()));
        Some((attended.asker.clone(), alive.subscribe()))
    }

    /// Hands an answer over; false when nobody waits for it.
    pub(crate) fn complete(&self, id: i64, reply: Reply) -> bool {
        self.complete_with(id, || reply)
    }

    /// As [`complete`](Self::complete); the reply is made only if somebody waits.
    pub(crate) fn complete_with(&self, id: i64, reply: impl FnOnce() -> Reply) -> bool {
        let mut table = self.lock();
        let Some(waiting) = table.waiting.get_mut(&id).filter(|waiting| waiting.waits()) else {
            return false;
        };
        // What goes with the entry is dropped, and who waits woken, when the table is free again.
        let _over = (waiting.progress.take(), waiting.attended.take());
        let waker = match &mut waiting.slot {
            Slot::Open(waker) => {
                let waker = waker.take();
                waiting.slot = Slot::Full(reply());
                waker
            }
            // A caller that went away meanwhile no longer wants it.
            _ => {
                table.waiting.remove(&id);
                None
            }
        };
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Nobody waits any longer; true when somebody did.
    pub(crate) fn forget(&self, id: i64) -> bool {
        let mut table = self.lock();
        if !table.is_waiting(id) {
            return false;
        }
        let _forgotten = table.waiting.remove(&id);
        drop(table);
        true
    }

    /// Whether `id` was given out on this connection.
    pub(crate) fn was_issued(&self, id: i64) -> bool {
        (0..self.lock().next).contains(&id)
    }

    /// How many wait, or did until a moment ago.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    pub(crate) fn is_waiting(&self, id: i64) -> bool {
        self.lock().is_waiting(id)
    }

    /// Whether the time that `id` was registered for has come, or it no longer waits. Who waits for the answer is woken
    /// then.
    pub(crate) fn is_due(&self, id: i64) -> bool {
        self.lock().waiting.get(&id).is_none_or(|waiting| waiting.due.is_none())
    }

    /// The only waiting id, when there is exactly one.
    pub(crate) fn only_one(&self) -> Option<i64> {
        let table = self.lock();
        let mut waiting = table.waiting.iter().filter(|(_, waiting)| waiting.waits());
        waiting.next().map(|(id, _)| *id).filter(|_| waiting.next().is_none())
    }

    pub(crate) fn progress(&self, id: i64) -> Option<Arc<ProgressSink>> {
        self.lock().waiting.get(&id).and_then(|waiting| waiting.progress.clone())
    }

    /// Fails everybody who waits, and everybody after; the first reason stays.
    pub(crate) fn close(&self, closed: Closed) {
        let closed = Arc::new(closed);
        let mut table = self.lock();
        if table.closed.is_some() {
            return;
        }
        table.closed = Some(Arc::clone(&closed));
        let ids: Vec<i64> = table.waiting.keys().copied().collect();
        drop(table);
        for id in ids {
            self.complete_with(id, || Reply::Closed(Arc::clone(&closed)));
        }
        self.shared.alarm_set.notify_one();
        self.shared.ended.send_replace(true);
    }

    /// Waits until the connection has ended.
    pub(crate) async fn wait_for_end(&self) {
        let mut ended = self.shared.ended.subscribe();
        // The sender lives as long as this.
        ended.wait_for(|ended| *ended).await.ok();
    }

    pub(crate) fn closed(&self) -> Option<Arc<Closed>> {
        self.lock().closed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.lock()
    }
}

impl Table {
    fn is_waiting(&self, id: i64) -> bool {
        self.waiting.get(&id).is_some_and(Waiting::waits)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.shared.lock().alarm.end();
        self.shared.alarm_set.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> Closed {
        Closed { fault: Fault::OutputClosed, stderr_tail: Vec::new() }
    }

    #[tokio::test]
    async fn the_end_reaches_everybody_and_ids_are_not_reused() {
        let pending = Pending::default();
        let (first, _answer) = pending.register(None).unwrap();
        let (second, told) = pending.register(None).unwrap();
        assert!(pending.forget(first) && !pending.forget(first));
        assert_ne!(first, second);
        assert_eq!(pending.only_one(), Some(second));
        assert!(pending.was_issued(first) && !pending.is_waiting(first));
        assert!(!pending.complete(first, Reply::Result(RawValue::NULL.to_owned())));
        pending.close(closed());
        pending.close(Closed { fault: Fault::ShutDown, stderr_tail: Vec::new() });
        let Reply::Closed(reason) = told.await.unwrap() else { panic!("another reply") };
        assert!(matches!(reason.fault, Fault::OutputClosed), "the first reason stays");
        assert!(pending.register(None).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_told_the_time_and_still_gets_the_answer() {
        let pending = Pending::default();
        let start = Instant::now();
        let at = |seconds| Some(start + std::time::Duration::from_secs(seconds));
        let (late, mut answer) = pending.register_until(None, at(30)).unwrap();
        let (_, mut sooner) = pending.register_until(None, at(10)).unwrap();
        assert!(matches!(sooner.landed().await, Landed::Due));
        assert_eq!(Some(Instant::now()), at(10));
        assert!(matches!(answer.landed().await, Landed::Due));
        assert_eq!(Some(Instant::now()), at(30));
        assert!(pending.complete(late, Reply::Result(RawValue::NULL.to_owned())));
        assert!(matches!(answer.landed().await, Landed::Answered(Reply::Result(_))));
        drop(sooner);
        assert!(pending.complete(1, Reply::Result(RawValue::NULL.to_owned())), "nobody took it");
        assert_eq!(pending.len(), 0, "and nothing of it is kept");
    }

    /// Whether it ended, or stands still.
    #[test]
    fn whoever_waits_is_told_the_time_although_another_runtime_has_the_alarm() {
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let due = || Some(Instant::now() + std::time::Duration::from_millis(20));
        for ends in [false, true] {
            let pending = Pending::default();
            let (first, second) = (runtime(), runtime());
            let registered = |runtime: &tokio::runtime::Runtime| {
                let _here = runtime.enter();
                pending.register_until(None, due()).unwrap().1
            };
            let kept = registered(&first);
            let mut waiting = match ends {
                true => {
                    drop(first);
                    kept
                }
                false => registered(&second),
            };
            let landed = second.block_on(waiting.landed());
            assert!(matches!(landed, Landed::Due), "{landed:?}");
        }
    }

    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn who_looks_for_the_answer_is_not_woken_for_it() {
        for looks in [false, true] {
            let pending = Pending::default();
            let (id, mut answer) = pending.register(None).unwrap();
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let mut context = std::task::Context::from_waker(&waker);
            assert!(std::pin::Pin::new(&mut answer).poll(&mut context).is_pending());
            assert!(!looks || answer.look().is_none());
            assert!(pending.complete(id, Reply::Result(RawValue::TRUE.to_owned())));
            let times = woken.0.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(times, usize::from(!looks));
            let found = answer.look();
            assert!(matches!(found, Some(Ok(Reply::Result(found))) if found.get() == "true"));
            assert!(matches!(answer.look(), Some(Err(_))), "it is given once");
        }
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_who_asked_and_given_once() {
        let pending = Pending::default();
        let (id, mut answer) = pending.register(None).unwrap();
        assert!(pending.complete(id, Reply::Result(RawValue::NULL.to_owned())));
        assert!(!pending.complete(id, Reply::Result(RawValue::TRUE.to_owned())));
        assert!(!pending.forget(id) && !pending.is_waiting(id));
        assert!(matches!(answer.try_take(), Some(Reply::Result(first)) if first.get() == "null"));
        assert!(answer.try_take().is_none());
        assert!(matches!(answer.landed().await, Landed::Forgotten));
        let (id, gone) = pending.register(None).unwrap();
        assert!(pending.forget(id));
        assert!(gone.await.is_err());
        assert_eq!(pending.len(), 0);
    }
}
