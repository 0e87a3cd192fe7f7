//! Cutting a byte stream into server-sent events (WHATWG HTML §9.2, "event stream").
//!
//! A line ends at LF, CR or CRLF, also when the two bytes of a CRLF come in different chunks. A byte
//! order mark counts at the start of the stream only. An event is complete at its blank line: what
//! is left at the end of the stream is not an event. Bytes are not decoded here.
//!
//! Limits: the `data` of an event, and each line of it, may have `max_event_bytes` (default 16 MiB)
//! bytes. An event over it is reported once and skipped to its end.

use std::ops::Range;
use std::time::Duration;

use crate::error::EventTooLong;
use crate::line::DEFAULT_MAX_MESSAGE_BYTES;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const PREFIX: usize = 512;
/// A field's name, colon and space, and a mark, are not counted.
const MARGIN: usize = 16;
const KEEP_CAPACITY: usize = 16 * 1024;
/// An id goes back to the server in a header; a longer one is of no use.
const MAX_ID: usize = 1024;
/// `retry` in milliseconds; what is longer is a day.
const MAX_RETRY: u64 = 24 * 60 * 60 * 1000;

/// One complete event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The `event` field; empty when there was none, which means `message`.
    pub name: &'a [u8],
    /// The `data` fields, joined by LF. May be empty.
    pub data: &'a [u8],
}

/// Cuts events out of chunks: [`push`](Self::push), then [`next_event`](Self::next_event) until it
/// gives nothing.
#[derive(Debug)]
pub struct EventReader {
    buffer: Vec<u8>,
    /// Where the current line begins.
    start: usize,
    /// Up to where the buffer was searched for a line end.
    scanned: usize,
    begun: bool,
    /// The line before ended with CR: an LF now belongs to it.
    after_cr: bool,
    /// The current line's beginning was dropped.
    cut: bool,
    /// The current event is too long and was reported.
    skipping: bool,
    limit: usize,
    pending: Pending,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// The event being read.
#[derive(Debug, Default)]
struct Pending {
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<Option<String>>,
    /// It was handed out; the next line begins another.
    taken: bool,
}

impl Event<'_> {
    /// Whether its name is `message`, as MCP's events are, or missing.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.name.is_empty() || self.name == b"message"
    }
}

impl Default for EventReader {
    fn default() -> Self {
        Self::with_limit(DEFAULT_MAX_MESSAGE_BYTES)
    }
}

impl EventReader {
    /// A reader with the default bound.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader with a bound in bytes.
    #[must_use]
    pub fn with_limit(max_event_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            begun: false,
            after_cr: false,
            cut: false,
            skipping: false,
            limit: max_event_bytes.max(1),
            pending: Pending::default(),
            last_id: None,
            retry: None,
        }
    }

    /// Appends a chunk.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned = self.scanned.saturating_sub(self.start);
            self.start = 0;
            if self.buffer.len() < KEEP_CAPACITY {
                self.buffer.shrink_to(KEEP_CAPACITY);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event; `None` until more is pushed.
    ///
    /// # Errors
    /// [`EventTooLong`], once per event over the bound.
    pub fn next_event(&mut self) -> Option<Result<Event<'_>, EventTooLong>> {
        if std::mem::take(&mut self.pending.taken) {
            self.pending.clear();
        }
        loop {
            let Some(line) = self.next_line() else {
                return self.overrun().map(Err);
            };
            match self.take_line(line) {
                Line::More => {}
                Line::TooLong(fault) => return Some(Err(fault)),
                Line::Event => {
                    self.pending.taken = true;
                    let Pending { name, data, .. } = &self.pending;
                    return Some(Ok(Event { name, data }));
                }
            }
        }
    }

    /// The id of the last event: what a resumption names as `Last-Event-ID`. `None` when there was
    /// none, it was reset, or it cannot be a header's value.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server wants to be left alone before a reconnection; at most a day.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Begins another stream, the continuation of this one: what was unfinished is dropped, the last
    /// id and the delay are kept.
    pub fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self { last_id, retry, ..Self::with_limit(self.limit) };
    }

    /// The range of the next complete line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr && self.scanned < self.buffer.len() {
            self.after_cr = false;
            if self.buffer.get(self.start) == Some(&b'\n') {
                self.start = self.start.saturating_add(1);
                self.scanned = self.start;
            }
        }
        let unread = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(offset) = memchr::memchr2(b'\r', b'\n', unread) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned.saturating_add(offset);
        self.after_cr = self.buffer.get(end) == Some(&b'\r');
        let begin = self.start;
        self.start = end.saturating_add(1);
        self.scanned = self.start;
        Some(begin..end)
    }

    fn take_line(&mut self, range: Range<usize>) -> Line {
        let mut line = self.buffer.get(range).unwrap_or_default();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if std::mem::take(&mut self.cut) {
            return Line::More;
        }
        if line.is_empty() {
            if std::mem::take(&mut self.skipping) {
                self.pending.clear();
                return Line::More;
            }
            return self.dispatch();
        }
        if self.skipping || line.first() == Some(&b':') {
            return Line::More;
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => line.split_at(colon),
            None => (line, [].as_slice()),
        };
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let length = self.pending.length_with(value);
        if line.len() > self.limit.saturating_add(MARGIN)
            || (name == b"data" && length > self.limit)
        {
            let fault = self.pending.too_long(self.limit, value);
            self.skipping = true;
            return Line::TooLong(fault);
        }
        match name {
            b"data" => self.pending.push(value),
            b"event" => self.pending.name = value.to_vec(),
            b"id" if !value.contains(&0) => self.pending.id = Some(usable_id(value)),
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            _ => {}
        }
        Line::More
    }

    fn dispatch(&mut self) -> Line {
        if let Some(id) = self.pending.id.take() {
            self.last_id = id;
        }
        if self.pending.has_data {
            return Line::Event;
        }
        self.pending.clear();
        Line::More
    }

    /// A line that has not ended and is over the bound already: its bytes are dropped.
    fn overrun(&mut self) -> Option<EventTooLong> {
        let part = self.buffer.get(self.start..).unwrap_or_default();
        let mark = if self.begun { 0 } else { BYTE_ORDER_MARK.len() };
        if part.len() <= self.limit.saturating_add(MARGIN).saturating_add(mark) {
            return None;
        }
        let text =
            part.get(..mark).filter(|start| *start == BYTE_ORDER_MARK).map_or(0, <[u8]>::len);
        let line = part.get(text..).unwrap_or_default();
        let harmless = self.cut || self.skipping || line.first() == Some(&b':');
        let fault = (!harmless).then(|| self.pending.too_long(self.limit, line));
        self.skipping |= fault.is_some();
        self.begun = true;
        self.cut = true;
        self.start = self.buffer.len();
        fault
    }
}

enum Line {
    More,
    Event,
    TooLong(EventTooLong),
}

impl Pending {
    fn push(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
    }

    fn length_with(&self, value: &[u8]) -> usize {
        let joint = usize::from(self.has_data);
        self.data.len().saturating_add(joint).saturating_add(value.len())
    }

    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.data.shrink_to(KEEP_CAPACITY);
        self.has_data = false;
        self.id = None;
        self.taken = false;
    }

    fn too_long(&mut self, limit: usize, next: &[u8]) -> EventTooLong {
        let prefix = self.data.iter().chain(next).take(PREFIX).copied().collect();
        self.clear();
        EventTooLong { limit, prefix }
    }
}

/// An empty id resets; what cannot be the value of a header is as good as none.
fn usable_id(value: &[u8]) -> Option<String> {
    let fits = !value.is_empty() && value.len() <= MAX_ID;
    let text = std::str::from_utf8(value).ok().filter(|_| fits)?;
    text.chars().all(|inner| !inner.is_control()).then(|| text.to_owned())
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(value).ok()?.parse::<u64>().unwrap_or(MAX_RETRY);
    Some(Duration::from_millis(number.min(MAX_RETRY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reader: &mut EventReader, text: &str) -> Vec<(String, String)> {
        reader.push(text.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut events = Vec::new();
        while let Some(event) = reader.next_event() {
            events.push(match event {
                Ok(event) => (text(event.name), text(event.data)),
                Err(fault) => ("too long".to_owned(), text(&fault.prefix)),
            });
        }
        events
    }

    fn data(text: &str) -> Vec<String> {
        all(&mut EventReader::new(), text).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
        assert_eq!(
            data(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"),
            ["first event", "second event"]
        );
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data("data:test\n\ndata: test\n\ndata:  test\n\n"), ["test", "test", " test"]);
    }

    #[test]
    fn lines_end_in_three_ways_and_the_mark_counts_once() {
        assert_eq!(
            data("data: a\r\n\r\ndata: b\n\ndata: c\r\rdata: d\r\n\n"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
        assert_eq!(data("data: a\u{2028}b\n\n"), ["a\u{2028}b"]);
        assert_eq!(data("data: unfinished\n"), Vec::<String>::new());
        assert_eq!(data("unknown: x\nevent: y\n\nid: 4\n\n"), Vec::<String>::new());
    }

    #[test]
    fn names_ids_and_delays_are_kept_apart() {
        let mut reader = EventReader::new();
        let events = all(&mut reader, "event: ping\nid: 7\nretry: 10\ndata: x\n\ndata: y\n\n");
        assert_eq!(events, [("ping".into(), "x".into()), (String::new(), "y".into())]);
        assert_eq!(reader.last_event_id(), Some("7"), "it holds for later events too");
        assert_eq!(reader.retry(), Some(Duration::from_millis(10)));
        assert_eq!(all(&mut reader, "retry: soon\nid: a\0b\n\nid: 8\n\n"), []);
        assert_eq!(reader.last_event_id(), Some("8"), "also without data");
        assert_eq!(reader.retry(), Some(Duration::from_millis(10)));
        assert_eq!(all(&mut reader, "id: 9\ndata: z\n"), []);
        assert_eq!(reader.last_event_id(), Some("8"), "an unfinished event has no id");
        assert_eq!(
            all(&mut reader, "\nid\n\nretry: 99999999999999999999\n"),
            [(String::new(), "z".to_owned())]
        );
        assert_eq!(reader.last_event_id(), None);
        assert_eq!(reader.retry(), Some(Duration::from_millis(MAX_RETRY)));
    }

    #[test]
    fn an_event_over_the_bound_is_reported_once_and_skipped() {
        let mut reader = EventReader::with_limit(8);
        let long = "x".repeat(100);
        let events = all(&mut reader, &format!("data: {long}\ndata: more\n\ndata: ok\n\n"));
        assert_eq!(events, [("too long".into(), long.clone()), (String::new(), "ok".into())]);
        let events = all(&mut reader, "data: 1234\ndata: 567\n\ndata: 1234\ndata: 5678\n\n");
        assert_eq!(
            events,
            [(String::new(), "1234\n567".into()), ("too long".to_owned(), "12345678".to_owned())]
        );
        let events = all(&mut reader, &format!(":{long}\ndata: a"));
        assert_eq!(events, []);
        assert_eq!(all(&mut reader, &long).len(), 1);
        assert_eq!(all(&mut reader, &long), [], "said already");
        assert!(reader.buffer.len() < 200, "and not kept");
        assert_eq!(all(&mut reader, "\n\ndata: b\n\n"), [(String::new(), "b".to_owned())]);
    }

    #[test]
    fn a_comment_of_any_length_is_no_fault() {
        let mut reader = EventReader::with_limit(8);
        assert_eq!(all(&mut reader, "data: a\n:"), []);
        for _ in 0..100 {
            assert_eq!(all(&mut reader, &" keep-alive".repeat(10)), []);
        }
        assert!(reader.buffer.len() < 300);
        assert_eq!(all(&mut reader, "\n\n"), [(String::new(), "a".to_owned())]);
    }
}
