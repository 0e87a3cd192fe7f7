//! Resources, templates of them, and their contents.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{integer, items, non_null, select, text};

/// One resource of `resources/list`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResourceView<'a> {
    /// What `resources/read` takes.
    pub uri: Cow<'a, str>,
    /// Empty when absent.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// For example `text/plain`.
    pub mime_type: Option<Cow<'a, str>>,
    /// Bytes of the raw contents, when known.
    pub size: Option<u64>,
    /// Untrusted hints, raw.
    pub annotations: Option<&'a RawValue>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
    /// The whole resource, unknown members included.
    pub raw: &'a RawValue,
}

/// One template of `resources/templates/list`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResourceTemplateView<'a> {
    /// An RFC 6570 template.
    pub uri_template: Cow<'a, str>,
    /// Empty when absent.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// Of every resource that matches.
    pub mime_type: Option<Cow<'a, str>>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
    /// The whole template, unknown members included.
    pub raw: &'a RawValue,
}

/// Result of `resources/read`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadResult<'a> {
    /// The resource, or several where the URI names a collection.
    pub contents: Vec<ResourceContents<'a>>,
    /// How long they are fresh, in milliseconds; absent or negative is 0.
    pub ttl_ms: u64,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
}

/// Contents of one resource.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResourceContents<'a> {
    /// Empty when absent.
    pub uri: Cow<'a, str>,
    /// For example `text/plain`.
    pub mime_type: Option<Cow<'a, str>>,
    /// As text.
    pub text: Option<Cow<'a, str>>,
    /// As base64.
    pub blob: Option<Cow<'a, str>>,
    /// The whole entry, unknown members included.
    pub raw: &'a RawValue,
}

impl<'a> ResourceView<'a> {
    /// Reads one resource; only `uri` has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when it is not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "resource";
        let names =
            ["uri", "name", "title", "description", "mimeType", "size", "annotations", "_meta"];
        let [uri, name, title, description, mime_type, size, annotations, meta] =
            select(raw, names).ok_or_else(|| wrong(what, "resource", "an object", Some(raw)))?;
        Ok(Self {
            uri: uri.and_then(text).ok_or_else(|| wrong(what, "uri", "a string", uri))?,
            name: name.and_then(text).unwrap_or_default(),
            title: title.and_then(text),
            description: description.and_then(text),
            mime_type: mime_type.and_then(text),
            size: size.and_then(integer).and_then(|size| u64::try_from(size).ok()),
            annotations: annotations.and_then(non_null),
            meta: meta.and_then(non_null),
            raw,
        })
    }
}

impl<'a> ResourceTemplateView<'a> {
    /// Reads one template; only `uriTemplate` has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when it is not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "resource template";
        let names = ["uriTemplate", "name", "title", "description", "mimeType", "_meta"];
        let [template, name, title, description, mime_type, meta] =
            select(raw, names).ok_or_else(|| wrong(what, "template", "an object", Some(raw)))?;
        let uri_template = template.and_then(text);
        Ok(Self {
            uri_template: uri_template
                .ok_or_else(|| wrong(what, "uriTemplate", "a string", template))?,
            name: name.and_then(text).unwrap_or_default(),
            title: title.and_then(text),
            description: description.and_then(text),
            mime_type: mime_type.and_then(text),
            meta: meta.and_then(non_null),
            raw,
        })
    }
}

impl<'a> ReadResult<'a> {
    /// Reads the result; each entry of `contents` is judged by itself.
    ///
    /// # Errors
    /// [`ViewError`] when there is no `contents` array.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "resources/read result";
        let [contents, ttl, meta] = select(raw, ["contents", "ttlMs", "_meta"])
            .ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        let contents = contents
            .and_then(items)
            .ok_or_else(|| wrong(what, "contents", "an array", contents))?;
        Ok(Self {
            contents: contents.into_iter().map(ResourceContents::read).collect(),
            ttl_ms: ttl.and_then(integer).and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(0),
            meta: meta.and_then(non_null),
        })
    }
}

impl<'a> ResourceContents<'a> {
    fn read(raw: &'a RawValue) -> Self {
        let found = select(raw, ["uri", "mimeType", "text", "blob"]).unwrap_or_default();
        let [uri, mime_type, inner, blob] = found.map(|member| member.and_then(text));
        Self { uri: uri.unwrap_or_default(), mime_type, text: inner, blob, raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn a_resource_keeps_what_is_unknown_and_needs_only_a_uri() {
        let raw = Fragment::parse(r#"{"uri":"file:///a","size":7.0,"later":1.10}"#).unwrap();
        let view = ResourceView::from_raw(raw.as_raw()).unwrap();
        assert_eq!((&*view.uri, &*view.name, view.size), ("file:///a", "", Some(7)));
        assert!(view.raw.get().contains("1.10"));
        let bad = Fragment::parse(r#"{"name":"a"}"#).unwrap();
        assert!(ResourceView::from_raw(bad.as_raw()).is_err());
        assert!(ResourceTemplateView::from_raw(raw.as_raw()).is_err());
    }

    #[test]
    fn contents_are_text_or_base64_or_odd() {
        let raw = Fragment::parse(
            r#"{"contents":[{"uri":"a:","text":"x\n"},{"uri":"b:","blob":"AA=="},{"uri":7},3],"ttlMs":9}"#,
        )
        .unwrap();
        let result = ReadResult::from_raw(raw.as_raw()).unwrap();
        let shown: Vec<_> = result
            .contents
            .iter()
            .map(|entry| (entry.uri.as_ref(), entry.text.as_deref(), entry.blob.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a:", Some("x\n"), None),
                ("b:", None, Some("AA==")),
                ("", None, None),
                ("", None, None)
            ]
        );
        assert_eq!(result.ttl_ms, 9);
        assert!(ReadResult::from_raw(Fragment::object_empty().as_raw()).is_err());
    }
}
