//! One page of a list, whatever is listed.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{integer, items, non_null, select, text};

/// A page of `resources/list`, `prompts/list` and their like.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<'a> {
    /// What is listed, each as it came.
    pub items: Vec<&'a RawValue>,
    /// Where the next page starts; an empty string is a cursor.
    pub next_cursor: Option<Cow<'a, str>>,
    /// How long the page is fresh, in milliseconds; absent or negative is 0.
    pub ttl_ms: u64,
}

impl<'a> Page<'a> {
    /// Reads a page whose items are in the member `member`.
    ///
    /// # Errors
    /// [`ViewError`] when there is no such array or `nextCursor` is not a string.
    pub fn from_raw(raw: &'a RawValue, member: &'static str) -> Result<Self, ViewError> {
        let what = "page of a list";
        let [found, next_cursor, ttl] = select(raw, [member, "nextCursor", "ttlMs"])
            .ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        let items = found.and_then(items).ok_or_else(|| wrong(what, member, "an array", found))?;
        let next_cursor = match next_cursor.and_then(non_null) {
            None => None,
            Some(cursor) => Some(
                text(cursor).ok_or_else(|| wrong(what, "nextCursor", "a string", Some(cursor)))?,
            ),
        };
        let ttl_ms = ttl.and_then(integer).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(0);
        Ok(Self { items, next_cursor, ttl_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn a_page_is_read_and_an_empty_cursor_is_one() {
        let raw = Fragment::parse(r#"{"x":[1,{"a":1.10}],"nextCursor":"","ttlMs":5.0}"#).unwrap();
        let page = Page::from_raw(raw.as_raw(), "x").unwrap();
        assert_eq!(page.items[1].get(), r#"{"a":1.10}"#);
        assert_eq!((page.next_cursor.as_deref(), page.ttl_ms), (Some(""), 5));
        let last = Fragment::parse(r#"{"x":[],"nextCursor":null,"ttlMs":-1}"#).unwrap();
        let last = Page::from_raw(last.as_raw(), "x").unwrap();
        assert_eq!((last.next_cursor, last.ttl_ms), (None, 0));
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        for text in ["[]", "{}", r#"{"x":{}}"#, r#"{"x":[],"nextCursor":7}"#] {
            assert!(
                Page::from_raw(Fragment::parse(text).unwrap().as_raw(), "x").is_err(),
                "{text}"
            );
        }
    }
}
