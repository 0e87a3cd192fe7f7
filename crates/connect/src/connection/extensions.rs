//! Extensions that a server offers (revision 2026-07-28, "Extensions").

use plenipo_authority::{MetaKeyClass, classify_meta_key};
use plenipo_wire::{RawValue, object};

use super::Connection;

impl Connection {
    /// The settings of the extension `id`, for example `io.modelcontextprotocol/tasks`, where the
    /// server offers it. `None`: do without, as the core protocol has it, or refuse what needs it.
    ///
    /// An id without a prefix is none, and settings that are no object are not an offer.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<&RawValue> {
        let is_id = id.contains('/') && classify_meta_key(id) != MetaKeyClass::Malformed;
        let extensions = object::member(self.capabilities().as_raw(), "extensions")?;
        object::member(extensions, id).filter(|settings| is_id && settings.get().starts_with('{'))
    }
}
