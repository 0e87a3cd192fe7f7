//! What a server says has changed: counted, so that a storm of notices costs as much as one.

mod watch;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plenipo_wire::protocol::methods;
use tokio::sync::watch as latest;
use tokio::time::Instant;

pub use self::watch::CatalogWatch;
pub use crate::subscription::Subscription;

/// How often each list of a server was said to have changed on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Revisions {
    /// `notifications/tools/list_changed`.
    pub tools: u64,
    /// `notifications/prompts/list_changed`.
    pub prompts: u64,
    /// `notifications/resources/list_changed`.
    pub resources: u64,
}

/// A list that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum List {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources and their templates.
    Resources,
}

/// One change, as a subscription tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Change {
    /// A list is no longer what it was: whoever has it should list again.
    List(List),
    /// What can be read at this URI is no longer what it was.
    Resource {
        /// As it was subscribed to, or as the server spells it.
        uri: String,
    },
}

/// What to be told about. Empty by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChangeFilter {
    /// Changes of the tools.
    pub tools: bool,
    /// Changes of the prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Resources whose content is watched.
    pub uris: BTreeSet<String>,
}

impl ChangeFilter {
    /// Changes of the tools only.
    #[must_use]
    pub fn tools() -> Self {
        Self { tools: true, ..Self::default() }
    }

    /// All three lists, and no single resource.
    #[must_use]
    pub fn lists() -> Self {
        Self { tools: true, prompts: true, resources: true, uris: BTreeSet::new() }
    }

    /// These resources, too.
    #[must_use]
    pub fn with_uris(mut self, uris: impl IntoIterator<Item = String>) -> Self {
        self.uris.extend(uris);
        self
    }

    /// Whether a list is among it.
    #[must_use]
    pub fn has(&self, list: List) -> bool {
        match list {
            List::Tools => self.tools,
            List::Prompts => self.prompts,
            List::Resources => self.resources,
        }
    }

    /// Everything that may have changed unseen.
    pub(crate) fn all(&self) -> impl Iterator<Item = Change> {
        let lists = List::ALL.into_iter().filter(|list| self.has(*list)).map(Change::List);
        lists.chain(self.uris.iter().map(|uri| Change::Resource { uri: uri.clone() }))
    }

    /// What of `granted` was asked for.
    pub(crate) fn narrowed(&self, granted: &Self) -> Self {
        Self {
            tools: self.tools && granted.tools,
            prompts: self.prompts && granted.prompts,
            resources: self.resources && granted.resources,
            uris: self.uris.intersection(&granted.uris).cloned().collect(),
        }
    }
}

impl List {
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];
}

/// The counters of one peer.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    revisions: latest::Sender<Revisions>,
    moments: Mutex<Moments>,
}

/// When something was last said to have changed.
#[derive(Debug, Default)]
struct Moments {
    lists: HashMap<List, Instant>,
    uris: HashMap<String, Instant>,
    /// Of the resources there was no room for.
    others: Option<Instant>,
}

/// Resources whose last change is remembered one by one.
const MOST_URIS: usize = 1_024;

impl Changes {
    pub(crate) fn count(&self, list: List) {
        self.moments().lists.insert(list, Instant::now());
        self.revisions.send_modify(|revisions| {
            let counter = match list {
                List::Tools => &mut revisions.tools,
                List::Prompts => &mut revisions.prompts,
                List::Resources => &mut revisions.resources,
            };
            *counter = counter.saturating_add(1);
        });
    }

    pub(crate) fn revisions(&self) -> Revisions {
        *self.revisions.borrow()
    }

    pub(crate) fn subscribe(&self) -> latest::Receiver<Revisions> {
        self.revisions.subscribe()
    }

    /// A resource changed.
    pub(crate) fn note(&self, uri: &str) {
        let mut moments = self.moments();
        let now = Instant::now();
        if moments.uris.len() < MOST_URIS || moments.uris.contains_key(uri) {
            moments.uris.insert(uri.to_owned(), now);
        } else {
            moments.others = Some(now);
        }
    }

    /// When what `method` gives about `uri` was last said to have changed.
    pub(crate) fn last_change(&self, method: &str, uri: Option<&str>) -> Option<Instant> {
        let moments = self.moments();
        let list = match method {
            methods::TOOLS_LIST => List::Tools,
            methods::PROMPTS_LIST => List::Prompts,
            methods::RESOURCES_LIST | methods::RESOURCE_TEMPLATES_LIST => List::Resources,
            _ => {
                // A notice may be about a part of what was read, or about what that is a part of.
                let uri = uri?;
                let concerns = |changed: &str| changed.starts_with(uri) || uri.starts_with(changed);
                let known = moments.uris.iter().filter(|(changed, _)| concerns(changed));
                return known.map(|(_, moment)| *moment).chain(moments.others).max();
            }
        };
        moments.lists.get(&list).copied()
    }

    fn moments(&self) -> MutexGuard<'_, Moments> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
