//! One request to its answer.
//!
//! The caller's own task posts, reads and hands every message to the peer, which finds out whose
//! answer it is. Dropping the exchange closes its stream: for a modern server that is what cancels
//! the request.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode, header};
use plenipo_http::{Received as Body, preview};
use plenipo_wire::Incoming;
use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::sse::EventReader;
use tokio::time::sleep;

use super::headers;
use super::link::HttpLink;
use super::post::{Message, challenge};
use super::session::Session;
use crate::call::mirror::Mirrored;
use crate::error::{Fault, HttpFault};
use crate::peer::{Peer, RequestFault};
use crate::pending::{Answer, Reply};

/// A reconnection without a delay of the server's.
const RETRY: Duration = Duration::from_secs(1);
/// Reconnections in a row that bring nothing.
const FRUITLESS: u32 = 5;

/// A request that is registered.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) id: i64,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) mirrored: Mirrored,
    pub(crate) body: Bytes,
}

/// What became of a response.
enum Taken {
    Answered,
    SessionGone,
}

/// How far a stream went.
pub(super) enum Pumped {
    Answered,
    /// It ended, perhaps with a fault, after so many events.
    Ended {
        fault: Option<HttpFault>,
        events: usize,
    },
}

pub(crate) type Exchange<'a> =
    Pin<Box<dyn Future<Output = Result<Reply, RequestFault>> + Send + 'a>>;

impl HttpLink {
    /// Posts a request and waits for its answer, or for the end of the connection.
    pub(crate) fn exchange<'a>(
        &'a self,
        peer: &'a Peer,
        question: Question<'a>,
        mut answer: Answer,
    ) -> Exchange<'a> {
        Box::pin(async move {
            let shut_down = || RequestFault::Fault(Fault::ShutDown);
            let mut transfer = pin!(self.transfer(peer, &question));
            let mut withdrawn = pin!(self.withdrawn());
            poll_fn(|context| {
                // The answer usually comes by the transfer, that is from here: nobody has to be woken for it.
                if let Some(reply) = answer.look() {
                    return Poll::Ready(reply.map_err(|_| shut_down()));
                }
                if let Poll::Ready(fault) = withdrawn.as_mut().poll(context) {
                    return Poll::Ready(Err(fault.into()));
                }
                if let Poll::Ready(end) = transfer.as_mut().poll(context) {
                    return Poll::Ready(match (answer.try_take(), end) {
                        (Some(reply), _) => Ok(reply),
                        (None, Err(fault)) => Err(fault),
                        (None, Ok(())) => Err(shut_down()),
                    });
                }
                Pin::new(&mut answer).poll(context).map_err(|_| shut_down())
            })
            .await
        })
    }

    async fn transfer(&self, peer: &Peer, question: &Question<'_>) -> Result<(), RequestFault> {
        let mut renewed = false;
        loop {
            let session = match question.method {
                methods::INITIALIZE | methods::DISCOVER => Session::none().into(),
                _ => self.sessions.current(),
            };
            if session.is_legacy() && may_ask_back(question.method) {
                self.listening.ready().await;
            }
            let &Question { method, name, ref mirrored, ref body, .. } = question;
            let message = Message { method, name, mirrored, body: body.clone() };
            let response = self.post(&session, message).await?;
            match self.take(peer, question, &session, response).await? {
                Taken::Answered => return Ok(()),
                // The server did not process what it does not know the session of.
                Taken::SessionGone if !renewed => self.renew(peer, &session).await?,
                Taken::SessionGone => return Err(HttpFault::SessionLost.into()),
            }
            renewed = true;
        }
    }

    async fn take(
        &self,
        peer: &Peer,
        question: &Question<'_>,
        session: &Session,
        response: Response<Body>,
    ) -> Result<Taken, RequestFault> {
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return self.take_failure(peer, question, session, (head, body)).await;
        }
        if question.method == methods::INITIALIZE {
            self.sessions.offer(head.headers.get(headers::SESSION).cloned());
        }
        if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            body.let_end();
            return Err(HttpFault::NoContent { status: head.status.as_u16() }.into());
        }
        check_encoding(&head.headers)?;
        match &*media_type(&head.headers) {
            "text/event-stream" => self.take_stream(peer, question, session, body).await?,
            "application/json" | "" => self.take_json(peer, question, body).await?,
            found => {
                let found = crate::text::shown(found);
                let body = body.read_error(self.max_error_bytes).await;
                let preview = body.preview(&self.secrets());
                return Err(HttpFault::ContentType { found, preview }.into());
            }
        }
        Ok(Taken::Answered)
    }

    async fn take_json(
        &self,
        peer: &Peer,
        question: &Question<'_>,
        body: Body,
    ) -> Result<(), HttpFault> {
        let bytes = body.read(self.max_message_bytes).await?;
        peer.receive_for(Some(question.id), &bytes);
        if peer.pending.is_waiting(question.id) {
            let preview = preview(&bytes, &self.secrets());
            return Err(HttpFault::NotMessage { preview });
        }
        Ok(())
    }

    /// A status that is no success: perhaps with a JSON-RPC error, which says more.
    async fn take_failure(
        &self,
        peer: &Peer,
        question: &Question<'_>,
        session: &Session,
        (head, body): (Parts, Body),
    ) -> Result<Taken, RequestFault> {
        let status = head.status.as_u16();
        let challenge = challenge(&head.headers);
        let body = body.read_error(self.max_error_bytes).await;
        let code = error_code(body.bytes());
        let refused = status == 401 || (status == 403 && (code.is_none() || !challenge.is_empty()));
        if refused {
            let challenge = self.secrets().scrub(&challenge).into_owned();
            let challenge = Some(challenge).filter(|challenge| !challenge.is_empty());
            return Err(HttpFault::SignInNeeded { status, challenge }.into());
        }
        if session.id.is_some() && is_session_gone(status, body.bytes()) {
            return Ok(Taken::SessionGone);
        }
        if code.is_some() {
            peer.receive_for(Some(question.id), body.bytes());
        }
        if peer.pending.is_waiting(question.id) {
            let preview = body.preview(&self.secrets());
            return Err(HttpFault::Status { status, preview }.into());
        }
        Ok(Taken::Answered)
    }

    /// Reads the stream to the answer. When it ends before, a legacy server that numbers its events
    /// is asked for the rest; a modern one is never.
    async fn take_stream(
        &self,
        peer: &Peer,
        question: &Question<'_>,
        session: &Session,
        mut body: Body,
    ) -> Result<(), HttpFault> {
        let mut reader = EventReader::with_limit(self.max_message_bytes);
        let mut fruitless = 0;
        loop {
            let fault = match pump(peer, Some(question.id), &mut reader, &mut body).await? {
                Pumped::Answered => {
                    body.let_end();
                    return Ok(());
                }
                Pumped::Ended { fault, events } => {
                    fruitless = if events > 0 { 0 } else { fruitless + 1 };
                    fault.unwrap_or(HttpFault::StreamEnded)
                }
            };
            let Some(last) = reader.last_event_id().filter(|_| session.is_legacy()) else {
                return Err(fault);
            };
            if fruitless >= FRUITLESS {
                return Err(fault);
            }
            sleep(reader.retry().unwrap_or(RETRY)).await;
            let response = self.open_stream(session, Some(last)).await?;
            if !is_stream(&response) {
                return Err(fault);
            }
            reader.restart();
            body = response.into_body();
        }
    }
}

/// Hands the messages of a stream over, until the answer to `question` came or the stream ends.
pub(super) async fn pump(
    peer: &Peer,
    question: Option<i64>,
    reader: &mut EventReader,
    body: &mut Body,
) -> Result<Pumped, HttpFault> {
    let mut events = 0;
    loop {
        while let Some(event) = reader.next_event() {
            events += 1;
            match event {
                Ok(event) if event.is_message() && !event.data.is_empty() => {
                    peer.receive_for(question, event.data);
                }
                Ok(_) => {}
                Err(fault) if peer.lost(question, &fault.prefix, fault.limit) => {
                    return Err(HttpFault::TooLong { limit: fault.limit });
                }
                Err(_) => {}
            }
            if question.is_some_and(|id| !peer.pending.is_waiting(id)) {
                return Ok(Pumped::Answered);
            }
        }
        match body.next().await {
            Ok(Some(bytes)) => reader.push(&bytes),
            Ok(None) => return Ok(Pumped::Ended { fault: None, events }),
            Err(fault) => return Ok(Pumped::Ended { fault: Some(fault.into()), events }),
        }
    }
}

/// Requests about which a legacy server may have questions, perhaps on its own stream.
fn may_ask_back(method: &str) -> bool {
    matches!(method, methods::TOOLS_CALL | methods::PROMPTS_GET | methods::RESOURCES_READ)
}

/// Whether a GET was answered with an event stream.
pub(super) fn is_stream(response: &Response<Body>) -> bool {
    response.status() == StatusCode::OK && media_type(response.headers()) == "text/event-stream"
}

/// In lower case, without parameters; empty when there is none.
fn media_type(headers: &HeaderMap) -> Cow<'_, str> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default();
    let kind = kind.trim();
    match kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(kind.to_ascii_lowercase()),
        false => Cow::Borrowed(kind),
    }
}

fn check_encoding(headers: &HeaderMap) -> Result<(), HttpFault> {
    let coding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match coding.filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
        Some(found) => Err(HttpFault::Encoding { found: crate::text::shown(found) }),
        None => Ok(()),
    }
}

/// Whether a server says that it does not know the session, so that it did not process the request.
fn is_session_gone(status: u16, body: &[u8]) -> bool {
    match (status, Incoming::parse(body)) {
        (404, Ok(Incoming::Failure { error, .. })) => error.code != error_code::METHOD_NOT_FOUND,
        (404, _) => true,
        // What the example servers of the TypeScript SDK say instead, and their many copies.
        (400, Ok(Incoming::Failure { error, .. })) => {
            error.code == -32000 && error.message.to_ascii_lowercase().contains("session id")
        }
        _ => false,
    }
}

/// The code of a JSON-RPC error, if the body is one.
fn error_code(body: &[u8]) -> Option<i64> {
    match Incoming::parse(body).ok()? {
        Incoming::Failure { error, .. } => Some(error.code),
        _ => None,
    }
}

impl From<HttpFault> for RequestFault {
    fn from(fault: HttpFault) -> Self {
        Self::Fault(Fault::Http(fault))
    }
}
