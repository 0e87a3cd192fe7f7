//! Framing, events, envelopes, tool lists, results and parameter headers, on anything.

use std::path::Path;

use plenipo_testkit::Fuzz;
use plenipo_wire::param_headers::ParamHeaders;
use plenipo_wire::sse::EventReader;
use plenipo_wire::views::{CallResult, ContentBlock, ToolPage, ToolView};
use plenipo_wire::{Fragment, Incoming, LineReader, RawValue, encode};

const LIMIT: usize = 200;
const WORDS: [&str; 14] = [
    "\n",
    "\r\n",
    "\u{feff}",
    "{\"jsonrpc\":\"2.0\",",
    "\"id\":1",
    "\"id\":\"a\"",
    "\"method\":\"m\"",
    "\"params\":{",
    "\"result\":{}",
    "\"error\":{\"code\":-1,\"message\":\"\"}",
    "}",
    "null",
    "\\u000a",
    "\u{2028}",
];

/// Lines, and too long ones as their sizes' absence.
fn lines(reader: &mut LineReader, lines: &mut Vec<Option<Vec<u8>>>) {
    while let Some(line) = reader.next_line() {
        lines.push(line.ok().map(<[u8]>::to_vec));
    }
}

/// However the bytes arrive, the lines are the same, none is over the bound, and none holds a line's end.
#[test]
fn fuzz_framing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/framing");
    Fuzz::of(&corpus, &WORDS).rounds(800).run(|input| {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut reader = LineReader::with_limit(LIMIT);
        reader.push(input);
        lines(&mut reader, &mut whole);
        let mut reader = LineReader::with_limit(LIMIT);
        let size = input.first().map_or(1, |byte| usize::from(*byte) % 7 + 1);
        for piece in input.chunks(size) {
            reader.push(piece);
            lines(&mut reader, &mut pieces);
        }
        assert_eq!(whole, pieces, "in pieces of {size}");
        let mut outcome = String::new();
        for line in &whole {
            outcome.push(match line {
                None => 'L',
                Some(line) => {
                    assert!(!line.is_empty() && line.len() <= LIMIT && !line.contains(&b'\n'));
                    kind(line)
                }
            });
        }
        outcome.truncate(12);
        outcome
    });
}

fn kind(line: &[u8]) -> char {
    match Incoming::parse(line) {
        Ok(Incoming::Request { .. }) => 'r',
        Ok(Incoming::Notification { .. }) => 'n',
        Ok(Incoming::Success { .. }) => 's',
        Ok(Incoming::Failure { .. }) => 'f',
        Ok(_) => 'o',
        Err(_) => 'e',
    }
}

fn corpus(name: &str, words: &[&str]) -> Fuzz {
    Fuzz::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name), words)
}

const EVENT_WORDS: [&str; 12] = [
    "data: ", "data:", "data", "event: x", "id: 1", "retry: 5", ": c", "\n", "\r", "\r\n", "\n\n",
    "\u{feff}",
];

/// However the bytes arrive, the events are the same, and none is over the bound.
#[test]
fn fuzz_sse() {
    fn events(reader: &mut EventReader, seen: &mut Vec<Option<(Vec<u8>, Vec<u8>)>>) {
        while let Some(event) = reader.next_event() {
            seen.push(event.ok().map(|event| (event.name.to_vec(), event.data.to_vec())));
        }
    }
    corpus("sse", &EVENT_WORDS).rounds(800).run(|input| {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut reader = EventReader::with_limit(LIMIT);
        reader.push(input);
        events(&mut reader, &mut whole);
        let size = input.last().map_or(1, |byte| usize::from(*byte) % 5 + 1);
        let mut parts = EventReader::with_limit(LIMIT);
        for piece in input.chunks(size) {
            parts.push(piece);
            events(&mut parts, &mut pieces);
        }
        assert_eq!(whole, pieces, "in pieces of {size}");
        assert_eq!(reader.last_event_id(), parts.last_event_id());
        assert_eq!(reader.retry(), parts.retry());
        for (_, data) in whole.iter().flatten() {
            assert!(data.len() <= LIMIT, "{} bytes", data.len());
        }
        let id = reader.last_event_id();
        assert!(id.is_none_or(|id| !id.contains(['\0', '\r', '\n'])), "{id:?} goes into a header");
        (
            whole.len().min(4),
            whole.iter().filter(|event| event.is_none()).count().min(2),
            id.is_some(),
        )
    });
}

const ENVELOPE_WORDS: [&str; 14] = [
    "\"id\":",
    "\"method\":\"m\"",
    "\"result\":",
    "\"error\":{}",
    "\"params\":[]",
    "null",
    "-0",
    "1.0",
    "\"7\"",
    "\"\\ud800\"",
    "{}",
    ",",
    "\\u0069d",
    "1e400",
];

/// What is read is what stands there: raw parts are the peer's own text, and an id is echoed as it came.
#[test]
fn fuzz_envelopes() {
    corpus("envelopes", &ENVELOPE_WORDS).run(|input| {
        let inside = |raw: &RawValue| {
            let text = std::str::from_utf8(input).unwrap();
            assert!(text.contains(raw.get()), "{}", raw.get());
        };
        match Incoming::parse(input) {
            Ok(Incoming::Request { id, params, .. }) => {
                params.into_iter().for_each(inside);
                let mut answer = Vec::new();
                encode::write_success(&mut answer, &id, &Fragment::object_empty());
                assert_eq!(answer.iter().filter(|byte| **byte == b'\n').count(), 1);
                let Ok(Incoming::Success { id: echoed, .. }) = Incoming::parse(&answer) else {
                    panic!("no answer: {}", String::from_utf8_lossy(&answer));
                };
                assert_eq!(echoed, id);
            }
            Ok(Incoming::Notification { params, .. }) => params.into_iter().for_each(inside),
            Ok(Incoming::Success { result, .. }) => inside(result),
            Ok(Incoming::Failure { error, .. }) => {
                error.data.into_iter().for_each(inside);
                assert!(error.supported_versions().len() <= input.len());
            }
            Ok(_) | Err(_) => {}
        }
        kind(input)
    });
}

const TOOL_WORDS: [&str; 12] = [
    "{\"name\":\"b\",\"inputSchema\":{}},",
    "\"name\":\"\"",
    "\"inputSchema\":null",
    "\"nextCursor\":7",
    "\"tools\":{}",
    "\"annotations\":[]",
    "\\u0061",
    "null,",
    "[",
    "]",
    "{}",
    "1e400",
];

/// A bad tool is bad alone, and a good one is the same read again by itself.
#[test]
fn fuzz_tools() {
    corpus("tools", &TOOL_WORDS).run(|input| {
        let text = std::str::from_utf8(input).ok().and_then(|text| Fragment::parse(text).ok());
        let Some(result) = text else { return (0, 0, false) };
        let Ok(page) = ToolPage::from_raw(result.as_raw()) else { return (1, 0, false) };
        let good: Vec<_> = page.tools.iter().flatten().collect();
        for tool in &good {
            assert!(result.as_str().contains(tool.raw.get()));
            let again = ToolView::from_raw(tool.raw).unwrap();
            assert_eq!(again.name, tool.name);
            assert!(again.input_schema.get().starts_with('{'));
            let _hints = again.hints();
        }
        (2 + good.len().min(3), page.tools.len().min(4), page.next_cursor.is_some())
    });
}

const RESULT_WORDS: [&str; 10] = [
    "\"isError\":true",
    "\"isError\":0",
    "\"content\":[]",
    "{\"type\":\"text\"},",
    "\"structuredContent\":",
    "\"resultType\":\"complete\"",
    "null",
    "[",
    "]",
    "{}",
];

/// A result keeps its blocks, known or not, and a failure is never a success.
#[test]
fn fuzz_results() {
    corpus("results", &RESULT_WORDS).run(|input| {
        let text = std::str::from_utf8(input).ok().and_then(|text| Fragment::parse(text).ok());
        let Some(raw) = text else { return "no JSON".to_owned() };
        let (head, whole) = (CallResult::head(raw.as_raw()), CallResult::from_raw(raw.as_raw()));
        let (Ok(head), Ok(whole)) = (&head, &whole) else {
            assert_eq!(head.is_err(), whole.is_err());
            return "no result".to_owned();
        };
        assert_eq!(head.is_error, whole.is_error);
        let other =
            whole.content.iter().filter(|block| matches!(block, ContentBlock::Other { .. }));
        format!(
            "{} {} {} {:?}",
            whole.is_error,
            whole.structured_content.is_some(),
            other.count().min(2),
            std::mem::discriminant(&whole.result_type)
        )
    });
}

const HEADER_WORDS: [&str; 14] = [
    "\"x-mcp-header\":\"X\"",
    "\"x-mcp-header\":\"\"",
    "\"x-mcp-header\":\"a b\"",
    "\"x-mcp-header\":7",
    "\"properties\":{",
    "\"type\":\"number\"",
    "\"type\":\"string\"",
    "\"a\":",
    "9007199254740993",
    "null",
    "\"\\n\"",
    "\"=?base64?\"",
    "\n",
    "}",
];

/// Whatever annotation and argument say, a header's name is a token and it stands once.
#[test]
fn fuzz_headers() {
    corpus("headers", &HEADER_WORDS).run(|input| {
        let Some((schema, arguments)) =
            std::str::from_utf8(input).ok().and_then(|text| text.split_once('\n'))
        else {
            return "no two values".to_owned();
        };
        let (Ok(schema), Ok(arguments)) = (Fragment::parse(schema), Fragment::parse(arguments))
        else {
            return "no JSON".to_owned();
        };
        let headers = match ParamHeaders::of_schema(schema.as_raw()) {
            Ok(headers) => headers,
            Err(fault) => return format!("{:?}", std::mem::discriminant(&fault)),
        };
        let Ok(values) = headers.values(Some(arguments.as_raw())) else {
            return "no header".to_owned();
        };
        let mut names = std::collections::HashSet::new();
        for (name, _) in &values {
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            assert!(name.starts_with("Mcp-Param-") && name.bytes().all(token), "{name}");
            assert!(names.insert(name.to_ascii_lowercase()), "{name} twice");
        }
        format!("{} values", values.len())
    });
}
