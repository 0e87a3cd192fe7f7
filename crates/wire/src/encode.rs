//! Writing messages: one line each, appended to a buffer that the caller reuses.
//!
//! Every function appends a complete frame that ends in LF and contains no other LF: names are
//! escaped as JSON strings and everything else is a [`Fragment`].

use serde_json::value::RawValue;

use crate::fragment::Fragment;
use crate::id::RequestId;

/// Appends a request.
pub fn write_request(out: &mut Vec<u8>, id: &RequestId, method: &str, params: Option<&Fragment>) {
    open_request(out, id, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_str().as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

/// Appends a request whose `params` object is written in place, without an intermediate value.
pub fn write_request_with(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: impl FnOnce(&mut ObjectWriter<'_>),
) {
    open_request(out, id, method);
    out.extend_from_slice(b",\"params\":");
    let mut object = ObjectWriter::open(out);
    params(&mut object);
    object.close();
    out.extend_from_slice(b"}\n");
}

/// Appends a notification.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: Option<&Fragment>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_str().as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

/// Appends the answer to request `id`.
pub fn write_success(out: &mut Vec<u8>, id: &RequestId, result: &Fragment) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.encode(out);
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result.as_str().as_bytes());
    out.extend_from_slice(b"}\n");
}

/// Appends an error answer; `id` is `None` when the request's id could not be read
/// (JSON-RPC 2.0 §5: `"id":null`). Codes: [`protocol::error_code`](crate::protocol::error_code).
pub fn write_failure(
    out: &mut Vec<u8>,
    id: Option<&RequestId>,
    code: i64,
    message: &str,
    data: Option<&Fragment>,
) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    match id {
        Some(id) => id.encode(out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"error\":");
    let mut error = ObjectWriter::open(out);
    error.integer("code", code);
    error.string("message", message);
    if let Some(data) = data {
        error.fragment("data", data);
    }
    error.close();
    out.extend_from_slice(b"}\n");
}

/// Appends `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    if has_escapes(text.as_bytes()) {
        // Writing to a Vec and serialising a str are both infallible.
        return serde_json::to_writer(out, text).unwrap_or_default();
    }
    out.reserve(text.len().saturating_add(2));
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether JSON wants some byte of it escaped; eight bytes at a time.
fn has_escapes(text: &[u8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // Borrows spoil only the bytes above one that is found.
    let below = |word: u64, least: u64| word.wrapping_sub(EACH * least) & !word & HIGH;
    let is = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let has = |bytes: [u8; 8]| {
        let word = u64::from_ne_bytes(bytes);
        below(word, 0x20) | is(word, b'"') | is(word, b'\\') != 0
    };
    let (words, rest) = text.as_chunks();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    has(last) || words.iter().any(|word| has(*word))
}

pub(crate) fn write_integer(out: &mut Vec<u8>, number: i64) {
    // As infallible, and faster than a formatter.
    serde_json::to_writer(out, &number).unwrap_or_default();
}

/// In valid JSON line breaks stand only between tokens.
fn write_raw(out: &mut Vec<u8>, value: &RawValue) {
    let start = out.len();
    out.extend_from_slice(value.get().as_bytes());
    if memchr::memchr2(b'\r', b'\n', value.get().as_bytes()).is_some() {
        for byte in out.iter_mut().skip(start).filter(|byte| matches!(byte, b'\r' | b'\n')) {
            *byte = b' ';
        }
    }
}

fn open_request(out: &mut Vec<u8>, id: &RequestId, method: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.encode(out);
    out.extend_from_slice(b",\"method\":");
    write_string(out, method);
}

/// Writes the members of one JSON object in the order of the calls.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    pub(crate) fn close(self) {
        self.out.push(b'}');
    }

    /// Adds a string member.
    pub fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        write_string(self.out, value);
    }

    /// Adds an integer member.
    pub fn integer(&mut self, name: &str, value: i64) {
        self.name(name);
        write_integer(self.out, value);
    }

    /// Adds a boolean member.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Adds a member whose value is JSON text.
    pub fn fragment(&mut self, name: &str, value: &Fragment) {
        self.name(name);
        self.out.extend_from_slice(value.as_str().as_bytes());
    }

    /// Adds a member whose value is a raw value; line breaks between its tokens become spaces.
    pub fn raw(&mut self, name: &str, value: &RawValue) {
        self.name(name);
        write_raw(self.out, value);
    }

    /// Adds a member whose name stands as it was spelled elsewhere, `name` being a JSON string. Any
    /// other value becomes the string of its text.
    pub fn raw_spelled(&mut self, name: &RawValue, value: &RawValue) {
        if !name.get().starts_with('"') {
            return self.raw(name.get(), value);
        }
        self.separate();
        self.out.extend_from_slice(name.get().as_bytes());
        self.out.push(b':');
        write_raw(self.out, value);
    }

    /// Adds a member that is an object.
    pub fn object(&mut self, name: &str, build: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.name(name);
        let mut inner = ObjectWriter::open(self.out);
        build(&mut inner);
        inner.close();
    }

    /// Adds a member that is an array of JSON values.
    pub fn array<'f>(&mut self, name: &str, items: impl IntoIterator<Item = &'f Fragment>) {
        self.name(name);
        self.out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(item.as_str().as_bytes());
        }
        self.out.push(b']');
    }

    fn separate(&mut self) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
    }

    fn name(&mut self, name: &str) {
        self.separate();
        write_string(self.out, name);
        self.out.push(b':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_members_keep_their_spelling_on_one_line() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let text = line(|out| {
            let mut object = ObjectWriter::open(out);
            object.raw("a\n", &raw("[1.0,\r\n\"\\n\"]"));
            object.raw_spelled(&raw(r#""\u0062""#), &raw("{\n}"));
            object.raw_spelled(&raw("[\n]"), &raw("-0"));
            object.close();
        });
        assert_eq!(text, r#"{"a\n":[1.0,  "\n"],"\u0062":{ },"[\n]":-0}"#);
    }

    fn line(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_to_be_escaped_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            let escaped = byte < 0x20 || matches!(byte, b'"' | b'\\');
            for (length, place) in
                (1..20).flat_map(|length| (0..length).map(move |at| (length, at)))
            {
                for filling in [b' ', b'a', 0x7f, 0x80, 0xff, b'!', b'#', b'[', b']'] {
                    let mut text = vec![filling; length];
                    text[place] = byte;
                    assert_eq!(has_escapes(&text), escaped, "{text:?}");
                }
            }
        }
        assert!(!has_escapes(b""));
    }

    #[test]
    fn frames_are_one_line() {
        let id = RequestId::Number(7);
        let params = Fragment::parse("[1,\n2]").unwrap();
        let all = [
            line(|out| write_request(out, &id, "a\nb", Some(&params))),
            line(|out| write_notification(out, "n", None)),
            line(|out| write_success(out, &RequestId::Text("x\ny".into()), &params)),
            line(|out| write_failure(out, None, -32700, "parse\nerror", Some(&params))),
            line(|out| {
                write_request_with(out, &id, "tools/call", |object| {
                    object.string("name", "t");
                    object.object("_meta", |meta| meta.integer("progressToken", 7));
                    object.array("list", [&params]);
                });
            }),
        ];
        insta::assert_snapshot!(all.concat(), @r#"
        {"jsonrpc":"2.0","id":7,"method":"a\nb","params":[1, 2]}
        {"jsonrpc":"2.0","method":"n"}
        {"jsonrpc":"2.0","id":"x\ny","result":[1, 2]}
        {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse\nerror","data":[1, 2]}}
        {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7},"list":[[1, 2]]}}
        "#);
    }
}
