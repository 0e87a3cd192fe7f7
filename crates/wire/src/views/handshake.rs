//! What a server says about itself.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{integer, items, member, select, text};
use crate::protocol::meta;

/// Result of `initialize`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InitializeResult<'a> {
    /// The revision the server chose.
    pub protocol_version: Cow<'a, str>,
    /// Raw; absent when the server sent none.
    pub capabilities: Option<&'a RawValue>,
    /// Self-asserted: for display only.
    pub server_info: Implementation<'a>,
    /// How to use the server, written for a model.
    pub instructions: Option<Cow<'a, str>>,
}

/// Result of `server/discover`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiscoverResult<'a> {
    /// Revisions the server speaks.
    pub supported_versions: Vec<Cow<'a, str>>,
    /// Raw; absent when the server sent none.
    pub capabilities: Option<&'a RawValue>,
    /// Self-asserted: for display only.
    pub server_info: Implementation<'a>,
    /// How to use the server, written for a model.
    pub instructions: Option<Cow<'a, str>>,
    /// How long the answer is fresh, in milliseconds; absent or negative is 0.
    pub ttl_ms: u64,
}

/// Name and version that a peer gives itself.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Implementation<'a> {
    /// Empty when absent.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Empty when absent.
    pub version: Cow<'a, str>,
}

impl<'a> InitializeResult<'a> {
    /// Reads the result; only `protocolVersion` has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when the result is not an object or has no `protocolVersion` string.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "initialize result";
        let names = ["protocolVersion", "capabilities", "serverInfo", "instructions"];
        let [version, capabilities, server_info, instructions] =
            select(raw, names).ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        Ok(Self {
            protocol_version: version
                .and_then(text)
                .ok_or_else(|| wrong(what, "protocolVersion", "a string", version))?,
            capabilities,
            server_info: Implementation::read(server_info),
            instructions: instructions.and_then(text),
        })
    }
}

impl<'a> DiscoverResult<'a> {
    /// Reads the result; only `supportedVersions` has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when the result is not an object or has no `supportedVersions` array.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "discover result";
        let names = ["supportedVersions", "capabilities", "_meta", "instructions", "ttlMs"];
        let [versions, capabilities, meta, instructions, ttl] =
            select(raw, names).ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        let versions = versions
            .and_then(items)
            .ok_or_else(|| wrong(what, "supportedVersions", "an array", versions))?;
        Ok(Self {
            supported_versions: versions.into_iter().filter_map(text).collect(),
            capabilities,
            server_info: Implementation::read(
                meta.and_then(|meta| member(meta, meta::SERVER_INFO)),
            ),
            instructions: instructions.and_then(text),
            ttl_ms: ttl.and_then(integer).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(0),
        })
    }
}

impl<'a> Implementation<'a> {
    fn read(raw: Option<&'a RawValue>) -> Self {
        let found = raw.and_then(|raw| select(raw, ["name", "title", "version"]));
        let [name, title, version] = found.unwrap_or([None, None, None]);
        Self {
            name: name.and_then(text).unwrap_or_default(),
            title: title.and_then(text),
            version: version.and_then(text).unwrap_or_default(),
        }
    }
}
