//! The approval keys of a server, in the reference schema's spelling, and what else is said of single tools.

use std::collections::BTreeMap;
use std::time::Duration;

use plenipo_connect::ApprovalMode;

use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place};
use crate::scalar::seconds;

/// What a server's keys say about approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalSettings {
    /// `default_tools_approval_mode`
    pub default_mode: Option<ApprovalMode>,
    /// `tools.NAME.approval_mode`
    pub tool_modes: BTreeMap<String, ApprovalMode>,
    /// `trust_annotations`: the server's hints about its tools are taken for true.
    pub trust_annotations: bool,
}

impl ApprovalSettings {
    /// Whether a mode is set.
    #[must_use]
    pub fn sets_a_mode(&self) -> bool {
        self.default_mode.is_some() || !self.tool_modes.is_empty()
    }
}

pub(crate) fn mode(node: &Node, place: &Place<'_>) -> Result<ApprovalMode, ConfigError> {
    ApprovalMode::from_name(&place.string(node)?)
        .ok_or_else(|| place.fault("should be `auto`, `prompt`, `writes` or `approve`"))
}

/// What `tools` says.
#[derive(Default)]
pub(crate) struct Tools {
    pub(crate) modes: BTreeMap<String, ApprovalMode>,
    pub(crate) timeouts: BTreeMap<String, Duration>,
    /// Keys that are known and not honoured yet.
    pub(crate) not_yet: Vec<String>,
}

/// Reads `tools`.
pub(crate) fn tools(node: &Node, place: &Place<'_>) -> Result<Tools, ConfigError> {
    let mut tools = Tools::default();
    for (tool, node) in place.table(node)? {
        let place = place.member(tool);
        place.note(
            place.each(node, |key, value, place| tools.take(&tool.text, (key, value), place)),
        );
    }
    tools.not_yet.dedup();
    Ok(tools)
}

impl Tools {
    fn take(
        &mut self,
        tool: &str,
        (key, value): (&str, &Node),
        place: &Place<'_>,
    ) -> Result<(), ConfigError> {
        match key {
            "approval_mode" => {
                self.modes.insert(tool.to_owned(), mode(value, place)?);
            }
            "tool_timeout_sec" => {
                self.timeouts.insert(tool.to_owned(), seconds(value, place)?);
            }
            "output_token_limit" => {
                self.not_yet.push("`tools.*.output_token_limit`".to_owned());
            }
            unknown => return Err(place.unknown_key(unknown, keys::TOOL.into_iter())),
        }
        Ok(())
    }
}
