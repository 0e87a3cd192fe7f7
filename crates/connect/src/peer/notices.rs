//! Notifications: progress, logs, changes, and what concerns subscriptions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plenipo_wire::protocol::{meta, methods};
use plenipo_wire::views::{Cancelled, Progress};
use plenipo_wire::{Fragment, RawValue, RequestId, object};

use super::Peer;
use crate::changes::{Change, ChangeFilter, List};
use crate::observer::{Event, tell};
use crate::subscription::Sink;

impl Peer {
    /// Takes a notice that came in the answer to request `question`, if over HTTP. What cannot be
    /// read is left out.
    pub(super) fn receive_notification(
        &self,
        question: Option<i64>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let list = match method {
            methods::TOOLS_LIST_CHANGED => List::Tools,
            methods::PROMPTS_LIST_CHANGED => List::Prompts,
            methods::RESOURCES_LIST_CHANGED => List::Resources,
            _ => return self.receive_other(question, method, params),
        };
        self.list_changed(list);
        self.tell(question, params, Change::List(list));
    }

    fn receive_other(&self, question: Option<i64>, method: &str, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        match method {
            methods::PROGRESS => self.receive_progress(params),
            methods::MESSAGE => {
                let server = &self.name;
                let clean = self.scrub_json(params);
                let params = clean.as_ref().map_or(params, Fragment::as_raw);
                tell(&*self.observer, &Event::Log { server, params });
            }
            methods::RESOURCES_UPDATED => {
                let uri = object::member(params, "uri").and_then(object::text);
                if let Some(uri) = uri {
                    let server = &self.name;
                    self.changes.note(&uri);
                    tell(&*self.observer, &Event::ResourceUpdated { server, uri: &uri });
                    let change = Change::Resource { uri: uri.into_owned() };
                    self.tell(question, Some(params), change);
                }
            }
            methods::SUBSCRIPTION_ACKNOWLEDGED => {
                if let Some(sink) = self.sink_of(question, Some(params)) {
                    self.acknowledged(&sink, params);
                }
            }
            methods::CANCELLED => self.receive_cancelled(params),
            methods::ELICITATION_COMPLETE => {
                let id = object::member(params, "elicitationId").and_then(object::text);
                if let Some(id) = id {
                    self.asks.complete(&id);
                }
            }
            _ => {}
        }
    }

    /// A server can cancel what it asked itself, and of our requests nothing but a subscription.
    fn receive_cancelled(&self, params: &RawValue) {
        let Ok(cancelled) = Cancelled::from_raw(params) else { return };
        self.asks.withdraw(&cancelled.request_id);
        if let Some(sink) = number(&cancelled.request_id).and_then(|id| self.sinks.of(id)) {
            sink.withdraw();
        }
    }

    fn acknowledged(&self, sink: &Sink, params: &RawValue) {
        let granted = granted(params, &sink.filter);
        if sink.granted().is_some() {
            // Nobody listened for a while.
            for list in List::ALL.into_iter().filter(|list| granted.has(*list)) {
                self.list_changed(list);
            }
        }
        sink.acknowledge(&granted);
    }

    fn receive_progress(&self, params: &RawValue) {
        let Ok(progress) = Progress::from_raw(params) else { return };
        if let Some(sink) = number(&progress.token).and_then(|id| self.pending.progress(id)) {
            sink.take(&progress);
        }
    }

    /// The tool list is, or may be, another.
    pub(crate) fn lists_changed(&self) {
        self.list_changed(List::Tools);
    }

    /// Counts a change; the observer hears of the first since the list was last looked at.
    pub(crate) fn list_changed(&self, list: List) {
        if list == List::Tools {
            self.list_changes.fetch_add(1, Ordering::AcqRel);
        }
        self.changes.count(list);
        let bit = bit(list);
        if self.told.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return;
        }
        let server = &self.name;
        let event = match list {
            List::Tools => Event::ToolsChanged { server },
            List::Prompts => Event::PromptsChanged { server },
            List::Resources => Event::ResourcesChanged { server },
        };
        tell(&*self.observer, &event);
    }

    /// A list is about to be listed: the next change is news again.
    pub(crate) fn looks_at(&self, list: List) {
        self.told.fetch_and(!bit(list), Ordering::AcqRel);
    }

    fn tell(&self, question: Option<i64>, params: Option<&RawValue>, change: Change) {
        match self.sink_of(question, params) {
            Some(sink) => {
                if sink.granted().is_none() {
                    // A server that forgets to acknowledge serves all the same.
                    sink.acknowledge(&sink.filter);
                }
                sink.tell(change);
            }
            None if subscription(params).is_none() => self.sinks.tell_unnamed(&change),
            // Of a subscription that is over.
            None => {}
        }
    }

    /// The subscription that a notice names; over HTTP one without a name belongs to the request in
    /// whose answer it came.
    fn sink_of(&self, question: Option<i64>, params: Option<&RawValue>) -> Option<Arc<Sink>> {
        let id = subscription(params).or(question)?;
        self.sinks.of(id)
    }
}

fn subscription(params: Option<&RawValue>) -> Option<i64> {
    let entries = object::member(params?, "_meta")?;
    number(&RequestId::from_raw(object::member(entries, meta::SUBSCRIPTION_ID)?)?)
}

/// What is acknowledged; all of it when that is not said.
fn granted(params: &RawValue, asked: &ChangeFilter) -> ChangeFilter {
    let Some(granted) = object::member(params, "notifications") else { return asked.clone() };
    let has =
        |name: &str| object::member(granted, name).and_then(object::boolean).unwrap_or_default();
    let uris = object::member(granted, "resourceSubscriptions").and_then(object::items);
    ChangeFilter {
        tools: has("toolsListChanged"),
        prompts: has("promptsListChanged"),
        resources: has("resourcesListChanged"),
        uris: uris.into_iter().flatten().filter_map(object::text).map(Into::into).collect(),
    }
}

fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        other => other.as_stringified_number(),
    }
}

fn bit(list: List) -> u8 {
    match list {
        List::Tools => 1,
        List::Prompts => 2,
        List::Resources => 4,
    }
}
