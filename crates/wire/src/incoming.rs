//! Telling what a line is, by the members it has.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::ParseFault;
use crate::id::RequestId;
use crate::object::{integer, member, non_null, select, select_text, text, type_name};

/// One message, borrowing from its line.
///
/// Unknown members are ignored and `jsonrpc` is not required: a peer that leaves it out is
/// understood. A `method` makes a request or, without an id, a notification; else a non-null
/// `error` makes a failure; else `result` makes a success.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Incoming<'a> {
    /// A call that wants an answer.
    Request {
        /// To be echoed in the answer.
        id: RequestId,
        /// For example `ping`.
        method: Cow<'a, str>,
        /// Raw; absent when the member is absent.
        params: Option<&'a RawValue>,
    },
    /// A message without an answer.
    Notification {
        /// For example `notifications/progress`.
        method: Cow<'a, str>,
        /// Raw; absent when the member is absent.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request.
    Success {
        /// The request's id, possibly turned into a string by the peer.
        id: RequestId,
        /// Raw.
        result: &'a RawValue,
    },
    /// The error answer to a request.
    Failure {
        /// `None` when the peer could not tell (`"id":null`).
        id: Option<RequestId>,
        /// What went wrong.
        error: ErrorObject<'a>,
    },
}

/// The `error` member of a failure (JSON-RPC 2.0 §5.1).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorObject<'a> {
    /// See [`protocol::error_code`](crate::protocol::error_code); 0 when the peer sent no integer.
    pub code: i64,
    /// Empty when the peer sent none.
    pub message: Cow<'a, str>,
    /// Raw details.
    pub data: Option<&'a RawValue>,
    /// The whole member.
    pub raw: &'a RawValue,
}

impl<'a> Incoming<'a> {
    /// Reads one line, without its line end.
    ///
    /// # Errors
    /// A [`ParseFault`] that tells noise from JSON that is not JSON-RPC.
    pub fn parse(line: &'a [u8]) -> Result<Self, ParseFault> {
        let source = std::str::from_utf8(line)
            .map_err(|fault| ParseFault::NotUtf8 { offset: fault.valid_up_to() })?;
        let trimmed = source.trim_matches([' ', '\t', '\r', '\n']);
        if !trimmed.starts_with('{') {
            return Err(not_an_object(trimmed));
        }
        if let Some((number, result)) = usual_answer(trimmed) {
            return Ok(Self::Success { id: RequestId::Number(number), result });
        }
        let names = ["id", "method", "params", "result", "error"];
        let [id, method, params, result, error] =
            select_text(trimmed, names).map_err(ParseFault::NotJson)?;
        let id = match id.and_then(non_null) {
            None => None,
            Some(raw) => Some(RequestId::from_raw(raw).ok_or(ParseFault::NotJsonRpc {
                reason: "its id is neither a string nor a number",
            })?),
        };
        if let Some(method) = method {
            let method = text(method)
                .ok_or(ParseFault::NotJsonRpc { reason: "its method is not a string" })?;
            return Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        if let Some(error) = error.and_then(non_null) {
            return Ok(Self::Failure { id, error: ErrorObject::from_raw(error) });
        }
        match (result, id) {
            (Some(result), Some(id)) => Ok(Self::Success { id, result }),
            (Some(_), None) => Err(ParseFault::NotJsonRpc { reason: "it is a result without id" }),
            // Whose answer it is can be read, so that call need not wait for its timeout.
            (None, Some(id)) => {
                Ok(Self::Failure { id: Some(id), error: ErrorObject::of_empty_answer() })
            }
            (None, None) => {
                Err(ParseFault::NotJsonRpc { reason: "it has no method, no result and no error" })
            }
        }
    }
}

impl<'a> ErrorObject<'a> {
    /// What an answer with neither result nor error comes to.
    fn of_empty_answer() -> Self {
        let message = "the answer has neither a result nor an error".into();
        Self {
            code: crate::protocol::error_code::INVALID_REQUEST,
            message,
            data: None,
            raw: RawValue::NULL,
        }
    }

    /// Reads an error as far as it has the protocol's shape; a bare string becomes the message.
    #[must_use]
    pub fn from_raw(raw: &'a RawValue) -> Self {
        let [code, message, data] =
            select(raw, ["code", "message", "data"]).unwrap_or([None, None, None]);
        Self {
            code: code.and_then(integer).unwrap_or(0),
            message: message.and_then(text).or_else(|| text(raw)).unwrap_or_default(),
            data,
            raw,
        }
    }

    /// The versions a peer offers in `UnsupportedProtocolVersion` (`data.supported`).
    #[must_use]
    pub fn supported_versions(&self) -> Vec<Cow<'a, str>> {
        let supported = self.data.and_then(|data| member(data, "supported"));
        let items = supported.and_then(crate::object::items).unwrap_or_default();
        items.into_iter().filter_map(text).collect()
    }
}

/// An answer spelled as most servers spell it, with the result before or behind the rest: what is between has to be one
/// value. Everything else is looked at member by member.
fn usual_answer(source: &str) -> Option<(i64, &RawValue)> {
    const MOST_DIGITS: usize = 18;
    const HEAD: &str = "{\"jsonrpc\":\"2.0\",\"id\":";
    const TAIL: &str = ",\"jsonrpc\":\"2.0\",\"id\":";
    let inside = source.strip_suffix('}')?;
    let (digits, result) = if let Some(rest) = inside.strip_prefix(HEAD) {
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits, rest.strip_prefix(",\"result\":")?)
    } else {
        let rest = inside.strip_prefix("{\"result\":")?;
        let result = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        (rest.get(result.len()..)?, result.strip_suffix(TAIL)?)
    };
    let is_plain = (1..=MOST_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !is_plain {
        return None;
    }
    Some((digits.parse().ok()?, serde_json::from_str(result).ok()?))
}

fn not_an_object(source: &str) -> ParseFault {
    match serde_json::from_str::<&RawValue>(source) {
        Err(error) => ParseFault::NotJson(error),
        Ok(raw) if type_name(raw) == "array" => ParseFault::Batch,
        Ok(_) => ParseFault::NotJsonRpc { reason: "it is not an object" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ParseFaultKind;

    fn show(line: &str) -> String {
        match Incoming::parse(line.as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                format!("request {id} {method} {}", params.map_or("-", RawValue::get))
            }
            Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
            Ok(Incoming::Success { id, result }) => format!("success {id} {}", result.get()),
            Ok(Incoming::Failure { id, error }) => {
                let id = id.map_or("null".to_owned(), |id| id.to_string());
                format!("failure {id} {} {}", error.code, error.message)
            }
            Err(fault) => format!("{:?}: {fault}", fault.kind()),
        }
    }

    #[test]
    fn members_decide_what_a_message_is() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"method":"x","params":{"a":1.10},"id":"q","extra":[{}]}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"{"id":null,"method":"n"}"#,
            r#"{"id":7,"result":null}"#,
            r#"{"id":7,"result":{"a":1},"error":null}"#,
            r#"{"id":7,"result":null,"error":{"code":-32000,"message":"no\n"}}"#,
            r#"{"id":null,"error":"boom"}"#,
            r#"{"i\u0064":3,"result":3}"#,
            r#"[{"id":1,"result":1}]"#,
            r#"{"id":[1],"result":1}"#,
            r#"{"result":1}"#,
            r#"{"foo":1}"#,
            r#"{"id":1,"method":7}"#,
            "3",
            "Server started",
            "{\"id\":1,",
            "",
        ];
        let shown: Vec<_> = lines.iter().map(|line| show(line)).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        request 1 ping -
        request "q" x {"a":1.10}
        notification notifications/message
        notification n
        success 7 null
        success 7 {"a":1}
        failure 7 -32000 no

        failure null 0 boom
        success 3 3
        NotJsonRpc: read a line as one message: it is a batch, which is not supported
        NotJsonRpc: read a line as a JSON-RPC message: its id is neither a string nor a number
        NotJsonRpc: read a line as a JSON-RPC message: it is a result without id
        NotJsonRpc: read a line as a JSON-RPC message: it has no method, no result and no error
        NotJsonRpc: read a line as a JSON-RPC message: its method is not a string
        NotJsonRpc: read a line as a JSON-RPC message: it is not an object
        Noise: read a line as JSON
        Noise: read a line as JSON
        Noise: read a line as JSON
        "#);
    }

    #[test]
    fn a_usual_answer_is_what_it_is_member_by_member() {
        for (line, shown) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}"#, r#"success 7 {"a":[1]}"#),
            (r#"{"jsonrpc":"2.0","id":0,"result": null }"#, "success 0 null"),
            (r#"{"result":{"a":1},"jsonrpc":"2.0","id":12}"#, r#"success 12 {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":07,"result":1}"#, "Noise: read a line as JSON"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}}"#, "Noise: read a line as JSON"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"id":2}"#, "success 2 {}"),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#, "success 1 2"),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":2}}"#, "failure 1 2 "),
            (r#"{"result":1,"result":3,"jsonrpc":"2.0","id":4}"#, "success 4 3"),
            (r#"{"result":"x,\"jsonrpc\":\"2.0\",\"id\":4}"#, "Noise: read a line as JSON"),
        ] {
            assert_eq!(show(line), shown, "{line}");
        }
        let long = r#"{"jsonrpc":"2.0","id":9999999999999999999,"result":1}"#;
        assert_eq!(show(long), "success 9999999999999999999 1");
    }

    #[test]
    fn bad_utf8_is_noise() {
        let fault = Incoming::parse(b"ab\xff").unwrap_err();
        assert_eq!(fault.kind(), ParseFaultKind::Noise);
        assert!(matches!(fault, ParseFault::NotUtf8 { offset: 2 }));
    }
}
