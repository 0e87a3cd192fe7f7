//! The sandbox state: opaque JSON text, kept byte for byte.

use std::{fmt, hash, sync::Arc};

use serde_json::value::RawValue;

use crate::{AuthorityDigest, JsonKind, StateError, meta};

/// A sandbox policy as its author wrote it: the original text of one JSON object.
///
/// Nothing in it is interpreted here. Two states are equal when their texts are. Cloning is cheap.
#[derive(Clone)]
pub struct SandboxState(Arc<RawValue>);

impl SandboxState {
    /// The longest text taken, in bytes (1 MiB).
    pub const MAXIMUM_BYTES: usize = 1 << 20;

    /// Captures `text`: any one JSON object, however deeply nested. Whitespace around it is dropped
    /// and CR and LF outside strings become spaces; every other byte is kept.
    ///
    /// # Errors
    ///
    /// [`StateError`] when the text is longer than [`MAXIMUM_BYTES`](Self::MAXIMUM_BYTES), is not
    /// valid JSON, or is not an object.
    pub fn capture(text: &str) -> Result<Self, StateError> {
        if text.len() > Self::MAXIMUM_BYTES {
            return Err(StateError::TooLong { bytes: text.len(), maximum: Self::MAXIMUM_BYTES });
        }
        let not_json = |source| StateError::NotJson { source };
        let value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        match JsonKind::of(value.get()) {
            JsonKind::Object => {}
            found => return Err(StateError::NotAnObject { found }),
        }
        let text = meta::without_line_breaks(value.get()).into_owned();
        Ok(Self(RawValue::from_string(text).map_err(not_json)?.into()))
    }

    /// The text that goes on the wire and to the launcher.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text as a JSON value without CR or LF.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// SHA-256 of the text, for logs.
    pub fn digest(&self) -> AuthorityDigest {
        AuthorityDigest::of(self.as_str().as_bytes())
    }
}

impl PartialEq for SandboxState {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SandboxState {}

impl hash::Hash for SandboxState {
    fn hash<H: hash::Hasher>(&self, hasher: &mut H) {
        self.as_str().hash(hasher);
    }
}

impl fmt::Debug for SandboxState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SandboxState").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_keeps_every_byte_of_its_text() {
        let text =
            r#"{"big":123456789012345678901234567890,"e":1E+07,"z":-0,"a":1,"a":"\u0041\/"}"#;
        assert_eq!(SandboxState::capture(text).unwrap().as_str(), text);
    }

    #[test]
    fn line_breaks_outside_strings_become_spaces_and_escapes_stay() {
        let state = SandboxState::capture("\n{\r\n\t\"a\\n\":\n\"\\r\\n\"\r}\n ").unwrap();
        assert_eq!(state.as_str(), "{  \t\"a\\n\": \"\\r\\n\" }");
    }

    #[test]
    fn nesting_is_not_limited_by_the_stack() {
        let deep = 500_000;
        let text = format!(r#"{{"a":{}{}}}"#, "[".repeat(deep), "]".repeat(deep));
        assert_eq!(SandboxState::capture(&text).unwrap().as_str(), text);
    }

    #[test]
    fn a_state_is_bounded_and_says_so() {
        let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(SandboxState::MAXIMUM_BYTES));
        let error = SandboxState::capture(&text).unwrap_err();
        assert!(matches!(error, StateError::TooLong { bytes, .. } if bytes == text.len()));
    }

    #[test]
    fn what_is_not_one_object_is_refused() {
        for text in ["", "null", "[]", "\"{}\"", "1", "{} {}", "{", "{\"a\":\"\n\"}", "\u{feff}{}"]
        {
            assert!(SandboxState::capture(text).is_err(), "{text:?}");
        }
    }
}
