//! What servers ask back: forms, URLs to open, model messages, roots.
//!
//! A host puts an [`InputHandler`] into the connection's options, or into one call. Only what the
//! handler [`offers`](InputHandler::offers) is declared to the server; without a handler nothing is,
//! and a question that comes all the same is refused. A modern server asks inside of its answer to
//! a call (`resultType: "input_required"`), a legacy one sends requests of its own; the handler does
//! not see the difference. While it works, the deadlines of the call stand still. Its future is
//! dropped when the call ends, is cancelled, or when the server no longer wants the answer.

pub(crate) mod asks;
mod clock;
mod read;
pub(crate) mod respond;
mod url;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use plenipo_wire::Fragment;
use plenipo_wire::encode::ObjectWriter;

pub use asks::Completion;
pub(crate) use clock::PersonClock;
pub use plenipo_schema::form::{Choice, Field, FieldKind, Form, FormFault, TextFormat};
pub use url::{ElicitationUrl, UrlFault, UrlWarning};

use crate::error::Operation;
use crate::server_name::ServerName;

/// What an [`InputHandler`] returns.
pub type InputFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers servers. Shared by everything that is under way on a connection: several questions may
/// be open at the same time.
pub trait InputHandler: Send + Sync {
    /// What it will answer. Asked for each request: nothing else is declared to the server.
    fn offers(&self) -> InputOffer;

    /// Answers one question. A form's or URL's answer is [`Accept`](InputAnswer::Accept),
    /// [`Decline`](InputAnswer::Decline) or [`Cancel`](InputAnswer::Cancel).
    ///
    /// # Errors
    /// [`InputRefusal`] when there is no answer, of a kind of question that knows no decline.
    fn answer<'a>(
        &'a self,
        request: &'a InputRequest,
    ) -> InputFuture<'a, Result<InputAnswer, InputRefusal>>;

    /// Waits until a person is done behind a URL that a call depends on: the call is repeated when
    /// this returns, or after ten minutes. Only servers of revision 2025-11-25 have such calls. By
    /// default the server's own notice is waited for, if it announced one; a host with somebody to
    /// ask should let them say so too.
    fn finished<'a>(
        &'a self,
        request: &'a InputRequest,
        completion: Completion,
    ) -> InputFuture<'a, ()> {
        let announced = matches!(&request.kind, InputKind::Url { elicitation_id: Some(_), .. });
        Box::pin(async move {
            if announced {
                completion.wait().await;
            }
        })
    }
}

/// What a handler answers. Nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputOffer {
    /// `elicitation.form`.
    pub form: bool,
    /// `elicitation.url`.
    pub url: bool,
    /// `sampling`; deprecated, and on only if a host says so.
    pub sampling: bool,
    /// `sampling.tools`: messages that use tools.
    pub sampling_tools: bool,
    /// `roots`; deprecated, and on only if a host says so.
    pub roots: bool,
}

/// A question, with who asks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputRequest {
    /// Which server asks, by the name it is configured under.
    pub server: ServerName,
    /// During what; `None` when that cannot be told.
    pub during: Option<Operation>,
    /// What is asked.
    pub kind: InputKind,
    /// The question's parameters, raw.
    pub params: Fragment,
}

/// What is asked. Every text in it is the server's and untrusted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum InputKind {
    /// `elicitation/create`, mode `form`.
    Form {
        /// What to tell the person.
        message: String,
        /// What to ask for.
        form: Form,
    },
    /// `elicitation/create`, mode `url`: open it outside of what the host and its model can see,
    /// after the person agreed to exactly this URL. Accepting says only that they agreed.
    Url {
        /// What to tell the person.
        message: String,
        /// Where to go.
        url: ElicitationUrl,
        /// From servers of revision 2025-11-25.
        elicitation_id: Option<String>,
    },
    /// `sampling/createMessage`: ask a model, with a person's approval. At most `max_tokens`.
    Sampling {
        /// `maxTokens`.
        max_tokens: u64,
        /// It may use tools.
        with_tools: bool,
    },
    /// `roots/list`.
    Roots,
}

/// An answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum InputAnswer {
    /// The person agreed. A form has a JSON object here; fields that are left out get their
    /// defaults, and what does not fit the form is not sent. A URL has nothing here.
    Accept(Option<Fragment>),
    /// The person said no.
    Decline,
    /// The person made no choice.
    Cancel,
    /// The result of `sampling/createMessage`: a JSON object.
    Message(Fragment),
    /// The result of `roots/list`.
    Roots(Vec<Root>),
}

/// A directory or file that a server may know of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// `file://…`
    pub uri: String,
    /// For people.
    pub name: Option<String>,
}

/// Why there is no answer; the server is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputRefusal {
    /// A fragment: `the user rejected the message`.
    pub reason: String,
}

impl InputRequest {
    /// A question that a host asks itself, for tests of its handler.
    #[must_use]
    pub fn new(
        server: ServerName,
        during: Option<Operation>,
        kind: InputKind,
        params: Fragment,
    ) -> Self {
        Self { server, during, kind, params }
    }
}

impl Root {
    /// Both members.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: Option<String>) -> Self {
        Self { uri: uri.into(), name }
    }
}

impl InputRefusal {
    /// With a reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl InputOffer {
    /// Nothing is answered.
    pub const NOTHING: Self =
        Self { form: false, url: false, sampling: false, sampling_tools: false, roots: false };
    /// Forms and URLs.
    pub const ELICITATION: Self = Self { form: true, url: true, ..Self::NOTHING };

    /// Writes the capabilities of the client that correspond.
    pub(crate) fn write(self, capabilities: &mut ObjectWriter<'_>) {
        let empty = |_: &mut ObjectWriter<'_>| {};
        if self.form || self.url {
            capabilities.object("elicitation", |modes| {
                if self.form {
                    modes.object("form", empty);
                }
                if self.url {
                    modes.object("url", empty);
                }
            });
        }
        if self.sampling {
            capabilities.object("sampling", |features| {
                if self.sampling_tools {
                    features.object("tools", empty);
                }
            });
        }
        if self.roots {
            capabilities.object("roots", empty);
        }
    }

    /// The client's capabilities, these extensions among them, without settings.
    pub(crate) fn capabilities_with<'e>(
        self,
        extensions: impl IntoIterator<Item = &'e str>,
    ) -> Fragment {
        let mut extensions = extensions.into_iter().peekable();
        Fragment::object(|object| {
            self.write(object);
            if extensions.peek().is_none() {
                return;
            }
            object.object("extensions", |declared| {
                for extension in extensions {
                    declared.object(extension, |_| {});
                }
            });
        })
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::NOTHING
    }
}

impl fmt::Debug for dyn InputHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputHandler({:?})", self.offers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_becomes_a_capability() {
        let shown = |offer: InputOffer| offer.capabilities_with(None).to_string();
        assert_eq!(shown(InputOffer::NOTHING), "{}");
        assert_eq!(
            shown(InputOffer { form: true, ..InputOffer::NOTHING }),
            r#"{"elicitation":{"form":{}}}"#
        );
        assert_eq!(
            shown(InputOffer {
                sampling: true,
                sampling_tools: true,
                roots: true,
                ..InputOffer::ELICITATION
            }),
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#
        );
    }

    #[test]
    fn sampling_off_by_default() {
        assert!(!InputOffer::default().sampling && !InputOffer::ELICITATION.sampling);
    }

    #[test]
    fn roots_off_by_default() {
        assert!(!InputOffer::default().roots && !InputOffer::ELICITATION.roots);
    }
}
