//! What comes in. Nothing here waits: an answer is handed over, a question answered from the
//! queue, everything else noted, and the next line is read.

use std::borrow::Cow;

use plenipo_wire::protocol::methods;
use plenipo_wire::{
    ErrorObject, Fragment, Incoming, LineReader, LineTooLong, ParseFault, ParseFaultKind, RawValue,
    RequestId, encode,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::warnings::Kind;
use super::{KEPT_BYTES, KEPT_QUESTIONS, KeptQuestion, Link, Peer, Questions, Reply};
use crate::error::PeerError;
use crate::input::respond::{Asker, Refused, is_question};
use crate::text::{shown, shown_bytes};
use crate::transport::stdio::space;

/// Reads until the end of the stream. Between two messages it holds no memory.
pub(crate) async fn read(
    peer: &Peer,
    mut stdout: impl AsyncRead + Unpin,
    max_message_bytes: usize,
) {
    let mut reader = LineReader::with_limit(max_message_bytes);
    let take = |line: Result<&[u8], LineTooLong>| match line {
        Ok(line) => peer.receive(line),
        Err(fault) => peer.receive_too_long(fault),
    };
    loop {
        if !reader.is_within_line() {
            match space::read(&mut stdout, |bytes| reader.feed(bytes, take)).await {
                Ok(1..) => continue,
                _ => break,
            }
        }
        // The rest of a message, perhaps of a big one, straight to where its beginning is.
        let Ok(1..) = stdout.read_buf(reader.room()).await else { break };
        while let Some(line) = reader.next_line_to_keep() {
            match line {
                Ok(Cow::Owned(line)) => peer.receive_large(line),
                Ok(Cow::Borrowed(line)) => peer.receive(line),
                Err(fault) => peer.receive_too_long(fault),
            }
        }
        reader.release();
    }
    if let Some(rest) = reader.finish() {
        peer.receive(rest);
    }
}

impl Peer {
    fn receive(&self, line: &[u8]) {
        self.receive_for(None, line);
    }

    /// A result is handed over in the buffer it came in.
    fn receive_large(&self, line: Vec<u8>) {
        let answer = match Incoming::parse(&line) {
            Ok(Incoming::Success { id, result }) => {
                let start = result.get().as_ptr().addr().saturating_sub(line.as_ptr().addr());
                Some((id, start, result.get().len()))
            }
            _ => None,
        };
        match answer {
            Some((id, start, length)) => {
                self.receive_answer(&id, || Reply::Result(part_of(line, start, length)));
            }
            None => self.receive(&line),
        }
    }

    /// Takes a message that came in the answer to request `question`.
    pub(crate) fn receive_for(&self, question: Option<i64>, line: &[u8]) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        match Incoming::parse(line) {
            Err(ParseFault::Batch) => self.receive_batch(question, line),
            message => self.receive_message(question, message, line),
        }
    }

    /// Revision 2025-03-26 lets a server put messages into an array; batches do not nest.
    fn receive_batch(&self, question: Option<i64>, line: &[u8]) {
        let messages: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
        if messages.is_empty() {
            return self.receive_fault(&ParseFault::Batch, line);
        }
        for message in messages {
            let message = message.get().as_bytes();
            self.receive_message(question, Incoming::parse(message), message);
        }
    }

    fn receive_message(
        &self,
        question: Option<i64>,
        message: Result<Incoming<'_>, ParseFault>,
        line: &[u8],
    ) {
        match message {
            Ok(Incoming::Success { id, result }) => {
                self.receive_answer(&id, || Reply::Result(result.to_owned()));
            }
            Ok(Incoming::Failure { id, error }) => {
                self.receive_failure(question, id.as_ref(), &error);
            }
            Ok(Incoming::Notification { method, params }) => {
                self.receive_notification(question, &method, params);
            }
            Ok(Incoming::Request { id, method, params }) => {
                self.receive_request(question, &id, &method, params);
            }
            Ok(_) => {}
            Err(fault) => self.receive_fault(&fault, line),
        }
    }

    fn receive_answer(&self, id: &RequestId, reply: impl FnOnce() -> Reply) {
        let number = match id {
            RequestId::Number(number) => Some(*number),
            other => other.as_stringified_number(),
        };
        match number {
            Some(number) if self.pending.complete_with(number, reply) => {}
            // Late: cancelled, timed out, or answered before.
            Some(number) if self.pending.was_issued(number) => {}
            _ => self.warn_once(Kind::Stray, || {
                format!("it answers a request that was never sent (id {})", shown(&id.to_string()))
            }),
        }
    }

    fn receive_failure(
        &self,
        question: Option<i64>,
        id: Option<&RequestId>,
        error: &ErrorObject<'_>,
    ) {
        let reply = || Reply::Error(self.peer_error(error));
        if let Some(id) = id {
            return self.receive_answer(id, reply);
        }
        // Without an id it can only be given to whom it was sent to, or to a call that waits alone.
        match question.or_else(|| self.pending.only_one()) {
            Some(only) => {
                self.pending.complete(only, reply());
            }
            None => self.warn_once(Kind::Stray, || {
                format!("it reports an error without an id: {}", shown(&error.message))
            }),
        }
    }

    fn peer_error(&self, view: &ErrorObject<'_>) -> PeerError {
        let mut error = PeerError::from_view(view);
        if let Cow::Owned(clean) = self.scrub(&error.message) {
            error.message = clean;
        }
        if let Some(clean) = view.data.and_then(|data| self.scrub_json(data)) {
            error.data = Some(clean);
        }
        error
    }

    /// Answers at once, also while calls are waiting; what somebody has to be asked gets a task.
    pub(super) fn receive_request(
        &self,
        question: Option<i64>,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) {
        match &mut *self.lock_questions() {
            Questions::Kept(kept) => {
                if kept.len() < KEPT_QUESTIONS {
                    let params = params.filter(|params| params.get().len() <= KEPT_BYTES);
                    let params = params.map(Fragment::from_raw);
                    kept.push(KeptQuestion { id: id.clone(), method: method.to_owned(), params });
                }
                return;
            }
            Questions::Answered => {}
            Questions::Rejected => {
                return self.warn_once(Kind::RequestOnModern, || {
                    format!("it sends the request `{}`, which its revision forbids", shown(method))
                });
            }
        }
        let refused = match method {
            methods::PING => None,
            method if is_question(method) => match self.ask(question, id, method, params) {
                Ok(()) => return,
                Err(refused) => {
                    self.warn_once(Kind::Unanswered, || {
                        format!(
                            "it asks a question (`{method}`) that is refused: {}",
                            shown(&refused.reason)
                        )
                    });
                    Some(refused)
                }
            },
            method => Some(Refused::not_offered(method)),
        };
        let queued = self.link.queue_answer(|out| match &refused {
            None => encode::write_success(out, id, &Fragment::object_empty()),
            Some(refused) => refused.write(out, id),
        });
        if !queued {
            self.warn_once(Kind::Overwhelmed, || {
                "it asks questions faster than it reads the answers".to_owned()
            });
        }
    }

    /// Puts a question to the handler of the call it belongs to, else to the connection's.
    fn ask(
        &self,
        question: Option<i64>,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Refused> {
        let of_call = self.pending.asker(question);
        let (asker, ended) = match of_call {
            Some((asker, ended)) => (asker, Some(ended)),
            None => {
                let handler = self.asks.handler().cloned();
                let handler = handler.ok_or_else(|| Refused::not_offered(method))?;
                (Asker { handler, server: self.name.clone(), during: None }, None)
            }
        };
        let request = asker.request(method, params)?;
        self.asks.answer(&self.link, id, asker, request, ended)
    }

    fn receive_fault(&self, fault: &ParseFault, line: &[u8]) {
        if line.starts_with(b"Content-Length:") {
            self.warnings.note_language_server_framing();
        }
        match fault.kind() {
            ParseFaultKind::Noise => self.warn_once(Kind::Noise, || {
                let line = shown_bytes(line);
                let what = match self.link {
                    Link::Stdio(_) => "its stdout is not clean; lines that are no messages",
                    Link::Http(_) => "its answers are not clean; events that are no messages",
                };
                format!("{what} are skipped: {line}")
            }),
            _ => self.warn_once(Kind::NotJsonRpc, || {
                format!("it sends JSON that is no message: {}", shown_bytes(line))
            }),
        }
    }

    /// A message over the limit is lost; whether it was, or may have been, the answer to `question`.
    pub(crate) fn lost(&self, question: Option<i64>, prefix: &[u8], limit: usize) -> bool {
        self.warn_once(Kind::TooLong, || {
            format!("it sent a message over the limit of {limit} bytes")
        });
        question.is_some() && leading_id(prefix).is_none_or(|id| Some(id) == question)
    }

    /// The line is lost; the call it answered, if that can be told, should not wait for it.
    fn receive_too_long(&self, fault: LineTooLong) {
        self.warn_once(Kind::TooLong, || {
            format!("it sent a message over the limit of {} bytes", fault.limit)
        });
        let id = leading_id(&fault.prefix).filter(|id| self.pending.is_waiting(*id));
        if let Some(id) = id.or_else(|| self.pending.only_one()) {
            self.pending.complete(id, Reply::TooLong(fault));
        }
    }
}

/// The raw value that was found at `start`, without a copy.
fn part_of(mut line: Vec<u8>, start: usize, length: usize) -> Box<RawValue> {
    line.truncate(start.saturating_add(length));
    line.drain(..start.min(line.len()));
    let text = String::from_utf8(line).unwrap_or_default();
    // It was read as JSON just before.
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The `id` of a message of which only the beginning is known, when nothing nested precedes it.
fn leading_id(prefix: &[u8]) -> Option<i64> {
    let text = prefix.utf8_chunks().next()?.valid().strip_prefix('{')?;
    for member in text.split(',') {
        let (name, value) = member.split_once(':')?;
        let value = value.trim().trim_end_matches('}');
        match name.trim() {
            "\"id\"" => return value.trim_matches('"').parse().ok(),
            "\"jsonrpc\"" => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::observer::Silent;
    use crate::server_name::ServerName;

    #[test]
    fn the_id_of_a_cut_message_is_found() {
        assert_eq!(leading_id(br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#), Some(7));
        assert_eq!(leading_id(br#"{"id": "7" ,"result":"#), Some(7));
        assert_eq!(leading_id(br#"{"result":{"id":9,"#), None);
        assert_eq!(leading_id(br#"{"jsonrpc":"2.0","method":"x","id":3"#), None);
        assert_eq!(leading_id(b"\xff\xff"), None);
    }

    /// Messages and scraps of messages, well-formed or not.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let scrap = prop::sample::select(vec![
            "{\"jsonrpc\":\"2.0\",",
            "\"id\":0",
            "\"id\":\"1\"",
            "\"id\":null",
            "\"id\":-9e99",
            ",\"result\":{}",
            ",\"result\":null",
            ",\"error\":{\"code\":1}",
            ",\"error\":7",
            ",\"method\":\"ping\"",
            ",\"method\":\"notifications/progress\"",
            ",\"params\":{\"progressToken\":0,\"progress\":1e999}",
            ",\"params\":[]",
            ",\"method\":\"notifications/tools/list_changed\"",
            "}",
            "}\n",
            "\n",
            "[",
            "]",
            ",",
            "\"\\ud800\"",
            "\u{feff}",
            "Content-Length: 3\r\n",
        ]);
        let piece = prop_oneof![
            4 => scrap.prop_map(|scrap| scrap.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..20),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_a_server_writes_can_crash_the_reader_or_answer_a_call_twice(
            bytes in stream(), limit in 8_usize..200,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let name = ServerName::new("s").unwrap();
                let stdin = Box::pin(tokio::io::sink());
                let peer = Peer::new(name, stdin, Arc::new(Silent));
                peer.settle_era(false);
                let (first, mut answer) = peer.pending.register(None).unwrap();
                let (second, _other) = peer.pending.register(None).unwrap();
                read(&peer, &*bytes, limit).await;
                let waits = peer.pending.is_waiting(first);
                assert_eq!(answer.try_take().is_some(), !waits);
                peer.pending.forget(second);
            });
        }
    }
}
