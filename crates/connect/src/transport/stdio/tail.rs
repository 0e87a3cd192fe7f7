//! What a server writes to stderr: bounded, offered to the observer, never a failure.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use plenipo_wire::{LineReader, LineTooLong};
use tokio::io::AsyncRead;

use super::space;
use crate::observer::{Event, tell};
use crate::peer::Peer;
use crate::text::harmless;

/// Bytes of text kept of one server, each line with its end.
const BYTES: usize = 64 * 1024;
const LINE_BYTES: usize = 8 * 1024;

/// The last lines, at most 64 KiB together.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
    }

    fn push(&self, line: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lines.push_back(line.to_owned());
        kept.bytes += size(line);
        while kept.bytes > BYTES
            && let Some(oldest) = kept.lines.pop_front()
        {
            kept.bytes -= size(&oldest);
        }
    }
}

fn size(line: &str) -> usize {
    line.len() + 1
}

/// Reads until the end; a line over 8 KiB is cut.
pub(crate) async fn read_stderr(mut stderr: impl AsyncRead + Unpin, tail: &Tail, peer: &Peer) {
    let mut reader = LineReader::with_limit(LINE_BYTES - 1);
    let take = |bytes: &[u8], is_cut: bool| {
        let text = String::from_utf8_lossy(bytes);
        let text = if is_cut { peer.scrub_cut(&text) } else { peer.scrub(&text) };
        let line: String = text.chars().map(harmless).collect();
        tail.push(&line);
        tell(&*peer.observer, &Event::Stderr { server: &peer.name, line: &line });
    };
    let take_line = |line: Result<&[u8], LineTooLong>| match line {
        Ok(line) => take(line, false),
        Err(fault) => take(&fault.prefix, true),
    };
    while let Ok(1..) = space::read(&mut stderr, |bytes| reader.feed(bytes, take_line)).await {}
    if let Some(rest) = reader.finish() {
        take(rest, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::observer::Silent;
    use crate::server_name::ServerName;

    #[tokio::test]
    async fn keeps_the_last_64_kib() {
        let server = ServerName::new("s").unwrap();
        let peer = Peer::new(server, Box::pin(tokio::io::sink()), Arc::new(Silent));
        let tail = Tail::default();
        let mut text: String =
            (0..9_000).map(|number| format!("line {number}\x1b[0m\r\n")).collect();
        text.push_str(&"x".repeat(20_000));
        text.push_str("\nlast \u{e9}");
        read_stderr(text.as_bytes(), &tail, &peer).await;
        let lines = tail.lines();
        assert_eq!(lines.last().unwrap(), "last é");
        let kept: usize = lines.iter().map(|line| size(line)).sum();
        assert!(kept <= BYTES && kept > BYTES - 100, "{kept}");
        assert!(lines.iter().all(|line| line.len() <= LINE_BYTES));
        assert!(lines.iter().any(|line| line == "line 8999\u{fffd}[0m"));
        assert!(!lines.iter().any(|line| line == "line 0\u{fffd}[0m"));
    }
}
