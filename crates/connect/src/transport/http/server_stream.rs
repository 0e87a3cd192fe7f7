//! The GET stream on which a legacy server says what belongs to no request: that lists changed, and
//! questions of its own. No call waits for it, and a server without one is no fault.

use std::sync::Arc;
use std::time::Duration;

use plenipo_wire::sse::EventReader;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::exchange::{Pumped, is_stream, pump};
use super::link::HttpLink;
use super::session::Session;
use crate::error::HttpFault;
use crate::peer::Peer;

const RETRY: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// An `endpoint` is a URL.
const FIRST_EVENT: usize = 8 * 1024;
/// A stream that lasted so long was one.
const LIVED: Duration = Duration::from_secs(10);
/// Attempts in a row that bring nothing.
const FRUITLESS: u32 = 3;

/// How long a request waits for the stream on which its server may ask about it.
const HEAD: Duration = Duration::from_secs(1);

/// Whether questions of the server would arrive.
#[derive(Debug)]
pub(super) struct Listening(watch::Sender<bool>);

impl Default for Listening {
    /// There is no stream to wait for.
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

/// Settles it when the stream is given up.
struct Settle<'a>(&'a Listening);

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        self.0.settle();
    }
}

impl Listening {
    fn settle(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the stream is open or there is none; the first to wait in vain is the last.
    pub(super) async fn ready(&self) {
        if *self.0.borrow() {
            return;
        }
        let mut listening = self.0.subscribe();
        if timeout(HEAD, listening.wait_for(|ready| *ready)).await.is_err() {
            self.settle();
        }
    }
}

impl HttpLink {
    /// Keeps the stream open until the connection ends.
    pub(crate) fn open_server_stream(self: &Arc<Self>, peer: &Arc<Peer>) {
        let (link, peer) = (Arc::clone(self), Arc::clone(peer));
        self.listening.0.send_replace(false);
        let task = tokio::spawn(async move {
            let _settle = Settle(&link.listening);
            tokio::select! {
                () = link.listen(&peer) => {}
                _ = link.withdrawn() => {}
            }
        });
        self.hold_stream(task.abort_handle());
    }

    /// Whether a GET is answered by a stream whose first event is `endpoint`: the HTTP+SSE transport
    /// of revision 2024-11-05.
    pub(crate) async fn is_of_old_transport(&self) -> bool {
        let Ok(response) = self.open_stream(&Session::none(), None).await else { return false };
        if !is_stream(&response) {
            return false;
        }
        let mut body = response.into_body();
        let mut reader = EventReader::with_limit(self.max_message_bytes.min(FIRST_EVENT));
        while let Ok(Some(bytes)) = body.next().await {
            reader.push(&bytes);
            if let Some(event) = reader.next_event() {
                return event.is_ok_and(|event| event.name == b"endpoint");
            }
        }
        false
    }

    async fn listen(&self, peer: &Peer) {
        let mut reader = EventReader::with_limit(self.max_message_bytes);
        let mut fruitless = 0;
        while fruitless < FRUITLESS {
            let session = self.sessions.current();
            if session.is_modern() {
                return;
            }
            let begun = Instant::now();
            let events = match self.open_stream(&session, reader.last_event_id()).await {
                Ok(response) if is_stream(&response) => {
                    self.listening.settle();
                    let mut body = response.into_body();
                    reader.restart();
                    match pump(peer, None, &mut reader, &mut body).await {
                        Ok(Pumped::Ended { events, .. }) => events,
                        Ok(Pumped::Answered) | Err(_) => 0,
                    }
                }
                // The session ended: a call will notice and begin another.
                Ok(response) if response.status() == 404 && session.id.is_some() => {
                    self.sessions.replaced(session.number).await;
                    reader = EventReader::with_limit(self.max_message_bytes);
                    continue;
                }
                Ok(response) if is_transient(response.status().as_u16()) => 0,
                // 405 and whatever else: there is none.
                Ok(_) => return,
                Err(HttpFault::Unreachable { .. } | HttpFault::Broken(_)) => 0,
                Err(_) => return,
            };
            // One that only lived is no failure: servers and proxies close what is silent for long.
            let was_good = events > 0 || begun.elapsed() >= LIVED;
            fruitless = if was_good { 0 } else { fruitless + 1 };
            let backoff = RETRY.saturating_mul(1 << fruitless.min(5)).min(LONGEST);
            sleep(reader.retry().unwrap_or(backoff)).await;
            if reader.last_event_id().is_none() {
                // What was said meanwhile is lost.
                peer.lists_changed();
            }
        }
    }
}

fn is_transient(status: u16) -> bool {
    HttpFault::Status { status, preview: String::new() }.is_transient()
}
