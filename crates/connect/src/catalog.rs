//! The tools of a server, as listed at one moment.
//!
//! Bounds: those of the connection's options, and cursors of 64 KiB. A tool that is malformed or a duplicate is
//! dropped alone, with its reason.

mod list;
mod schemas;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use plenipo_schema::SchemaFault;
use plenipo_wire::views::{CallResult, ToolView};
use plenipo_wire::{Fragment, ViewError};

pub(crate) use list::{ListLimits, Listed, list, silence};

use crate::text::nearest;
use schemas::ToolSchemas;

/// The tools of a server at one revision. Cheap to share.
#[derive(Debug)]
pub struct Catalog {
    revision: u64,
    tools: Vec<Tool>,
    index: HashMap<Arc<str>, usize>,
    dropped: Vec<DroppedTool>,
    filter: ToolFilter,
    /// Beside `tools`; each comes to be with the tool's first call.
    schemas: Vec<OnceLock<Box<ToolSchemas>>>,
}

/// One tool: its name and its whole text as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    name: Arc<str>,
    raw: Fragment,
}

/// A tool that was listed and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedTool {
    /// Its name, when that could be read.
    pub name: Option<String>,
    /// Why.
    pub reason: String,
}

/// Which tools exist for a host, by the server's own spelling: those in `enabled_tools` if that is
/// set, without those in `disabled_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    enabled: Option<BTreeSet<String>>,
    disabled: BTreeSet<String>,
}

/// What a look-up finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup<'a> {
    /// A tool that may be called.
    Found(&'a Tool),
    /// A tool that the filter switches off.
    Disabled,
    /// A tool that was dropped from the list.
    Dropped(&'a DroppedTool),
    /// Nothing.
    Missing {
        /// The callable tool with the most similar name.
        nearest: Option<&'a str>,
    },
}

impl Catalog {
    pub(crate) fn new(
        revision: u64,
        listed: Vec<Tool>,
        mut dropped: Vec<DroppedTool>,
        filter: ToolFilter,
    ) -> Self {
        let mut tools: Vec<Tool> = Vec::with_capacity(listed.len());
        let mut index = HashMap::with_capacity(listed.len());
        for tool in listed {
            if index.contains_key(&tool.name) {
                let name = Some(tool.name.to_string());
                dropped.push(DroppedTool { name, reason: "its name is listed twice".to_owned() });
                continue;
            }
            index.insert(Arc::clone(&tool.name), tools.len());
            tools.push(tool);
        }
        let schemas = tools.iter().map(|_| OnceLock::new()).collect();
        Self { revision, tools, index, dropped, filter, schemas }
    }

    /// Grows with every listing on a connection, from 1; 0 when it was not listed on this one.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the same tools can be called, in the same order and with the same texts.
    #[must_use]
    pub fn has_same_tools(&self, other: &Self) -> bool {
        self.tools().eq(other.tools())
    }

    /// It was not listed on this connection but remembered from an earlier one.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        self.revision == 0
    }

    /// The tools that may be called, in the server's order.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| self.filter.allows(&tool.name))
    }

    /// The tools that may be called, each with its place for [`at`](Self::at).
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, &Tool)> {
        self.tools.iter().enumerate().filter(|(_, tool)| self.filter.allows(&tool.name))
    }

    pub(crate) fn at(&self, place: usize) -> Option<&Tool> {
        self.tools.get(place)
    }

    /// Tools that were listed and cannot be used.
    #[must_use]
    pub fn dropped(&self) -> &[DroppedTool] {
        &self.dropped
    }

    /// Checks arguments (none: `{}`) against a tool's input schema; a tool that is not there takes
    /// everything.
    ///
    /// # Errors
    /// [`SchemaFault`]: they do not match, or why that is not known.
    pub fn check_arguments(
        &self,
        tool: &str,
        arguments: Option<&Fragment>,
    ) -> Result<(), SchemaFault> {
        match self.index.get(tool) {
            Some(place) => self.check_arguments_at(*place, arguments),
            None => Ok(()),
        }
    }

    /// [`check_arguments`](Self::check_arguments) of the tool at a place.
    pub(crate) fn check_arguments_at(
        &self,
        place: usize,
        arguments: Option<&Fragment>,
    ) -> Result<(), SchemaFault> {
        match self.schemas(place) {
            Some((schemas, tool)) => schemas.check_arguments(tool, arguments),
            None => Ok(()),
        }
    }

    /// Checks a result's `structuredContent` against a tool's output schema, if it has one. The
    /// result of a tool that failed passes.
    ///
    /// # Errors
    /// [`SchemaFault`]: it does not match, or why that is not known. The result stays a result.
    pub fn check_result(&self, tool: &str, result: &CallResult<'_>) -> Result<(), SchemaFault> {
        match self.index.get(tool) {
            Some(place) => self.check_result_at(*place, result),
            None => Ok(()),
        }
    }

    /// [`check_result`](Self::check_result) of the tool at a place.
    pub(crate) fn check_result_at(
        &self,
        place: usize,
        result: &CallResult<'_>,
    ) -> Result<(), SchemaFault> {
        match self.schemas(place) {
            Some((schemas, tool)) => schemas.check_result(tool, result),
            None => Ok(()),
        }
    }

    /// Whether there is anything to check results by.
    pub(crate) fn has_output_schema(&self, place: usize) -> bool {
        self.schemas(place).is_some_and(|(schemas, tool)| schemas.has_output(tool))
    }

    /// A tool that may be called, and its place for [`at`](Self::at).
    pub(crate) fn callable(&self, name: &str) -> Option<(usize, &Tool)> {
        let place = *self.index.get(name)?;
        let tool = self.tools.get(place)?;
        self.filter.allows(name).then_some((place, tool))
    }

    fn schemas(&self, place: usize) -> Option<(&ToolSchemas, &Tool)> {
        let schemas = self.schemas.get(place)?.get_or_init(Box::default);
        Some((schemas, self.tools.get(place)?))
    }

    /// Looks a tool up by the server's own spelling.
    #[must_use]
    pub fn find(&self, name: &str) -> Lookup<'_> {
        if let Some(tool) = self.index.get(name).and_then(|index| self.tools.get(*index)) {
            return match self.filter.allows(name) {
                true => Lookup::Found(tool),
                false => Lookup::Disabled,
            };
        }
        if let Some(dropped) = self.dropped.iter().find(|tool| tool.name.as_deref() == Some(name)) {
            return Lookup::Dropped(dropped);
        }
        Lookup::Missing { nearest: nearest(name, self.tools().map(Tool::name)) }
    }
}

impl Tool {
    pub(crate) fn from_view(view: &ToolView<'_>) -> Self {
        Self { name: Arc::from(&*view.name), raw: Fragment::from_raw(view.raw) }
    }

    /// As the server spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// The whole entry, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &Fragment {
        &self.raw
    }

    /// A view of the entry.
    ///
    /// # Errors
    /// None in practice: the entry was read once before it came into the catalog.
    pub fn view(&self) -> Result<ToolView<'_>, ViewError> {
        ToolView::from_raw(self.raw.as_raw())
    }
}

impl ToolFilter {
    /// `enabled`: `None` allows every tool.
    #[must_use]
    pub fn new(
        enabled: Option<impl IntoIterator<Item = String>>,
        disabled: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            enabled: enabled.map(|names| names.into_iter().collect()),
            disabled: disabled.into_iter().collect(),
        }
    }

    /// Whether a tool of this name may be called.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let enabled = self.enabled.as_ref().is_none_or(|names| names.contains(name));
        enabled && !self.disabled.contains(name)
    }
}

#[cfg(test)]
impl Tool {
    /// One without arguments.
    pub(crate) fn fake(name: &str) -> Self {
        let raw = Fragment::object(|tool| {
            tool.string("name", name);
            tool.object("inputSchema", |_| {});
        });
        Self { name: Arc::from(name), raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool::fake(name)
    }

    #[test]
    fn look_up_knows_why_a_tool_is_not_there() {
        let bad = DroppedTool { name: Some("bad".into()), reason: "no schema".into() };
        let filter = ToolFilter::new(None::<Vec<String>>, ["off".to_owned()]);
        let listed = vec![tool("read_file"), tool("off"), tool("read_file")];
        let catalog = Catalog::new(3, listed, vec![bad], filter);
        assert!(matches!(catalog.find("read_file"), Lookup::Found(found) if found.view().is_ok()));
        assert_eq!(catalog.find("off"), Lookup::Disabled);
        assert!(matches!(catalog.find("bad"), Lookup::Dropped(_)));
        assert_eq!(catalog.find("raed_file"), Lookup::Missing { nearest: Some("read_file") });
        assert_eq!(catalog.find("zzz"), Lookup::Missing { nearest: None });
        assert_eq!(catalog.tools().map(Tool::name).collect::<Vec<_>>(), ["read_file"]);
        assert_eq!(catalog.dropped().len(), 2);
    }

    #[test]
    fn the_deny_list_wins_over_the_allow_list() {
        let names = || ["a".to_owned(), "b".to_owned()];
        let filter = ToolFilter::new(Some(names()), ["b".to_owned()]);
        assert!(filter.allows("a"));
        assert!(!filter.allows("b") && !filter.allows("c") && !filter.allows("A"));
    }
}
