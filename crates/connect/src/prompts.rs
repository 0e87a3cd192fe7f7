//! Prompts: messages that a server offers to begin a conversation with, and suggestions for what
//! they are filled in with. Everything in them is the server's, and untrusted.

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::methods;
use plenipo_wire::views::{CompletionResult, PromptResult, PromptView};
use plenipo_wire::{Fragment, RawValue, ViewError};

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::paging::{Entry, Listed};
use crate::request::{Ask, RequestOptions};

/// A prompt as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    name: String,
    raw: Fragment,
}

/// What `prompts/get` gave, as sent.
#[derive(Debug, Clone)]
pub struct FilledPrompt {
    result: Box<RawValue>,
}

/// What a suggestion is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionReference<'a> {
    /// An argument of the prompt of this name.
    Prompt(&'a str),
    /// A variable of this template of URIs, or of a URI.
    Resource(&'a str),
}

/// What `completion/complete` gave, as sent.
#[derive(Debug, Clone)]
pub struct Suggestions {
    result: Box<RawValue>,
}

impl Prompt {
    /// As the server spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole entry, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &Fragment {
        &self.raw
    }

    /// A view of the entry.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<PromptView<'_>, ViewError> {
        PromptView::from_raw(self.raw.as_raw())
    }
}

impl Entry for Prompt {
    const METHOD: &'static str = methods::PROMPTS_LIST;
    const MEMBER: &'static str = "prompts";
    const CAPABILITY: &'static str = "prompts";

    fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let name = PromptView::from_raw(raw)?.name.into_owned();
        Ok(Self { name, raw: Fragment::from_raw(raw) })
    }
}

impl FilledPrompt {
    /// The whole result, unknown members included.
    #[must_use]
    pub fn result(&self) -> &RawValue {
        &self.result
    }

    /// A view of the result.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<PromptResult<'_>, ViewError> {
        PromptResult::from_raw(&self.result)
    }
}

impl Suggestions {
    /// The whole result, unknown members included.
    #[must_use]
    pub fn result(&self) -> &RawValue {
        &self.result
    }

    /// A view of the result.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<CompletionResult<'_>, ViewError> {
        CompletionResult::from_raw(&self.result)
    }
}

impl Connection {
    /// Every prompt that the server lists; none when it does not have the capability.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`](crate::Operation::Request).
    pub async fn prompts(&self, options: &RequestOptions) -> Result<Listed<Prompt>, ConnectError> {
        self.list_all(options).await
    }

    /// Has a prompt filled in. Arguments of prompts are strings.
    ///
    /// ```no_run
    /// # use plenipo_connect::{Connection, RequestOptions};
    /// # async fn f(connection: &Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let arguments = [("language", "Rust")];
    /// let prompt = connection.prompt("review", &arguments, &RequestOptions::default()).await?;
    /// for message in prompt.view()?.messages {
    ///     println!("{}: {} block(s)", message.role, message.content.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`](crate::Operation::Request).
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
        options: &RequestOptions,
    ) -> Result<FilledPrompt, ConnectError> {
        let params = |params: &mut ObjectWriter<'_>| {
            params.string("name", name);
            write_arguments(params, arguments);
        };
        let method = methods::PROMPTS_GET;
        let ask = Ask { method, subject: Some(name), params: &params, options };
        self.ask(ask, |result| {
            PromptResult::from_raw(&result)?;
            Ok(FilledPrompt { result })
        })
        .await
    }

    /// Suggestions for an argument of which `value` is there so far; `others` are the arguments
    /// that are settled.
    ///
    /// ```no_run
    /// # use plenipo_connect::{CompletionReference, Connection, RequestOptions};
    /// # async fn f(connection: &Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let review = CompletionReference::Prompt("review");
    /// let options = RequestOptions::default();
    /// let found = connection.complete(review, ("language", "ru"), &[], &options).await?;
    /// println!("{:?}", found.view()?.values);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`](crate::Operation::Request);
    /// [`Fault::NotOffered`](crate::Fault::NotOffered) when the server has no suggestions.
    pub async fn complete(
        &self,
        reference: CompletionReference<'_>,
        (name, value): (&str, &str),
        others: &[(&str, &str)],
        options: &RequestOptions,
    ) -> Result<Suggestions, ConnectError> {
        let method = methods::COMPLETE;
        if !self.offers("completions") {
            return Err(self.not_offered(method, Some(name), "completions"));
        }
        let params = |params: &mut ObjectWriter<'_>| {
            params.object("ref", |object| reference.write(object));
            params.object("argument", |argument| {
                argument.string("name", name);
                argument.string("value", value);
            });
            if !others.is_empty() {
                params.object("context", |context| write_arguments(context, others));
            }
        };
        self.ask(Ask { method, subject: Some(name), params: &params, options }, |result| {
            CompletionResult::from_raw(&result)?;
            Ok(Suggestions { result })
        })
        .await
    }
}

impl CompletionReference<'_> {
    fn write(self, object: &mut ObjectWriter<'_>) {
        match self {
            Self::Prompt(name) => {
                object.string("type", "ref/prompt");
                object.string("name", name);
            }
            Self::Resource(uri) => {
                object.string("type", "ref/resource");
                object.string("uri", uri);
            }
        }
    }
}

fn write_arguments(params: &mut ObjectWriter<'_>, arguments: &[(&str, &str)]) {
    params.object("arguments", |object| {
        for (name, value) in arguments {
            object.string(name, value);
        }
    });
}
