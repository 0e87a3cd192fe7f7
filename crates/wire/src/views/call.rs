//! Results of `tools/call`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{boolean, items, member, non_null, select, select_spelled, text, type_name};

/// Result of `tools/call`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallResult<'a> {
    /// The blocks; empty when the server sent none.
    pub content: Vec<ContentBlock<'a>>,
    /// Any JSON value, `null` included (2026-07-28); absent when the member is absent.
    pub structured_content: Option<&'a RawValue>,
    /// The tool itself says that it failed.
    pub is_error: bool,
    /// Whether this is the end.
    pub result_type: ResultType<'a>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
}

/// `resultType` of a result (2026-07-28); absent means complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ResultType<'a> {
    /// The answer.
    #[default]
    Complete,
    /// The server wants answers to `inputRequests` first.
    InputRequired,
    /// A value this crate does not know: not to be taken as complete.
    Unknown(Cow<'a, str>),
}

/// One block of content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ContentBlock<'a> {
    /// `text`.
    Text(Cow<'a, str>),
    /// `image`: base64 data and its media type.
    Image {
        /// Base64.
        data: Cow<'a, str>,
        /// For example `image/png`; empty when absent.
        mime_type: Cow<'a, str>,
    },
    /// `audio`: base64 data and its media type.
    Audio {
        /// Base64.
        data: Cow<'a, str>,
        /// For example `audio/wav`; empty when absent.
        mime_type: Cow<'a, str>,
    },
    /// `resource`: contents embedded in the result.
    Resource {
        /// Empty when absent.
        uri: Cow<'a, str>,
        /// Empty when absent.
        mime_type: Cow<'a, str>,
        /// Contents as text.
        text: Option<Cow<'a, str>>,
        /// Contents as base64.
        blob: Option<Cow<'a, str>>,
    },
    /// `resource_link`: where something is.
    ResourceLink {
        /// Where.
        uri: Cow<'a, str>,
        /// Empty when absent.
        name: Cow<'a, str>,
    },
    /// A block of a type, or in a shape, that this crate does not know.
    Other {
        /// `type`, empty when absent.
        kind: Cow<'a, str>,
        /// The whole block.
        raw: &'a RawValue,
    },
}

impl<'a> CallResult<'a> {
    /// Reads a result, which only has to be an object.
    ///
    /// # Errors
    /// [`ViewError`] when it is not, when `content` is there and no array, or when `isError` is no boolean.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let mut result = Self::head(raw)?;
        let content = member(raw, "content").and_then(items).unwrap_or_default();
        result.content = content.into_iter().map(ContentBlock::from_raw).collect();
        Ok(result)
    }

    /// As [`from_raw`](Self::from_raw), without looking at the blocks: `content` stays empty.
    ///
    /// # Errors
    /// As [`from_raw`](Self::from_raw).
    pub fn head(raw: &'a RawValue) -> Result<Self, ViewError> {
        const VIEW: &str = "tools/call result";
        if is_one_text(raw.get()) {
            return Ok(Self::default());
        }
        let names = ["content", "structuredContent", "isError", "resultType", "_meta"];
        if let Some([Some(content), None, None, None, None]) = select_spelled(raw, names)
            && content.starts_with('[')
        {
            return Ok(Self::default());
        }
        let [content, structured_content, is_error, result_type, meta] =
            select(raw, names).ok_or_else(|| wrong(VIEW, "result", "an object", Some(raw)))?;
        if let Some(content) = content.and_then(non_null)
            && type_name(content) != "array"
        {
            return Err(wrong(VIEW, "content", "an array", Some(content)));
        }
        let is_error = match is_error.and_then(non_null) {
            None => false,
            // Taking a failure for a success is the one mistake a client must not make.
            Some(raw) => {
                boolean(raw).ok_or_else(|| wrong(VIEW, "isError", "a boolean", Some(raw)))?
            }
        };
        Ok(Self {
            content: Vec::new(),
            structured_content,
            is_error,
            result_type: ResultType::read(result_type),
            meta: meta.and_then(non_null),
        })
    }
}

/// Whether JSON is a result with one block of text and nothing else for sure, as most are. Without another quote in
/// between, what begins as that text can only end where the result does.
fn is_one_text(json: &str) -> bool {
    let text = json.strip_prefix(r#"{"content":[{"type":"text","text":""#);
    let text = text.and_then(|rest| rest.strip_suffix(r#""}]}"#));
    text.is_some_and(|text| memchr::memchr(b'"', text.as_bytes()).is_none())
}

impl<'a> ResultType<'a> {
    /// `resultType` of any result; `None` when the result is not an object.
    #[must_use]
    pub fn of(result: &'a RawValue) -> Option<Self> {
        select(result, ["resultType"]).map(|[found]| Self::read(found))
    }

    fn read(raw: Option<&'a RawValue>) -> Self {
        let Some(raw) = raw else { return Self::Complete };
        match text(raw) {
            Some(found) if found == "complete" => Self::Complete,
            Some(found) if found == "input_required" => Self::InputRequired,
            Some(found) => Self::Unknown(found),
            None => Self::Unknown(Cow::Borrowed(raw.get())),
        }
    }
}

impl CallResult<'_> {
    /// What its blocks of text say, a line break between two; nothing of other blocks.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }
}

impl<'a> ContentBlock<'a> {
    /// The text of a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reads one block; never fails, see [`ContentBlock::Other`].
    #[must_use]
    pub fn from_raw(raw: &'a RawValue) -> Self {
        let kind = member(raw, "type").and_then(text).unwrap_or_default();
        let known = match &*kind {
            "text" => member(raw, "text").and_then(text).map(Self::Text),
            "image" => media(raw).map(|(data, mime_type)| Self::Image { data, mime_type }),
            "audio" => media(raw).map(|(data, mime_type)| Self::Audio { data, mime_type }),
            "resource" => resource(raw),
            "resource_link" => link(raw),
            _ => None,
        };
        known.unwrap_or(Self::Other { kind, raw })
    }
}

fn media(raw: &RawValue) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let [data, mime_type] = select(raw, ["data", "mimeType"])?;
    Some((data.and_then(text)?, mime_type.and_then(text).unwrap_or_default()))
}

fn resource(raw: &RawValue) -> Option<ContentBlock<'_>> {
    let [uri, mime_type, inner, blob] =
        select(member(raw, "resource")?, ["uri", "mimeType", "text", "blob"])?;
    Some(ContentBlock::Resource {
        uri: uri.and_then(text).unwrap_or_default(),
        mime_type: mime_type.and_then(text).unwrap_or_default(),
        text: inner.and_then(text),
        blob: blob.and_then(text),
    })
}

fn link(raw: &RawValue) -> Option<ContentBlock<'_>> {
    let [uri, name] = select(raw, ["uri", "name"])?;
    Some(ContentBlock::ResourceLink {
        uri: uri.and_then(text)?,
        name: name.and_then(text).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn structured_content_null_array_scalar() {
        for value in ["null", "[1]", "1.10", "{\"a\":1}"] {
            let raw = Fragment::parse(&format!("{{\"structuredContent\":{value}}}")).unwrap();
            let result = CallResult::from_raw(raw.as_raw()).unwrap();
            assert_eq!(result.structured_content.unwrap().get(), value);
            assert!(!result.is_error && result.content.is_empty());
        }
    }

    #[test]
    fn a_result_of_one_text_is_told_from_one_that_says_more() {
        for (text, is_one) in [
            (r#"{"content":[{"type":"text","text":"a b"}]}"#, true),
            (r#"{"content":[{"type":"text","text":""}]}"#, true),
            (r#"{"content":[{"type":"text","text":"\\"}]}"#, true),
            (r#"{"content":[{"type":"text","text":"\""}]}"#, false),
            (r#"{"content":[{"type":"text","text":"a"}],"isError":true}"#, false),
            (
                r#"{"content":[{"type":"text","text":"a"}],"isError":true,"content":[{"type":"text","text":"b"}]}"#,
                false,
            ),
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, false),
        ] {
            let raw = Fragment::parse(text).unwrap();
            assert_eq!(is_one_text(raw.as_str()), is_one, "{text}");
            let result = CallResult::from_raw(raw.as_raw()).unwrap();
            assert_eq!(result.is_error, text.contains("isError"), "{text}");
        }
    }

    #[test]
    fn a_result_of_the_wrong_shape_is_no_success() {
        for (text, member) in [
            (r#"{"content":"str"}"#, "content"),
            (r#"{"content":{}}"#, "content"),
            (r#"{"content":[],"isError":"true"}"#, "isError"),
            (r#"{"isError":1}"#, "isError"),
            ("[]", "result"),
        ] {
            let raw = Fragment::parse(text).unwrap();
            let error = CallResult::head(raw.as_raw()).unwrap_err().to_string();
            assert!(error.contains(member), "{text}: {error}");
        }
        let odd = Fragment::parse(r#"{"content":null,"isError":null}"#).unwrap();
        assert!(!CallResult::from_raw(odd.as_raw()).unwrap().is_error);
    }

    #[test]
    fn missing_result_type_is_complete_and_unknown_is_not() {
        let read = |text: &str| {
            let raw = Fragment::parse(text).unwrap();
            format!("{:?}", ResultType::of(raw.as_raw()).unwrap())
        };
        assert_eq!(read("{}"), "Complete");
        assert_eq!(read(r#"{"resultType":"complete"}"#), "Complete");
        assert_eq!(read(r#"{"resultType":"input_required"}"#), "InputRequired");
        assert_eq!(read(r#"{"resultType":"later"}"#), "Unknown(\"later\")");
        assert_eq!(read(r#"{"resultType":null}"#), "Unknown(\"null\")");
    }

    #[test]
    fn an_odd_block_stands_alone() {
        let raw = Fragment::parse(
            r#"{"content":[{"type":"text","text":"a\n"},{"type":"text"},{"type":"hologram"},3,
            {"type":"image","data":"AA=="},{"type":"resource","resource":{"uri":"u:","text":"t"}},
            {"type":"resource_link","uri":"u:1","name":"n"}],"messages":[],"isError":true}"#,
        )
        .unwrap();
        let result = CallResult::from_raw(raw.as_raw()).unwrap();
        assert!(result.is_error);
        assert!(matches!(&result.content[0], ContentBlock::Text(text) if text == "a\n"));
        assert!(matches!(&result.content[1], ContentBlock::Other { kind, .. } if kind == "text"));
        assert!(
            matches!(&result.content[2], ContentBlock::Other { kind, .. } if kind == "hologram")
        );
        assert!(matches!(&result.content[3], ContentBlock::Other { kind, .. } if kind.is_empty()));
        assert!(matches!(&result.content[4], ContentBlock::Image { .. }));
        assert!(matches!(&result.content[5], ContentBlock::Resource { text: Some(_), .. }));
        assert!(matches!(&result.content[6], ContentBlock::ResourceLink { .. }));
        assert_eq!(result.text(), "a\n", "of blocks of text alone");
    }

    #[test]
    fn the_text_of_a_result_is_that_of_its_blocks_in_order() {
        let raw = r#"{"content":[{"type":"text","text":"\u00e9"},{"type":"image","data":""},{"type":"text","text":"b"}]}"#;
        let raw = Fragment::parse(raw).unwrap();
        assert_eq!(CallResult::from_raw(raw.as_raw()).unwrap().text(), "\u{e9}\nb");
        assert_eq!(CallResult::default().text(), "");
    }
}
