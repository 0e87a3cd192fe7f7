//! Request ids: read tolerantly, echoed exactly.

use std::fmt;

use serde_json::value::RawValue;

use crate::encode::{write_integer, write_string};
use crate::fragment::Fragment;
use crate::object::text;

/// A JSON-RPC request id (JSON-RPC 2.0 §4: string or number; MCP forbids `null`).
///
/// Writing an id that was read gives the peer's own spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestId {
    /// An integer in plain spelling.
    Number(i64),
    /// A string in the spelling this crate writes itself.
    Text(String),
    /// A number or string in any other spelling (`1.0`, `1e3`, 64 digits, `"a\/b"`), kept as text.
    Exact(Fragment),
}

impl RequestId {
    /// Reads an id; `None` when the value is neither a string nor a number.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        let source = raw.get();
        match source.as_bytes().first()? {
            b'"' => {
                let decoded = text(raw)?.into_owned();
                let mut again = Vec::with_capacity(source.len());
                write_string(&mut again, &decoded);
                if again == source.as_bytes() {
                    return Some(Self::Text(decoded));
                }
                Some(Self::Exact(Fragment::from_raw(raw)))
            }
            b'-' | b'0'..=b'9' => match source.parse::<i64>() {
                Ok(number) if source != "-0" => Some(Self::Number(number)),
                _ => Some(Self::Exact(Fragment::from_raw(raw))),
            },
            _ => None,
        }
    }

    /// The integer this id stands for when the peer turned a number into a string (`"7"` for `7`), or wrote it with a
    /// fraction of nothing (`7.0`), as languages do that know one kind of number.
    #[must_use]
    pub fn as_stringified_number(&self) -> Option<i64> {
        match self {
            Self::Text(text) => {
                text.parse::<i64>().ok().filter(|number| number.to_string() == *text)
            }
            Self::Exact(fragment) => {
                let (whole, fraction) = fragment.as_str().split_once('.')?;
                let is_whole = fraction.bytes().all(|digit| digit == b'0');
                whole.parse::<i64>().ok().filter(|number| is_whole && number.to_string() == whole)
            }
            Self::Number(_) => None,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => write_integer(out, *number),
            Self::Text(text) => write_string(out, text),
            Self::Exact(fragment) => out.extend_from_slice(fragment.as_str().as_bytes()),
        }
    }

    /// The id as JSON.
    #[must_use]
    pub fn to_fragment(&self) -> Fragment {
        match self {
            Self::Number(number) => Fragment::integer(*number),
            Self::Text(text) => Fragment::string(text),
            Self::Exact(fragment) => fragment.clone(),
        }
    }
}

impl std::hash::Hash for RequestId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Number(number) => number.hash(state),
            Self::Text(text) => text.hash(state),
            Self::Exact(fragment) => fragment.as_str().hash(state),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for RequestId {
    /// The JSON spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_fragment().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_every_spelling() {
        for text in ["7", "-3", "-0", "1.0", "1e3", "99999999999999999999", r#""7""#, r#""a\/b""#] {
            let raw = Fragment::parse(text).unwrap();
            let id = RequestId::from_raw(raw.as_raw()).unwrap();
            assert_eq!(id.to_string(), text);
        }
        for text in ["null", "true", "{}", "[]"] {
            assert_eq!(RequestId::from_raw(Fragment::parse(text).unwrap().as_raw()), None);
        }
    }

    #[test]
    fn only_a_canonical_number_string_stands_for_a_number() {
        let number = |text: &str| RequestId::Text(text.into()).as_stringified_number();
        assert_eq!(number("7"), Some(7));
        for text in ["07", "+7", " 7", "7.0", "", "x"] {
            assert_eq!(number(text), None, "{text:?}");
        }
        let exact = |text: &str| {
            let raw = Fragment::parse(text).unwrap();
            RequestId::from_raw(raw.as_raw()).unwrap().as_stringified_number()
        };
        assert_eq!([exact("7.0"), exact("-3.000")], [Some(7), Some(-3)]);
        for text in ["7.5", "-0.0", "7.0e1", "7e0", "99999999999999999999.0", r#""7.0""#] {
            assert_eq!(exact(text), None, "{text}");
        }
    }
}
