//! Prompts, and suggestions for their arguments.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{ContentBlock, wrong};
use crate::error::ViewError;
use crate::object::{boolean, integer, items, member, non_null, select, text};

/// One prompt of `prompts/list`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptView<'a> {
    /// What `prompts/get` takes.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// What it is filled in with; those without a name are left out.
    pub arguments: Vec<PromptArgument<'a>>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
    /// The whole prompt, unknown members included.
    pub raw: &'a RawValue,
}

/// An argument of a prompt. Its value is a string.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptArgument<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// For people.
    pub title: Option<Cow<'a, str>>,
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// There is no prompt without it.
    pub required: bool,
}

/// Result of `prompts/get`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptResult<'a> {
    /// Untrusted text.
    pub description: Option<Cow<'a, str>>,
    /// What to begin a conversation with.
    pub messages: Vec<PromptMessage<'a>>,
    /// `_meta`, raw.
    pub meta: Option<&'a RawValue>,
}

/// One message of a prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptMessage<'a> {
    /// `user` or `assistant`; empty when absent.
    pub role: Cow<'a, str>,
    /// One block, or several from servers that send an array.
    pub content: Vec<ContentBlock<'a>>,
    /// The whole message, unknown members included.
    pub raw: &'a RawValue,
}

/// Result of `completion/complete`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompletionResult<'a> {
    /// Suggestions, best first; what is not a string is left out.
    pub values: Vec<Cow<'a, str>>,
    /// How many there are, when known.
    pub total: Option<u64>,
    /// There are more.
    pub has_more: bool,
}

impl<'a> PromptView<'a> {
    /// Reads one prompt; only `name` has to be there.
    ///
    /// # Errors
    /// [`ViewError`] when it is not.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "prompt";
        let [name, title, description, arguments, meta] =
            select(raw, ["name", "title", "description", "arguments", "_meta"])
                .ok_or_else(|| wrong(what, "prompt", "an object", Some(raw)))?;
        let arguments = arguments.and_then(items).unwrap_or_default();
        Ok(Self {
            name: name.and_then(text).ok_or_else(|| wrong(what, "name", "a string", name))?,
            title: title.and_then(text),
            description: description.and_then(text),
            arguments: arguments.into_iter().filter_map(PromptArgument::read).collect(),
            meta: meta.and_then(non_null),
            raw,
        })
    }
}

impl<'a> PromptArgument<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        let [name, title, description, required] =
            select(raw, ["name", "title", "description", "required"])?;
        Some(Self {
            name: name.and_then(text)?,
            title: title.and_then(text),
            description: description.and_then(text),
            required: required.and_then(boolean).unwrap_or(false),
        })
    }
}

impl<'a> PromptResult<'a> {
    /// Reads the result; each message is judged by itself.
    ///
    /// # Errors
    /// [`ViewError`] when there is no `messages` array.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "prompts/get result";
        let [description, messages, meta] = select(raw, ["description", "messages", "_meta"])
            .ok_or_else(|| wrong(what, "result", "an object", Some(raw)))?;
        let messages = messages
            .and_then(items)
            .ok_or_else(|| wrong(what, "messages", "an array", messages))?;
        Ok(Self {
            description: description.and_then(text),
            messages: messages.into_iter().map(PromptMessage::read).collect(),
            meta: meta.and_then(non_null),
        })
    }
}

impl<'a> PromptMessage<'a> {
    fn read(raw: &'a RawValue) -> Self {
        let [role, content] = select(raw, ["role", "content"]).unwrap_or_default();
        let blocks = content.map(|content| items(content).unwrap_or_else(|| vec![content]));
        Self {
            role: role.and_then(text).unwrap_or_default(),
            content: blocks.into_iter().flatten().map(ContentBlock::from_raw).collect(),
            raw,
        }
    }
}

impl<'a> CompletionResult<'a> {
    /// Reads the result.
    ///
    /// # Errors
    /// [`ViewError`] when there is no `completion.values` array.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "completion/complete result";
        let completion = member(raw, "completion");
        let found = completion.and_then(|found| select(found, ["values", "total", "hasMore"]));
        let [values, total, has_more] =
            found.ok_or_else(|| wrong(what, "completion", "an object", completion))?;
        let values = values
            .and_then(items)
            .ok_or_else(|| wrong(what, "completion.values", "an array", values))?;
        Ok(Self {
            values: values.into_iter().filter_map(text).collect(),
            total: total.and_then(integer).and_then(|total| u64::try_from(total).ok()),
            has_more: has_more.and_then(boolean).unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    #[test]
    fn a_prompt_needs_only_a_name() {
        let raw = Fragment::parse(
            r#"{"name":"p","arguments":[{"name":"a","required":true},{"title":"x"},{"name":"b"}],"z":1}"#,
        )
        .unwrap();
        let view = PromptView::from_raw(raw.as_raw()).unwrap();
        let arguments: Vec<_> =
            view.arguments.iter().map(|argument| (&*argument.name, argument.required)).collect();
        assert_eq!(arguments, [("a", true), ("b", false)]);
        assert!(PromptView::from_raw(Fragment::object_empty().as_raw()).is_err());
    }

    #[test]
    fn messages_have_one_block_or_several() {
        let raw = Fragment::parse(
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},
            {"role":"assistant","content":[{"type":"text","text":"b"},{"type":"new"}]},7]}"#,
        )
        .unwrap();
        let result = PromptResult::from_raw(raw.as_raw()).unwrap();
        assert_eq!(&*result.messages[0].role, "user");
        assert!(
            matches!(&result.messages[0].content[..], [ContentBlock::Text(text)] if text == "a")
        );
        assert!(matches!(
            &result.messages[1].content[..],
            [ContentBlock::Text(_), ContentBlock::Other { .. }]
        ));
        assert!(result.messages[2].role.is_empty() && result.messages[2].content.is_empty());
    }

    #[test]
    fn suggestions_are_strings() {
        let raw =
            Fragment::parse(r#"{"completion":{"values":["a",7,"b"],"total":9,"hasMore":true}}"#);
        let raw = raw.unwrap();
        let result = CompletionResult::from_raw(raw.as_raw()).unwrap();
        assert_eq!((result.values.len(), result.total, result.has_more), (2, Some(9), true));
        assert!(CompletionResult::from_raw(Fragment::object_empty().as_raw()).is_err());
    }
}
