//! The approval keys of a server, in the reference schema's spelling.

use std::collections::BTreeMap;

use plenipo_connect::ApprovalMode;

use crate::error::ConfigError;
use crate::keys;
use crate::node::{Node, Place};

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

/// Reads `tools`; gives the modes, and the keys that are known and not honoured yet.
pub(crate) fn tools(
    node: &Node,
    place: &Place<'_>,
) -> Result<(BTreeMap<String, ApprovalMode>, Vec<String>), ConfigError> {
    let (mut modes, mut not_yet) = (BTreeMap::new(), Vec::new());
    for (tool, node) in place.table(node)? {
        let place = place.member(tool);
        for (key, value) in place.table(node)? {
            let place = place.member(key);
            match key.text.as_str() {
                "approval_mode" => {
                    modes.insert(tool.text.clone(), mode(value, &place)?);
                }
                "output_token_limit" => not_yet.push("`tools.*.output_token_limit`".to_owned()),
                unknown => return Err(place.unknown_key(unknown, keys::TOOL.into_iter())),
            }
        }
    }
    not_yet.dedup();
    Ok((modes, not_yet))
}
