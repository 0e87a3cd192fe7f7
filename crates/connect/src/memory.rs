//! What is worth knowing about a server before it is asked: its era, and the tools it listed for as
//! long as it said that they stay what they are.
//!
//! The crate keeps no files. A host that wants later connections to start with what earlier ones
//! learnt gives them a [`Memory`]; without one everything is asked anew.
//!
//! | kept | key | used |
//! |---|---|---|
//! | era | the server | one day; wrong: the other one is tried, and kept instead |
//! | tools (HTTP only) | the server and for whom it answers | for the `ttlMs` of the list, at most one day |

mod key;
mod tools;

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plenipo_wire::{Fragment, object};

pub use key::MemoryKey;
pub(crate) use tools::Remembered;

use crate::negotiate::{Era, EraHint};
use crate::options::ConnectOptions;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Larger texts are neither kept nor read.
const MOST_BYTES: usize = 1024 * 1024;

/// Keeps short texts between connections. Losing one costs a question; giving one back under
/// another key than it was kept under would mix up servers or people.
///
/// Called on the tasks of connections, a few times for each: be quick. The texts are JSON of at most
/// 1 MiB, in no promised shape, and hold what servers said: keep them from other users.
pub trait Memory: Send + Sync + fmt::Debug {
    /// What was kept under `key` last; `None` when there is nothing, or it cannot be had.
    fn recall(&self, key: &MemoryKey) -> Option<String>;

    /// Keeps `text` under `key` instead of what is there. What cannot be kept is lost.
    fn keep(&self, key: &MemoryKey, text: &str);
}

/// The era that a server was of, if that is known and not old.
fn era(memory: &dyn Memory, key: &MemoryKey) -> EraHint {
    era_at(memory, key, now()).unwrap_or_default()
}

fn era_at(memory: &dyn Memory, key: &MemoryKey, now: Duration) -> Option<EraHint> {
    let kept = recall(memory, key)?;
    let [era, at] = object::select(kept.as_raw(), ["era", "at"])?;
    let at = Duration::from_secs(u64::try_from(object::integer(at?)?).ok()?);
    // A clock that was set back proves nothing either.
    if at > now || now.saturating_sub(at) >= DAY {
        return None;
    }
    match &*object::text(era?)? {
        "modern" => Some(EraHint::Modern),
        "legacy" => Some(EraHint::Legacy),
        _ => None,
    }
}

/// Keeps the era unless it is what is remembered.
fn keep_era(memory: &dyn Memory, key: &MemoryKey, era: EraHint) {
    if era_at(memory, key, now()) == Some(era) {
        return;
    }
    let word = match era {
        EraHint::Modern => "modern",
        EraHint::Legacy => "legacy",
        EraHint::Unknown => return,
    };
    let text = Fragment::object(|object| {
        object.string("era", word);
        object.integer("at", i64::try_from(now().as_secs()).unwrap_or_default());
    });
    memory.keep(key, text.as_str());
}

impl ConnectOptions {
    /// What the host says about the era, else what is remembered.
    pub(crate) fn remembered_era(&self, key: &MemoryKey) -> EraHint {
        match (self.era, &self.memory) {
            (EraHint::Unknown, Some(memory)) => era(&**memory, key),
            (hint, _) => hint,
        }
    }

    /// Remembers what was agreed on.
    pub(crate) fn remember_era(&self, key: &MemoryKey, agreed: &Era) {
        if let Some(memory) = &self.memory {
            keep_era(&**memory, key, agreed.hint());
        }
    }
}

fn recall(memory: &dyn Memory, key: &MemoryKey) -> Option<Fragment> {
    let text = memory.recall(key).filter(|text| text.len() <= MOST_BYTES)?;
    Fragment::parse_object(&text).ok()
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Map(Mutex<HashMap<String, String>>);

    impl Memory for Map {
        fn recall(&self, key: &MemoryKey) -> Option<String> {
            self.0.lock().unwrap().get(key.as_str()).cloned()
        }

        fn keep(&self, key: &MemoryKey, text: &str) {
            self.0.lock().unwrap().insert(key.as_str().to_owned(), text.to_owned());
        }
    }

    #[test]
    fn an_era_is_believed_for_a_day_and_nonsense_never() {
        let (map, key) = (Map::default(), MemoryKey::of(["era", "a"]));
        assert_eq!(era(&map, &key), EraHint::Unknown);
        keep_era(&map, &key, EraHint::Legacy);
        assert_eq!(era(&map, &key), EraHint::Legacy);
        assert_eq!(era(&map, &MemoryKey::of(["era", "b"])), EraHint::Unknown);
        let later = now() + DAY;
        assert_eq!(era_at(&map, &key, later), None);
        assert_eq!(era_at(&map, &key, Duration::ZERO), None, "kept in the future");
        keep_era(&map, &key, EraHint::Modern);
        assert_eq!(era(&map, &key), EraHint::Modern);
        for text in ["", "[]", "{}", r#"{"era":"modern"}"#, r#"{"era":7,"at":1}"#, "{\"era\":"] {
            map.keep(&key, text);
            assert_eq!(era(&map, &key), EraHint::Unknown, "{text}");
        }
    }
}
