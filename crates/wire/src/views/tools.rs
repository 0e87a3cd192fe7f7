//! `tools/list`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{boolean, items, non_null, select, text, type_name};

/// One page of `tools/list`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolPage<'a> {
    /// Each tool, or why it cannot be one.
    pub tools: Vec<Result<ToolView<'a>, ViewError>>,
    /// Where the next page starts; an empty string is a cursor.
    pub next_cursor: Option<Cow<'a, str>>,
}

/// One tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolView<'a> {
    /// As the server spells it: any string.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// JSON Schema of the arguments: always an object.
    pub input_schema: &'a RawValue,
    /// JSON Schema of `structuredContent`, any schema.
    pub output_schema: Option<&'a RawValue>,
    /// Untrusted hints, raw.
    pub annotations: Option<&'a RawValue>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
    /// The whole tool, unknown members included.
    pub raw: &'a RawValue,
}

/// A tool's hints: what the server *says*, trusted no further than the server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    pub destructive: Option<bool>,
    /// Calling again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// The tool talks to the outside.
    pub open_world: Option<bool>,
}

impl<'a> ToolPage<'a> {
    /// Reads a page.
    ///
    /// # Errors
    /// [`ViewError`] when the result has no `tools` array or `nextCursor` is not a string.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "tools/list result";
        let [tools, next_cursor] = select(raw, ["tools", "nextCursor"])
            .ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        let items = tools.and_then(items).ok_or_else(|| wrong(what, "tools", "an array", tools))?;
        let next_cursor = match next_cursor.and_then(non_null) {
            None => None,
            Some(cursor) => Some(
                text(cursor).ok_or_else(|| wrong(what, "nextCursor", "a string", Some(cursor)))?,
            ),
        };
        Ok(Self { tools: items.into_iter().map(ToolView::from_raw).collect(), next_cursor })
    }
}

impl<'a> ToolView<'a> {
    /// Reads one tool. Only `name` and an object `inputSchema` have to be there.
    ///
    /// # Errors
    /// [`ViewError`] naming the member, and the tool when its name could be read.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "tool";
        let names =
            ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"];
        let [name, title, description, input, output, annotations, meta] =
            select(raw, names).ok_or_else(|| wrong(what, "tool", "an object", Some(raw)))?;
        let name = name.and_then(text).ok_or_else(|| wrong(what, "name", "a string", name))?;
        let Some(input_schema) = input.filter(|schema| type_name(schema) == "object") else {
            let fault = wrong(what, "inputSchema", "an object", input);
            return Err(ViewError { item: Some(name.into_owned()), ..fault });
        };
        Ok(Self {
            name,
            title: title.and_then(text),
            description: description.and_then(text),
            input_schema,
            output_schema: output.and_then(non_null),
            annotations: annotations.and_then(non_null),
            meta: meta.and_then(non_null),
            raw,
        })
    }

    /// The hints, as far as they are booleans.
    #[must_use]
    pub fn hints(&self) -> ToolAnnotations {
        let names = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let found = self.annotations.and_then(|raw| select(raw, names)).unwrap_or_default();
        let [read_only, destructive, idempotent, open_world] =
            found.map(|hint| hint.and_then(boolean));
        ToolAnnotations { read_only, destructive, idempotent, open_world }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn one_malformed_tool_never_hides_the_list() {
        let raw = Fragment::parse(
            r#"{"tools":[
                {"name":"a","inputSchema":{},"annotations":{"readOnlyHint":true,"openWorldHint":1}},
                {"name":"b","inputSchema":null},
                {"inputSchema":{}},
                7,
                {"name":"c/é ","inputSchema":{"type":"object"},"outputSchema":true,"x":1.10}
            ],"nextCursor":"","ttlMs":1000.0}"#,
        )
        .unwrap();
        let page = ToolPage::from_raw(raw.as_raw()).unwrap();
        assert_eq!(page.next_cursor.as_deref(), Some(""));
        let shown: Vec<_> = page
            .tools
            .iter()
            .map(|tool| match tool {
                Ok(tool) => tool.name.to_string(),
                Err(fault) => format!("{:?} {fault}", fault.item),
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        a
        Some("b") read tool: inputSchema should be an object, found null
        None read tool: name should be a string, found nothing
        None read tool: tool should be an object, found number
        c/é 
        "#);
        let first = page.tools[0].as_ref().unwrap();
        assert_eq!(first.hints().read_only, Some(true));
        assert_eq!(first.hints().open_world, None);
        assert!(page.tools[4].as_ref().unwrap().raw.get().contains("\"x\":1.10"));
    }

    #[test]
    fn a_page_without_tools_is_an_error() {
        let raw = Fragment::parse(r#"{"tools":{}}"#).unwrap();
        let fault = ToolPage::from_raw(raw.as_raw()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "read tools/list result: tools should be an array, found object"
        );
    }
}
