//! One question to the text of its answer, whichever way it came.

use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::{Fragment, RawValue, object};

use super::read;
pub(crate) use super::read::required_urls;
use super::{InputAnswer, InputHandler, InputKind, InputOffer, InputRequest, Root};
use crate::error::Operation;
use crate::server_name::ServerName;

/// Sampling was rejected (the specification's own example of the code).
const REJECTED: i64 = -1;

/// Why a question has no answer, and what a server that sent it as a request is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: i64,
    pub(crate) reason: String,
    pub(crate) whose: Whose,
}

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The server asks for what was not offered.
    NotOffered,
    /// The server's question is not of the protocol's shape.
    Server,
    /// The handler's answer is not what was asked for.
    Handler,
    /// The handler has no answer.
    Person,
}

impl Refused {
    pub(crate) fn not_offered(what: &str) -> Self {
        Self {
            code: error_code::METHOD_NOT_FOUND,
            reason: format!("{} was not offered", crate::text::shown(what)),
            whose: Whose::NotOffered,
        }
    }

    pub(super) fn bad(reason: &str) -> Self {
        let reason = crate::text::shown(reason);
        Self { code: error_code::INVALID_PARAMS, reason, whose: Whose::Server }
    }

    fn of_handler(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { code: error_code::INTERNAL_ERROR, reason, whose: Whose::Handler }
    }
}

/// A handler, and during what it is asked.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) handler: Arc<dyn InputHandler>,
    pub(crate) server: ServerName,
    pub(crate) during: Option<Operation>,
}

impl Asker {
    pub(crate) fn offers(&self) -> InputOffer {
        self.handler.offers()
    }

    /// The question as its handler sees it.
    pub(crate) fn request(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<InputRequest, Refused> {
        let kind = read::question(self.offers(), method, params)?;
        let params = params.map_or_else(Fragment::object_empty, Fragment::from_raw);
        let (server, during) = (self.server.clone(), self.during.clone());
        Ok(InputRequest { server, during, kind, params })
    }

    /// The result to send.
    pub(crate) async fn respond(&self, request: &InputRequest) -> Result<Fragment, Refused> {
        let answer = self.handler.answer(request).await.map_err(|refusal| Refused {
            code: REJECTED,
            reason: refusal.reason,
            whose: Whose::Person,
        })?;
        result(&request.kind, answer)
    }

    /// [`respond`](Self::respond) on a task of ours: the server gets an answer although the handler panics.
    pub(crate) async fn respond_whatever(
        &self,
        request: &InputRequest,
    ) -> Result<Fragment, Refused> {
        let mut answer = pin!(self.respond(request));
        poll_fn(|context| {
            let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
            polled.unwrap_or_else(|_| Poll::Ready(Err(Refused::of_handler("the handler failed"))))
        })
        .await
    }
}

/// Whether a request of a server is one for a handler.
pub(crate) fn is_question(method: &str) -> bool {
    matches!(method, methods::ELICIT | methods::SAMPLE | methods::ROOTS_LIST)
}

fn result(kind: &InputKind, answer: InputAnswer) -> Result<Fragment, Refused> {
    match (kind, answer) {
        (InputKind::Form { form, .. }, InputAnswer::Accept(content)) => {
            let content = form
                .complete(content.as_ref().map(Fragment::as_raw))
                .map_err(|fault| Refused::of_handler(fault.to_string()))?;
            Ok(Fragment::object(|object| {
                object.string("action", "accept");
                object.fragment("content", &content);
            }))
        }
        (InputKind::Url { .. }, InputAnswer::Accept(None)) => Ok(action("accept")),
        (InputKind::Form { .. } | InputKind::Url { .. }, InputAnswer::Decline) => {
            Ok(action("decline"))
        }
        (InputKind::Form { .. } | InputKind::Url { .. }, InputAnswer::Cancel) => Ok(cancelled()),
        (InputKind::Sampling { .. }, InputAnswer::Message(message)) if message.is_object() => {
            Ok(message)
        }
        (InputKind::Sampling { .. }, InputAnswer::Decline | InputAnswer::Cancel) => Err(Refused {
            code: REJECTED,
            reason: "the message was rejected".to_owned(),
            whose: Whose::Person,
        }),
        (InputKind::Roots, InputAnswer::Roots(roots)) => list(&roots),
        (InputKind::Roots, InputAnswer::Decline | InputAnswer::Cancel) => list(&[]),
        _ => Err(Refused::of_handler("the answer is of another kind than the question")),
    }
}

/// Nobody made a choice.
pub(crate) fn cancelled() -> Fragment {
    action("cancel")
}

fn action(action: &str) -> Fragment {
    Fragment::object(|object| object.string("action", action))
}

fn list(roots: &[Root]) -> Result<Fragment, Refused> {
    if let Some(root) = roots.iter().find(|root| !root.uri.starts_with("file://")) {
        let uri = crate::text::shown(&root.uri);
        return Err(Refused::of_handler(format!("the root `{uri}` is no file:// URI")));
    }
    let items: Vec<_> = roots.iter().map(root).collect();
    Ok(Fragment::object(|object| object.array("roots", &items)))
}

fn root(root: &Root) -> Fragment {
    Fragment::object(|object| {
        object.string("uri", &root.uri);
        if let Some(name) = &root.name {
            object.string("name", name);
        }
    })
}

/// Whether an elicitation's result says that the person agreed.
pub(crate) fn is_accepted(result: &Fragment) -> bool {
    let action = object::member(result.as_raw(), "action").and_then(object::text);
    action.as_deref() == Some("accept")
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("server", &self.server).finish_non_exhaustive()
    }
}
