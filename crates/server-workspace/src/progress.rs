//! `notifications/progress` of one call: how much output there is, and its newest line.

use plenipo_wire::protocol::methods;
use plenipo_wire::{Fragment, RequestId, encode};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use crate::text::one_line;

/// The least time between two notifications.
const INTERVAL: Duration = Duration::from_millis(100);
const LINE_CHARACTERS: usize = 200;
/// What is kept of each stream to find its newest line.
const TAIL_BYTES: usize = 1024;

/// Where a piece of output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdout,
    Stderr,
}

/// Tells the caller how a command is getting on, at most ten times a second. `progress` is the
/// number of bytes written so far; there is no total.
#[derive(Debug)]
pub(crate) struct Progress {
    token: Option<Fragment>,
    outbox: mpsc::Sender<Vec<u8>>,
    bytes: i64,
    tails: [Vec<u8>; 2],
    newest: Source,
    /// There is output that the caller has not been told of.
    pending: bool,
    next: Instant,
}

impl Progress {
    /// Without a token nothing is ever sent.
    pub(crate) fn new(token: Option<&RequestId>, outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            token: token.map(RequestId::to_fragment),
            outbox,
            bytes: 0,
            tails: [Vec::new(), Vec::new()],
            newest: Source::Stdout,
            pending: false,
            next: Instant::now(),
        }
    }

    /// Takes note of new output.
    pub(crate) fn note(&mut self, source: Source, chunk: &[u8]) {
        if self.token.is_none() || chunk.is_empty() {
            return;
        }
        self.bytes = self.bytes.saturating_add(i64::try_from(chunk.len()).unwrap_or(i64::MAX));
        self.newest = source;
        self.pending = true;
        let [stdout, stderr] = &mut self.tails;
        let tail = if source == Source::Stdout { stdout } else { stderr };
        let newest = chunk.get(chunk.len().saturating_sub(TAIL_BYTES)..).unwrap_or(chunk);
        tail.extend_from_slice(newest);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
    }

    /// Returns when a notification is due; never while there is nothing to tell.
    pub(crate) async fn due(&self) {
        if !self.pending {
            std::future::pending::<()>().await;
        }
        sleep_until(self.next).await;
    }

    /// Sends a notification, or leaves it for later when the caller does not keep up.
    pub(crate) fn send(&mut self) {
        let Some(token) = &self.token else { return };
        let params = Fragment::object(|object| {
            object.fragment("progressToken", token);
            object.integer("progress", self.bytes);
            if let Some(line) = self.line() {
                object.string("message", &line);
            }
        });
        let mut frame = Vec::new();
        encode::write_notification(&mut frame, methods::PROGRESS, Some(&params));
        self.pending = self.outbox.try_send(frame).is_err();
        self.next = Instant::now() + INTERVAL;
    }

    fn line(&self) -> Option<String> {
        let [stdout, stderr] = &self.tails;
        let tail = if self.newest == Source::Stdout { stdout } else { stderr };
        let text = String::from_utf8_lossy(tail);
        let mut lines = text.rsplit(['\n', '\r']).map(str::trim);
        lines.find(|line| !line.is_empty()).map(|line| one_line(line, LINE_CHARACTERS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_is_the_message_and_bytes_are_the_progress() {
        let (outbox, mut frames) = mpsc::channel(8);
        let mut progress = Progress::new(Some(&RequestId::Text("t".into())), outbox);
        progress.note(Source::Stdout, b"one\ntwo");
        progress.send();
        progress.note(Source::Stdout, b"o\n\n");
        progress.send();
        progress.note(Source::Stderr, &[b'x'; 5000]);
        progress.send();
        progress.note(Source::Stdout, b"10%\r20%\r");
        progress.send();
        let mut sent = String::new();
        while let Ok(frame) = frames.try_recv() {
            sent.push_str(&String::from_utf8(frame).unwrap());
        }
        insta::assert_snapshot!(sent);
    }

    #[test]
    fn a_caller_that_does_not_keep_up_is_told_later() {
        let (outbox, frames) = mpsc::channel(1);
        let mut progress = Progress::new(Some(&RequestId::Number(1)), outbox);
        progress.note(Source::Stdout, b"a");
        progress.send();
        assert!(!progress.pending);
        progress.note(Source::Stdout, b"b");
        progress.send();
        assert!(progress.pending);
        assert_eq!(frames.len(), 1);
    }

    #[test]
    fn without_a_token_there_is_nothing_to_tell() {
        let (outbox, frames) = mpsc::channel(1);
        let mut progress = Progress::new(None, outbox);
        progress.note(Source::Stdout, b"a");
        progress.send();
        assert!(!progress.pending && frames.is_empty());
    }
}
