//! Taking a JSON object apart without changing a byte of it.
//!
//! Members come in order, duplicates included, each with its key unescaped (to compare) and as
//! written (to carry on). Values are skipped without recursion, so depth is no concern.

use std::{borrow::Cow, fmt};

use serde::de::{self, Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member of an object.
pub(crate) struct Member<'a> {
    /// The key after unescaping; what is not valid Unicode (a lone surrogate) is replaced by U+FFFD.
    pub(crate) key: Cow<'a, str>,
    /// The key as written, quotes included.
    pub(crate) raw_key: &'a RawValue,
    /// The value as written, without the whitespace around it.
    pub(crate) value: &'a RawValue,
}

/// The members of the object in `text`, in order.
pub(crate) fn members(text: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members)?;
    deserializer.end()?;
    Ok(members)
}

/// JSON text with CR and LF turned into spaces. In valid JSON they occur only outside strings.
pub(crate) fn without_line_breaks(json: &str) -> Cow<'_, str> {
    if json.contains(['\r', '\n']) {
        Cow::Owned(json.replace(['\r', '\n'], " "))
    } else {
        Cow::Borrowed(json)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let text = unescape(key.get()).map_err(de::Error::custom)?;
            members.push(Member { key: text, raw_key: key, value });
        }
        Ok(members)
    }
}

/// The text of the JSON string `raw`.
fn unescape(raw: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::Deserializer::from_str(raw).deserialize_bytes(LossyText).map(Cow::Owned),
    }
}

/// Takes a JSON string as bytes: unlike text they may hold a lone surrogate.
struct LossyText;

impl Visitor<'_> for LossyText {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_with_duplicates_and_unescaped_keys() {
        let text = r#" { "a\/b" : [1, 2] ,"a/b":-0,"\u0063":{"x" :"}"}, "\ud800":"\ud800" } "#;
        let found: Vec<_> = members(text)
            .unwrap()
            .into_iter()
            .map(|member| (member.key.into_owned(), member.raw_key.get(), member.value.get()))
            .collect();
        let expected = [
            ("a/b", r#""a\/b""#, "[1, 2]"),
            ("a/b", r#""a/b""#, "-0"),
            ("c", r#""\u0063""#, r#"{"x" :"}"}"#),
            ("\u{fffd}\u{fffd}\u{fffd}", r#""\ud800""#, r#""\ud800""#),
        ]
        .map(|(key, raw_key, value)| (key.to_owned(), raw_key, value));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_one_object_is_an_error() {
        for text in ["", "[]", "null", "{} x", "{\"a\":1,}", "{a:1}", "{1:1}"] {
            assert!(members(text).is_err(), "{text}");
        }
    }
}
