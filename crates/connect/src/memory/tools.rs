//! A tool list that is kept as long as the server said that it is fresh (revision 2026-07-28,
//! "Caching": `ttlMs`).

use std::time::Duration;

use plenipo_wire::views::ToolView;
use plenipo_wire::{Fragment, object};

use super::{DAY, MOST_BYTES, Memory, MemoryKey, now, recall};
use crate::catalog::Tool;

/// A memory and the name of one server's list in it.
#[derive(Debug)]
pub(crate) struct Remembered<'a> {
    memory: &'a dyn Memory,
    key: MemoryKey,
}

impl<'a> Remembered<'a> {
    pub(crate) fn new(memory: &'a dyn Memory, key: MemoryKey) -> Self {
        Self { memory, key }
    }

    /// The list, while it is fresh.
    pub(crate) fn recall(&self) -> Option<Vec<Tool>> {
        self.recall_at(now())
    }

    fn recall_at(&self, now: Duration) -> Option<Vec<Tool>> {
        let kept = recall(self.memory, &self.key)?;
        let [at, ttl, tools] = object::select(kept.as_raw(), ["at", "ttl", "tools"])?;
        let seconds = |raw| Some(Duration::from_secs(u64::try_from(object::integer(raw?)?).ok()?));
        let (at, ttl): (Duration, Duration) = (seconds(at)?, seconds(ttl)?);
        if at > now || now.saturating_sub(at) >= ttl.min(DAY) {
            return None;
        }
        let tools = object::items(tools?)?;
        let tools: Option<Vec<_>> = tools
            .into_iter()
            .map(|raw| Some(Tool::from_view(&ToolView::from_raw(raw).ok()?)))
            .collect();
        tools
    }

    /// Keeps the list, or as many of its first tools as there is room for. Without a lifetime it
    /// replaces what was kept by nothing.
    pub(crate) fn keep(&self, tools: &[Tool], ttl: Duration) {
        if ttl < Duration::from_secs(1) && self.memory.recall(&self.key).is_none() {
            return;
        }
        let mut room = MOST_BYTES / 2;
        let fresh = |tool: &&Tool| {
            room = room.saturating_sub(tool.raw().as_str().len().saturating_add(1));
            room > 0 && ttl >= Duration::from_secs(1)
        };
        let kept: Vec<_> = tools.iter().take_while(fresh).map(|tool| tool.raw().as_str()).collect();
        let list = Fragment::parse(&format!("[{}]", kept.join(",")));
        let Ok(list) = list else { return };
        let number = |time: Duration| i64::try_from(time.as_secs()).unwrap_or_default();
        let text = Fragment::object(|object| {
            object.integer("at", number(now()));
            object.integer("ttl", number(ttl.min(DAY)));
            object.fragment("tools", &list);
        });
        self.memory.keep(&self.key, text.as_str());
    }
}
