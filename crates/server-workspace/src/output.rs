//! Output of a command: captured up to a bound, read to the end, shown as text.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::text::encoded_bytes;

/// What is kept of each of stdout and stderr: 1 MiB.
pub(crate) const CAPTURED_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 32 * 1024;

/// One pipe of a command and what came through it.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    captured: Captured,
}

/// The first bytes of some output, and how much there was.
#[derive(Debug, Default, Clone)]
pub(crate) struct Captured {
    bytes: Vec<u8>,
    limit: usize,
    total: u64,
}

/// Captured output as text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shown {
    /// What is not UTF-8 became U+FFFD.
    pub(crate) text: String,
    /// Bytes that the command wrote.
    pub(crate) total: u64,
    /// Whether `text` is only the beginning.
    pub(crate) truncated: bool,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    pub(crate) fn new(pipe: Option<R>, limit: usize) -> Self {
        let captured = Captured::with_limit(limit);
        Self { pipe, buffer: Vec::new(), captured }
    }

    /// Waits for more output and captures it; empty at the end. Never returns after the end, and
    /// loses nothing when it is dropped.
    pub(crate) async fn more(&mut self) -> &[u8] {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        self.buffer.resize(READ_BYTES, 0);
        let count = pipe.read(&mut self.buffer).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        let chunk = self.buffer.get(..count).unwrap_or_default();
        self.captured.push(chunk);
        chunk
    }

    /// Whether the end was reached.
    pub(crate) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    pub(crate) fn into_captured(self) -> Captured {
        self.captured
    }
}

impl Captured {
    /// Nothing yet, and room for so many bytes.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        self.total = self.total.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
    }

    /// The bytes, if all of them were kept.
    pub(crate) fn complete(&self) -> Option<&[u8]> {
        self.is_complete().then_some(&self.bytes)
    }

    /// The bytes that were kept.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.bytes
    }

    /// As text that takes at most `encoded` bytes inside a JSON string.
    pub(crate) fn show(&self, encoded: usize) -> Shown {
        let mut shown =
            Shown { total: self.total, truncated: !self.is_complete(), ..Shown::default() };
        let mut left = encoded;
        for character in self.characters() {
            let Some(rest) = left.checked_sub(encoded_bytes(character)) else {
                shown.truncated = true;
                break;
            };
            left = rest;
            shown.text.push(character);
        }
        shown
    }

    /// The characters, without one that the bound cut in two.
    fn characters(&self) -> impl Iterator<Item = char> {
        let mut chunks = self.bytes.utf8_chunks().peekable();
        let complete = self.is_complete();
        std::iter::from_fn(move || {
            let chunk = chunks.next()?;
            let cut = !complete && chunks.peek().is_none();
            let bad = !chunk.invalid().is_empty() && !cut;
            Some(chunk.valid().chars().chain(bad.then_some(char::REPLACEMENT_CHARACTER)))
        })
        .flatten()
    }

    fn is_complete(&self) -> bool {
        u64::try_from(self.bytes.len()).is_ok_and(|kept| kept == self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, chunks: &[&[u8]]) -> Captured {
        let mut captured = Captured { limit, ..Captured::default() };
        chunks.iter().for_each(|chunk| captured.push(chunk));
        captured
    }

    #[test]
    fn bytes_beyond_the_bound_are_counted_and_dropped() {
        let exact = captured(4, &[b"ab", b"cd", b""]);
        assert_eq!(exact.complete(), Some(b"abcd".as_slice()));
        let over = captured(4, &[b"abc", b"def", b"g"]);
        assert_eq!(over.complete(), None);
        let expected = Shown { text: "abcd".to_owned(), total: 7, truncated: true };
        assert_eq!(over.show(100), expected);
    }

    #[test]
    fn text_is_lossy_but_never_ends_in_half_a_character() {
        assert_eq!(captured(9, &[b"a\xffb\xc3"]).show(100).text, "a\u{fffd}b\u{fffd}");
        assert_eq!(captured(4, &["abcä".as_bytes()]).show(100).text, "abc");
        assert_eq!(captured(5, &["abcäd".as_bytes()]).show(100).text, "abcä");
    }

    #[test]
    fn text_is_cut_where_its_json_would_be_too_long() {
        let shown = captured(9, &[b"\x00\x00\x00"]).show(13);
        assert_eq!((shown.text.as_str(), shown.truncated), ("\0\0", true));
        assert!(!captured(9, &[b"\x00\x00"]).show(12).truncated);
    }
}
