//! What a server writes to stderr: bounded, offered to the observer, never a failure.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use plenipo_wire::LineReader;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::observer::{Event, Observer};
use crate::server_name::ServerName;
use crate::text::harmless;

const LINES: usize = 20;
const BYTES: usize = 8 * 1024;

/// The last 20 lines, at most 8 KiB together.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: Mutex<VecDeque<String>>,
}

impl Tail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line.to_owned());
        while lines.len() > LINES || lines.iter().map(String::len).sum::<usize>() > BYTES {
            lines.pop_front();
        }
    }
}

/// Reads until the end; a line over 8 KiB is cut.
pub(crate) async fn read_stderr(
    mut stderr: impl AsyncRead + Unpin,
    tail: &Tail,
    server: &ServerName,
    observer: &dyn Observer,
) {
    let mut reader = LineReader::with_limit(BYTES - 1);
    let take = |bytes: &[u8]| {
        let line: String = String::from_utf8_lossy(bytes).chars().map(harmless).collect();
        tail.push(&line);
        observer.event(&Event::Stderr { server, line: &line });
    };
    while let Ok(count @ 1..) = stderr.read(reader.spare()).await {
        reader.advance(count);
        while let Some(line) = reader.next_line() {
            match line {
                Ok(line) => take(line),
                Err(fault) => take(&fault.prefix),
            }
        }
    }
    if let Some(rest) = reader.finish() {
        take(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Silent;

    #[tokio::test]
    async fn keeps_the_last_lines_within_bounds() {
        let server = ServerName::new("s").unwrap();
        let tail = Tail::default();
        let mut text: String = (0..30).map(|number| format!("line {number}\x1b[0m\r\n")).collect();
        text.push_str(&"x".repeat(20_000));
        text.push_str("\nlast \u{e9}");
        read_stderr(text.as_bytes(), &tail, &server, &Silent).await;
        let lines = tail.lines();
        assert_eq!(lines.last().unwrap(), "last é");
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[0], "line 12\u{fffd}[0m");
        assert!(lines.iter().map(String::len).sum::<usize>() <= BYTES);
    }
}
