//! What goes into the `_meta` of one call, entry by entry, before it is written anywhere.

use serde_json::value::RawValue;

use crate::{AttachError, LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY, SandboxState, meta};

/// The entries of one `params._meta`, in the order in which they are sent. Made by
/// [`CapturedAuthority::attachment`](crate::CapturedAuthority::attachment).
#[derive(Debug)]
pub struct Attachment<'a> {
    pub(crate) carried: Vec<(&'a RawValue, &'a RawValue)>,
    pub(crate) extra: &'a [(&'a str, &'a RawValue)],
    pub(crate) state: Option<&'a SandboxState>,
    pub(crate) launcher: Option<Box<RawValue>>,
}

/// The name of one entry.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever writes entries has to write each kind")]
pub enum EntryName<'a> {
    /// A JSON string as the caller spelled it, quotes included.
    Written(&'a RawValue),
    /// A name as plain text.
    Plain(&'a str),
}

impl Attachment<'_> {
    /// The entries. A value may hold line breaks between its tokens; the state's never does.
    pub fn entries(&self) -> impl Iterator<Item = (EntryName<'_>, &RawValue)> {
        let carried = self.carried.iter().map(|(key, value)| (EntryName::Written(key), *value));
        let extra = self.extra.iter().map(|(key, value)| (EntryName::Plain(key), *value));
        let state = self.state.into_iter().flat_map(|state| {
            [STATE_KEY, STATE_ALIAS_KEY].map(|key| (EntryName::Plain(key), state.as_raw()))
        });
        let launcher = self.launcher.iter();
        let launcher = launcher.map(|value| (EntryName::Plain(LAUNCHER_KEY), &**value));
        carried.chain(extra).chain(state).chain(launcher)
    }

    /// True when there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }

    /// The entries as one object on one line.
    pub(crate) fn to_raw(&self) -> Result<Box<RawValue>, AttachError> {
        let mut text = String::from("{");
        for (index, (name, value)) in self.entries().enumerate() {
            if index > 0 {
                text.push(',');
            }
            match name {
                EntryName::Written(key) => text.push_str(key.get()),
                EntryName::Plain(key) => text.push_str(&serde_json::Value::from(key).to_string()),
            }
            text.push(':');
            text.push_str(&meta::without_line_breaks(value.get()));
        }
        text.push('}');
        RawValue::from_string(text).map_err(|source| AttachError::CallerNotJson { source })
    }
}
