//! Results that a server allows to be kept for a while (`ttlMs`, `cacheScope`; 2026-07-28, "Caching").
//!
//! Kept are pages of prompts, resources and templates, and contents of resources, each by its method
//! and parameters. A result without `ttlMs` is not kept, nor is one that took questions to get. A
//! `public` result serves every connection to the same URL that shares the cache; everything else
//! stays with the connection it came over, and with the credentials it was got with: a refusal of
//! these drops it. Nothing stale is ever served, whatever fails, and nothing is asked for by itself:
//! a lifetime is no interval. A notice of change beats it.
//!
//! Bounds: 512 results, 16 MiB together, 4 MiB each; no lifetime is longer than a day.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plenipo_wire::protocol::methods;
use plenipo_wire::{Fragment, RawValue, object};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::{ErrorKind, Fault};
use crate::peer::{Link, RequestFault};
use crate::request::Ask;

const MOST_RESULTS: usize = 512;
const MOST_BYTES: usize = 16 * 1024 * 1024;
const LARGEST: usize = 4 * 1024 * 1024;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Results that were kept. Share one among connections to let them share what is public.
#[derive(Default)]
pub struct ResultCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    results: HashMap<Key, Entry>,
    bytes: usize,
}

/// What a result is an answer to, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    audience: Audience,
    method: &'static str,
    /// All but `_meta`: a URI, a cursor.
    params: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Audience {
    /// Everybody who asks this URL.
    Public(Arc<str>),
    /// One connection.
    Private(u64),
}

struct Entry {
    result: Box<RawValue>,
    /// Before it was asked for: what changed later may not be in it.
    asked: Instant,
    end: Instant,
}

/// How long a result may be kept, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lifetime {
    time: Duration,
    is_public: bool,
}

impl Lifetime {
    /// What a result says about itself: absent, negative or odd is no time at all, and private.
    fn of(result: &RawValue) -> Self {
        let [time, scope] = object::select(result, ["ttlMs", "cacheScope"]).unwrap_or_default();
        let milliseconds = time.and_then(object::number).filter(|time| *time > 0.0);
        let time = milliseconds.and_then(|time| Duration::try_from_secs_f64(time / 1e3).ok());
        let too_long = milliseconds.is_some_and(|time| time.is_finite()).then_some(LONGEST);
        Self {
            time: time.or(too_long).unwrap_or_default().min(LONGEST),
            is_public: scope.and_then(object::text).as_deref() == Some("public"),
        }
    }
}

/// How long a listing may be taken for current; `None` when it does not say.
pub(crate) fn lifetime(result: &RawValue) -> Option<Duration> {
    object::member(result, "ttlMs").map(|_| Lifetime::of(result).time)
}

impl ResultCache {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn find(&self, key: &Key, changed: Option<Instant>) -> Option<Box<RawValue>> {
        let kept = self.lock();
        let found = kept.results.get(key)?;
        let is_fresh = Instant::now() < found.end;
        let is_current = changed.is_none_or(|changed| found.asked > changed);
        (is_fresh && is_current).then(|| found.result.clone())
    }

    fn keep(&self, key: Key, result: Entry) {
        let size = result.result.get().len();
        if size > LARGEST {
            return;
        }
        let mut kept = self.lock();
        kept.remove(&key);
        kept.make_room(size);
        kept.bytes += size;
        kept.results.insert(key, result);
    }

    /// Forgets what connection `owner` got for its credentials.
    pub(crate) fn forget(&self, owner: u64) {
        let mut kept = self.lock();
        let of_owner = |key: &&Key| key.audience == Audience::Private(owner);
        let gone: Vec<Key> = kept.results.keys().filter(of_owner).cloned().collect();
        for key in gone {
            kept.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(gone) = self.results.remove(key) {
            self.bytes -= gone.result.get().len();
        }
    }

    /// Drops what is over, then what ends first.
    fn make_room(&mut self, size: usize) {
        if self.results.len() < MOST_RESULTS && self.bytes + size <= MOST_BYTES {
            return;
        }
        let now = Instant::now();
        let over: Vec<Key> = self
            .results
            .iter()
            .filter(|(_, result)| result.end <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            self.remove(&key);
        }
        while self.results.len() >= MOST_RESULTS || self.bytes + size > MOST_BYTES {
            let first = self.results.iter().min_by_key(|(_, result)| result.end);
            let Some(key) = first.map(|(key, _)| key.clone()) else { return };
            self.remove(&key);
        }
    }
}

impl Connection {
    /// A kept result of this request, if there is one that still holds.
    pub(crate) fn kept(&self, ask: &Ask<'_>) -> Option<Box<RawValue>> {
        let params = self.keepable(ask)?;
        let changed = self.peer.changes.last_change(ask.method, ask.subject);
        [Some(Audience::Private(self.peer.number)), self.public()].into_iter().flatten().find_map(
            |audience| {
                let key = Key { audience, method: ask.method, params: params.clone() };
                self.options.cache.find(&key, changed)
            },
        )
    }

    /// Keeps a result that was asked for at `asked`, if it may be kept.
    pub(crate) fn keep(&self, ask: &Ask<'_>, asked: Instant, result: &RawValue) {
        let lifetime = Lifetime::of(result);
        let Some(params) = self.keepable(ask).filter(|_| !lifetime.time.is_zero()) else { return };
        let audience = match self.public().filter(|_| lifetime.is_public) {
            Some(public) => public,
            None => Audience::Private(self.peer.number),
        };
        let key = Key { audience, method: ask.method, params };
        let end = Instant::now() + lifetime.time;
        self.options.cache.keep(key, Entry { result: result.to_owned(), asked, end });
    }

    /// Credentials that are refused may have been somebody else's all along.
    pub(crate) fn drop_if_refused(&self, fault: &RequestFault) {
        if matches!(fault, RequestFault::Fault(fault @ Fault::Http(_)) if fault.kind() == ErrorKind::SignIn)
        {
            self.options.cache.forget(self.peer.number);
        }
    }

    /// The parameters of a request whose result may be kept.
    fn keepable(&self, ask: &Ask<'_>) -> Option<String> {
        let may_be_kept = matches!(
            ask.method,
            methods::PROMPTS_LIST
                | methods::RESOURCES_LIST
                | methods::RESOURCE_TEMPLATES_LIST
                | methods::RESOURCES_READ
        );
        // What the caller adds may change the answer.
        if !may_be_kept || ask.options.meta.is_some() {
            return None;
        }
        Some(Fragment::object(|params| (ask.params)(params)).as_str().to_owned())
    }

    /// Everybody who asks the same URL; a process is asked by nobody else.
    fn public(&self) -> Option<Audience> {
        match &self.peer.link {
            Link::Http(http) => Some(Audience::Public(http.address().into())),
            Link::Stdio(_) => None,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.options.cache.forget(self.peer.number);
    }
}

impl fmt::Debug for ResultCache {
    /// Sizes, never what is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.lock();
        f.debug_struct("ResultCache")
            .field("results", &kept.results.len())
            .field("bytes", &kept.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn ttl_table() {
        let table = [
            (r#"{}"#, 0, false),
            (r#"{"ttlMs":-5,"cacheScope":"public"}"#, 0, true),
            (r#"{"ttlMs":0}"#, 0, false),
            (r#"{"ttlMs":1500,"cacheScope":"private"}"#, 1500, false),
            (r#"{"ttlMs":1500.0,"cacheScope":"PUBLIC"}"#, 1500, false),
            (r#"{"ttlMs":"1500"}"#, 0, false),
            (r#"{"ttlMs":1e300}"#, 86_400_000, false),
            (r#"{"ttlMs":null,"cacheScope":7}"#, 0, false),
            (r#"[1]"#, 0, false),
        ];
        for (text, milliseconds, is_public) in table {
            let expected = Lifetime { time: Duration::from_millis(milliseconds), is_public };
            assert_eq!(Lifetime::of(&parse(text)), expected, "{text}");
        }
        assert_eq!(lifetime(&parse("{}")), None);
        assert_eq!(lifetime(&parse(r#"{"ttlMs":-1}"#)), Some(Duration::ZERO));
    }

    fn key(number: usize) -> Key {
        let audience = Audience::Private(1);
        Key { audience, method: methods::RESOURCES_READ, params: number.to_string() }
    }

    fn result(size: usize, lives: Duration) -> Entry {
        let asked = Instant::now();
        let text = Fragment::string(&"x".repeat(size));
        Entry { result: text.as_raw().to_owned(), asked, end: asked + lives }
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_fresh_for_its_time_and_until_a_change() {
        let cache = ResultCache::new();
        let second = Duration::from_secs(1);
        cache.keep(key(1), result(1, second));
        assert!(cache.find(&key(1), None).is_some());
        assert!(cache.find(&key(2), None).is_none());
        assert!(cache.find(&key(1), Some(Instant::now())).is_none(), "it changed since");
        tokio::time::advance(second).await;
        assert!(cache.find(&key(1), None).is_none(), "its time is over at that very moment");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = ResultCache::new();
        let hour = Duration::from_secs(3600);
        for number in 0..MOST_RESULTS * 2 {
            cache.keep(key(number), result(10, hour));
        }
        assert_eq!(cache.lock().results.len(), MOST_RESULTS);
        for number in 0..20 {
            cache.keep(key(number), result(LARGEST - 2, hour));
        }
        let kept = cache.lock();
        let bytes: usize = kept.results.values().map(|kept| kept.result.get().len()).sum();
        assert!(kept.bytes == bytes && bytes <= MOST_BYTES, "{bytes}");
        drop(kept);
        cache.keep(key(9), result(LARGEST, hour));
        cache.forget(1);
        assert!(cache.lock().results.is_empty());
    }
}
