//! `subscriptions/listen`: a request that stays open, and is asked again when it breaks.

use std::sync::Arc;
use std::time::Duration;

use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::views::ResultType;
use plenipo_wire::{Fragment, RequestId};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::Sink;
use crate::backoff::Backoff;
use crate::changes::ChangeFilter;
use crate::connection::Connection;
use crate::error::PeerError;
use crate::negotiate::ModernMeta;
use crate::peer::{Peer, RequestFault};

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Attempts in a row that are not acknowledged.
const FRUITLESS: u32 = 8;

struct Listener {
    peer: Arc<Peer>,
    sink: Arc<Sink>,
    meta: Fragment,
}

/// How one request ended.
enum End {
    /// The server closed it in good order.
    Complete,
    /// It will not be served, whenever it is asked.
    Refused(RequestFault),
    /// It may be asked again.
    Broken,
    /// The connection is no more.
    Closed(RequestFault),
}

/// Takes the subscription off the peer's list, and tells the server, however it ends.
struct Open<'a> {
    peer: &'a Peer,
    id: i64,
}

pub(super) fn start(
    connection: &Connection,
    modern: &ModernMeta,
    sink: &Arc<Sink>,
) -> JoinHandle<()> {
    let meta = Fragment::object(|object| {
        for (name, value) in modern.entries(None) {
            object.fragment(name, value);
        }
    });
    let (peer, sink) = (Arc::clone(&connection.peer), Arc::clone(sink));
    let listener = Listener { peer, sink, meta };
    tokio::spawn(async move { listener.run().await })
}

/// Ends the subscription with its task.
struct Listed<'a>(&'a Listener);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.peer.sinks.remove(&self.0.sink);
        self.0.sink.end();
    }
}

impl Listener {
    async fn run(&self) {
        self.peer.sinks.add(&self.sink);
        let _listed = Listed(self);
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        loop {
            let before = self.sink.acknowledgements();
            match self.ask().await {
                End::Complete => return,
                End::Refused(fault) | End::Closed(fault) => return self.sink.fail(fault),
                End::Broken => {}
            }
            if self.sink.acknowledgements() > before {
                backoff.reset();
            } else if backoff.attempts() >= FRUITLESS {
                return self.sink.fail(RequestFault::Silence);
            }
            sleep(backoff.next()).await;
        }
    }

    /// One request, from its start to its end.
    async fn ask(&self) -> End {
        let enqueued = self.peer.enqueue(methods::LISTEN, |params| {
            params.object("notifications", |filter| write(filter, &self.sink.filter));
            params.fragment("_meta", &self.meta);
        });
        let (outgoing, answer) = match enqueued {
            Ok(enqueued) => enqueued,
            Err(fault @ RequestFault::Closed(_)) => return End::Closed(fault),
            Err(_) => return End::Broken,
        };
        let open = Open { peer: &self.peer, id: outgoing.id };
        self.sink.listen_as(open.id);
        let answered = tokio::select! {
            biased;
            reply = self.peer.answer(outgoing, answer) => reply,
            () = self.sink.withdrawn() => return End::Broken,
        };
        match answered.and_then(crate::pending::Reply::into_result) {
            Ok(result) if matches!(ResultType::of(&result), Some(ResultType::Unknown(_))) => {
                End::Broken
            }
            Ok(_) => End::Complete,
            Err(RequestFault::Peer(error)) if is_final(&error) => {
                End::Refused(RequestFault::Peer(error))
            }
            Err(fault @ RequestFault::Closed(_)) => End::Closed(fault),
            Err(RequestFault::Fault(fault)) if fault.kind() == crate::ErrorKind::SignIn => {
                End::Refused(RequestFault::Fault(fault))
            }
            Err(_) if self.peer.pending.closed().is_some() => End::Closed(RequestFault::Silence),
            Err(_) => End::Broken,
        }
    }
}

/// Errors that a second attempt would meet again.
fn is_final(error: &PeerError) -> bool {
    matches!(
        error.code,
        error_code::METHOD_NOT_FOUND
            | error_code::INVALID_PARAMS
            | error_code::INVALID_REQUEST
            | error_code::UNSUPPORTED_PROTOCOL_VERSION
            | error_code::MISSING_REQUIRED_CLIENT_CAPABILITY
    )
}

fn write(object: &mut plenipo_wire::encode::ObjectWriter<'_>, filter: &ChangeFilter) {
    let lists = [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ];
    for (name, _) in lists.into_iter().filter(|(_, wanted)| *wanted) {
        object.boolean(name, true);
    }
    if !filter.uris.is_empty() {
        let uris: Vec<_> = filter.uris.iter().map(|uri| Fragment::string(uri)).collect();
        object.array("resourceSubscriptions", &uris);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.peer.pending.forget(self.id) {
            return;
        }
        let params = Fragment::object(|object| {
            object.fragment("requestId", &RequestId::Number(self.id).to_fragment());
        });
        if self.peer.queue_notification(methods::CANCELLED, &params) {
            self.peer.schedule_flush();
        }
    }
}
