//! JSON text that can be spliced into a frame without ever splitting it.

use std::fmt;
use std::sync::OnceLock;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::encode::ObjectWriter;
use crate::error::WireError;
use crate::object::type_name;

/// What most objects take that are built here.
const FEW_BYTES: usize = 64;

/// One JSON value as text, without CR or LF anywhere.
///
/// The text is kept as given (spelling of numbers, member order, duplicates, spaces) but for one
/// normalisation: CR and LF, which JSON allows only *between* tokens, become spaces. Since a frame
/// on stdio ends at LF, a fragment can never forge one.
#[derive(Clone)]
pub struct Fragment(Text);

#[derive(Clone)]
enum Text {
    Raw(Box<RawValue>),
    /// Written here: serde_json reads it once more only if somebody wants its raw value.
    Written(String, OnceLock<Box<RawValue>>),
}

impl Fragment {
    /// Validates `text` as exactly one JSON value.
    ///
    /// # Errors
    /// [`WireError::NotJson`] when `text` is anything else.
    pub fn parse(text: &str) -> Result<Self, WireError> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self::from).map_err(WireError::NotJson)
    }

    /// Validates `text` as exactly one JSON object.
    ///
    /// # Errors
    /// [`WireError::NotJson`] or [`WireError::NotAnObject`].
    pub fn parse_object(text: &str) -> Result<Self, WireError> {
        let fragment = Self::parse(text)?;
        if fragment.is_object() {
            return Ok(fragment);
        }
        Err(WireError::NotAnObject { found: type_name(fragment.as_raw()) })
    }

    /// Copies a raw value.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Self {
        Self::from(raw.to_owned())
    }

    /// `{}`.
    #[must_use]
    pub fn object_empty() -> Self {
        Self::object(|_| {})
    }

    /// A JSON integer.
    #[must_use]
    pub fn integer(number: i64) -> Self {
        Self::from_valid(number.to_string())
    }

    /// Builds an object member by member.
    #[must_use]
    pub fn object(build: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        let mut out = Vec::with_capacity(FEW_BYTES);
        let mut object = ObjectWriter::open(&mut out);
        build(&mut object);
        object.close();
        Self::from_valid(String::from_utf8(out).unwrap_or_else(|_| "null".to_owned()))
    }

    /// A JSON string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut out = Vec::new();
        crate::encode::write_string(&mut out, text);
        Self::from_valid(String::from_utf8(out).unwrap_or_else(|_| "null".to_owned()))
    }

    /// Serialises any value.
    ///
    /// # Errors
    /// [`WireError::NotJson`] when `value` has no JSON form (a map with keys that are no strings).
    pub fn serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, WireError> {
        serde_json::value::to_raw_value(value).map(Self::from).map_err(WireError::NotJson)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Raw(raw) => raw.get(),
            Text::Written(text, _) => text,
        }
    }

    /// The text as serde_json's raw value.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        match &self.0 {
            Text::Raw(raw) => raw,
            Text::Written(text, raw) => raw.get_or_init(|| raw_of(text.clone())),
        }
    }

    /// Gives the raw value away without a copy.
    #[must_use]
    pub fn into_raw(self) -> Box<RawValue> {
        match self.0 {
            Text::Raw(raw) => raw,
            Text::Written(text, raw) => raw.into_inner().unwrap_or_else(|| raw_of(text)),
        }
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// `text` is JSON by construction.
    fn from_valid(text: String) -> Self {
        Self(Text::Written(text, OnceLock::new()))
    }
}

/// Were it no JSON, `null` is what everybody refuses.
fn raw_of(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl From<Box<RawValue>> for Fragment {
    /// Takes the value over; copies only when a line break has to be replaced.
    fn from(raw: Box<RawValue>) -> Self {
        if memchr::memchr2(b'\r', b'\n', raw.get().as_bytes()).is_none() {
            return Self(Text::Raw(raw));
        }
        Self::from_valid(raw.get().replace(['\r', '\n'], " "))
    }
}

impl Serialize for Fragment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_raw().serialize(serializer)
    }
}

impl PartialEq for Fragment {
    /// Compares the text.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Fragment {}

impl fmt::Debug for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragment({})", self.as_str())
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_spelling_of_everything_but_line_breaks() {
        let text = "{\"z\":1.10,\r\n\"a\":[1E2,-0,12345678901234567890123],\"z\":\"\\u00e9\\/\"}";
        let fragment = Fragment::parse(text).unwrap();
        assert_eq!(fragment.as_str(), text.replace("\r\n", "  "));
    }

    #[test]
    fn refuses_what_is_not_one_value() {
        for text in ["", "{", "1 2", "{}x", "\"a\nb\"", "nul", "{'a':1}", "[1,]", "\u{feff}{}"] {
            assert!(Fragment::parse(text).is_err(), "{text:?}");
        }
        assert!(matches!(
            Fragment::parse_object("[]"),
            Err(WireError::NotAnObject { found: "array" })
        ));
    }

    #[test]
    fn deep_nesting_is_no_recursion() {
        let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(Fragment::parse(&text).unwrap().as_str(), text);
    }

    #[test]
    fn builds_objects() {
        let inner = Fragment::object_empty();
        let built = Fragment::object(|object| {
            object.string("a\"", "line\nbreak");
            object.fragment("b", &inner);
            object.integer("c", -3);
            object.boolean("d", true);
        });
        assert_eq!(built.as_str(), r#"{"a\"":"line\nbreak","b":{},"c":-3,"d":true}"#);
    }
}
