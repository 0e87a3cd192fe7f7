//! Cutting a byte stream into lines.
//!
//! A line ends at LF and nowhere else (U+2028 is text). A UTF-8 byte order mark at the start of a
//! line and a CR before the LF are not part of it; blank lines are skipped. Only new bytes are
//! searched, a line is handed out in place, and the buffer goes back to 16 KiB after a big one. Room for more is never
//! written to before what is read into it, so that it takes memory only as far as it is filled. Who reads into
//! memory of its own hands each piece to [`LineReader::feed`]: then only the beginning of a line is ever kept, and
//! nothing between two lines.
//!
//! Limits: a line may have `max_message_bytes` (default 16 MiB) bytes.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::LineTooLong;

const INITIAL: usize = 16 * 1024;
const PREFIX: usize = 512;
/// From here on a line is worth its own buffer.
const LARGE: usize = 1024 * 1024;
const READ: usize = 4 * 1024;
const MARGIN: usize = BYTE_ORDER_MARK.len() + 1;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Default bound of one message: 16 MiB.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Sans-I/O line splitter: bytes in, lines out.
///
/// Either [`push`](Self::push) bytes, or read straight into [`room`](Self::room). Then take lines until there is none.
///
/// A line over the bound is reported once as [`LineTooLong`], dropped up to its end, and reading
/// goes on with the line after it.
#[derive(Debug)]
pub struct LineReader {
    /// Unread from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// `start..scanned` is known to hold no LF.
    scanned: usize,
    limit: usize,
    /// Inside a line that was reported as too long.
    skipping: bool,
}

impl Default for LineReader {
    fn default() -> Self {
        Self::new()
    }
}

impl LineReader {
    /// A reader with the default bound of 16 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_MAX_MESSAGE_BYTES)
    }

    /// A reader with its own bound in bytes (at least 1).
    #[must_use]
    pub fn with_limit(max_message_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit: max_message_bytes.max(1),
            skipping: false,
        }
    }

    /// What to append to: its spare capacity, never nothing, is there to be read into.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.make_room(READ);
        &mut self.buffer
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Hands every line that ends in `bytes` to `take`, in place if nothing is left from before, and keeps the rest.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Result<&[u8], LineTooLong>)) {
        let mut rest = bytes;
        while !self.is_within_line() {
            let Some(end) = memchr::memchr(b'\n', rest) else { break };
            let (line, after) = rest.split_at_checked(end).unwrap_or_default();
            rest = after.get(1..).unwrap_or_default();
            let line = strip(line);
            if line.len() > self.limit {
                let prefix = line.get(..PREFIX).unwrap_or(line).to_vec();
                take(Err(LineTooLong { limit: self.limit, prefix }));
            } else if !is_blank(line) {
                take(Ok(line));
            }
        }
        if rest.is_empty() {
            return;
        }
        self.push(rest);
        while let Some(line) = self.next_line() {
            take(line);
        }
        self.release();
    }

    /// Whether the beginning of a line is there without its end.
    #[must_use]
    pub fn is_within_line(&self) -> bool {
        self.skipping || self.start < self.buffer.len()
    }

    /// Gives the memory back, if no line has begun.
    pub fn release(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer = Vec::new();
            (self.start, self.scanned) = (0, 0);
        }
    }

    /// The next complete line that is not blank, without its line end.
    pub fn next_line(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        match self.next_range()? {
            Ok(range) => Some(Ok(strip(self.buffer.get(range).unwrap_or_default()))),
            Err(fault) => Some(Err(fault)),
        }
    }

    /// As [`next_line`](Self::next_line); a line of a mebibyte and more comes with the buffer it was
    /// read into, so that keeping it takes no copy.
    pub fn next_line_to_keep(&mut self) -> Option<Result<Cow<'_, [u8]>, LineTooLong>> {
        let range = match self.next_range()? {
            Ok(range) => range,
            Err(fault) => return Some(Err(fault)),
        };
        if range.len() < LARGE {
            let line = strip(self.buffer.get(range).unwrap_or_default());
            return Some(Ok(Cow::Borrowed(line)));
        }
        let rest = self.buffer.get(self.start..).unwrap_or_default().to_vec();
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.rebase();
        line.truncate(range.end);
        let kept = strip(line.get(range.start..).unwrap_or_default()).len();
        let mark = line.get(range.start..).unwrap_or_default().starts_with(BYTE_ORDER_MARK);
        let start = range.start.saturating_add(if mark { BYTE_ORDER_MARK.len() } else { 0 });
        line.truncate(start.saturating_add(kept));
        line.drain(..start);
        Some(Ok(Cow::Owned(line)))
    }

    fn next_range(&mut self) -> Option<Result<Range<usize>, LineTooLong>> {
        loop {
            let unread = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(offset) = memchr::memchr(b'\n', unread) else {
                self.scanned = self.buffer.len();
                return self.overrun().map(Err);
            };
            let range = self.start..self.scanned.saturating_add(offset);
            self.start = range.end.saturating_add(1);
            self.scanned = self.start;
            let line = strip(self.buffer.get(range.clone()).unwrap_or_default());
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.limit {
                return Some(Err(self.too_long(range.start, range.end)));
            }
            if !is_blank(line) {
                return Some(Ok(range));
            }
        }
    }

    /// What is left after the last line end, at the end of the stream.
    pub fn finish(&mut self) -> Option<&[u8]> {
        let from = self.start;
        self.start = self.buffer.len();
        self.scanned = self.start;
        if std::mem::take(&mut self.skipping) {
            return None;
        }
        let line = strip(self.buffer.get(from..)?);
        (!is_blank(line)).then_some(line)
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Reports or goes on dropping a line that is over the bound and still has no end.
    fn overrun(&mut self) -> Option<LineTooLong> {
        if self.skipping {
            self.start = self.buffer.len();
            return None;
        }
        // A mark and a CR at the edges are not counted.
        if self.buffer.len().saturating_sub(self.start) <= self.limit.saturating_add(MARGIN) {
            return None;
        }
        let fault = self.too_long(self.start, self.buffer.len());
        self.skipping = true;
        self.start = self.buffer.len();
        Some(fault)
    }

    fn too_long(&self, from: usize, end: usize) -> LineTooLong {
        let end = end.min(from.saturating_add(PREFIX));
        let prefix = self.buffer.get(from..end).unwrap_or_default().to_vec();
        LineTooLong { limit: self.limit, prefix }
    }

    /// Makes room for `count` more bytes: moves unread data to the front, grows by doubling, and
    /// gives a big buffer back once little is left in it.
    fn make_room(&mut self, count: usize) {
        let unread = self.buffer.len().saturating_sub(self.start);
        let needed = unread.saturating_add(count);
        if self.buffer.capacity() > INITIAL && needed <= INITIAL {
            let mut small = Vec::with_capacity(INITIAL);
            small.extend_from_slice(self.buffer.get(self.start..).unwrap_or_default());
            self.buffer = small;
            self.rebase();
        } else if unread == 0 {
            self.buffer.clear();
            self.rebase();
        }
        if self.buffer.capacity().saturating_sub(self.buffer.len()) >= count {
            return;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.rebase();
        }
        if self.buffer.capacity() < needed {
            // No more than a line may have, where lines are short.
            let initial = INITIAL.min(self.limit.max(READ));
            // However the pieces fall, a long line takes the same memory: powers of two, and no more than the longest may have.
            let most = self.limit.saturating_add(READ).max(initial).max(needed);
            let size = needed.checked_next_power_of_two().unwrap_or(needed).max(initial).min(most);
            self.buffer.reserve_exact(size.saturating_sub(self.buffer.len()));
        }
    }

    /// The unread bytes now start at the front.
    fn rebase(&mut self) {
        self.scanned = self.scanned.saturating_sub(self.start);
        self.start = 0;
    }
}

fn strip(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: &mut LineReader) -> Vec<Result<String, usize>> {
        let mut all = Vec::new();
        while let Some(line) = reader.next_line() {
            all.push(match line {
                Ok(line) => Ok(String::from_utf8_lossy(line).into_owned()),
                Err(fault) => Err(fault.limit),
            });
        }
        all
    }

    #[test]
    fn strips_mark_and_cr_and_skips_blank_lines() {
        let mut reader = LineReader::new();
        reader
            .push("\u{feff}a\r\n\r\n \t\nb\u{2028}c\r\n\u{feff}\r\n\u{feff}d\r\r\nrest".as_bytes());
        assert_eq!(lines(&mut reader), [Ok("a".into()), Ok("b\u{2028}c".into()), Ok("d\r".into())]);
        assert_eq!(reader.finish(), Some(b"rest".as_slice()));
        assert_eq!(reader.finish(), None);
    }

    #[test]
    fn what_is_fed_comes_out_as_what_is_pushed_and_nothing_is_kept_between_lines() {
        let text = "\u{feff}a\r\n\r\n \t\nb\u{2028}c\r\n12345678901\n\nd\nlong and longer\nend\n"
            .as_bytes();
        for size in 1..=text.len() {
            let (mut fed, mut pushed) = (LineReader::with_limit(10), LineReader::with_limit(10));
            let (mut seen, mut expected) = (Vec::new(), Vec::new());
            for piece in text.chunks(size) {
                fed.feed(piece, |line| {
                    seen.push(match line {
                        Ok(line) => Ok(String::from_utf8_lossy(line).into_owned()),
                        Err(fault) => Err(fault.limit),
                    });
                });
                pushed.push(piece);
                expected.extend(lines(&mut pushed));
            }
            assert_eq!(seen, expected, "{size}");
            assert_eq!(seen.len(), 6, "{size}: {seen:?}");
            assert_eq!(fed.capacity(), 0);
        }
    }

    #[test]
    fn a_long_line_takes_no_more_memory_than_the_longest_may() {
        for first in [1, 63_000, 65_536, 700_000] {
            let mut reader = LineReader::with_limit(1_500_000);
            reader.feed(&vec![b'x'; first], |_| panic!("no line has ended"));
            for _ in 0..1_400_000 / READ {
                reader.room().extend([b'x'; READ]);
                assert!(reader.next_line_to_keep().is_none_or(|line| line.is_err()));
            }
            assert!(reader.capacity() <= 1_500_000 + 2 * READ, "{first}: {}", reader.capacity());
        }
    }

    #[test]
    fn a_line_over_the_bound_is_reported_once_and_skipped() {
        let mut reader = LineReader::with_limit(4);
        for chunk in ["1234\n12", "345678", "9abcdef", "x\nok\n12345\n", "end\n"] {
            reader.push(chunk.as_bytes());
            if chunk == "9abcdef" {
                assert_eq!(lines(&mut reader), [Ok("1234".into()), Err(4)]);
            }
        }
        assert_eq!(lines(&mut reader), [Ok("ok".into()), Err(4), Ok("end".into())]);
    }

    #[test]
    fn a_large_line_takes_its_buffer_with_it_and_leaves_what_follows() {
        let mut reader = LineReader::new();
        let big = "x".repeat(LARGE);
        for chunk in ["small\n\u{feff}", &big, "\r\n", &big, "\nnext\nre"] {
            reader.push(chunk.as_bytes());
        }
        let mut seen = Vec::new();
        while let Some(line) = reader.next_line_to_keep() {
            let line = line.unwrap();
            seen.push((line.len(), matches!(line, Cow::Owned(_))));
        }
        assert_eq!(seen, [(5, false), (LARGE, true), (LARGE, true), (4, false)]);
        reader.push(b"st\n");
        assert_eq!(lines(&mut reader), [Ok("rest".into())]);
        assert!(reader.capacity() <= INITIAL);
    }

    #[test]
    fn a_reader_of_short_lines_is_small() {
        let mut reader = LineReader::with_limit(8191);
        assert!(reader.room().capacity() >= READ);
        assert!(reader.capacity() <= 8191);
        reader.push(&[b'x'; 8191]);
        reader.push(b"\r\nnext\n");
        assert_eq!(lines(&mut reader).len(), 2);
    }

    #[test]
    fn the_buffer_shrinks_after_a_big_line() {
        let mut reader = LineReader::new();
        let big = vec![b'x'; 3_000_000];
        reader.push(&big);
        reader.push(b"\nnext");
        assert_eq!(lines(&mut reader).len(), 1);
        assert!(reader.room().capacity() <= INITIAL);
        assert!(reader.capacity() <= INITIAL);
        reader.push(b"\n");
        assert_eq!(lines(&mut reader), [Ok("next".into())]);
    }
}
