//! Servers that send notices unasked, and those about single resources after `resources/subscribe`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plenipo_wire::Fragment;
use plenipo_wire::protocol::methods;
use tokio::task::JoinHandle;

use super::Sink;
use crate::changes::{ChangeFilter, List};
use crate::connection::Connection;
use crate::peer::{Peer, RequestFault};

struct Subscriber {
    peer: Arc<Peer>,
    sink: Arc<Sink>,
    /// Lists that the server says it tells about.
    announced: ChangeFilter,
    limit: Duration,
}

pub(super) fn start(connection: &Connection, sink: &Arc<Sink>) -> JoinHandle<()> {
    let announces = |list| connection.announces(list, "listChanged");
    let subscribable = connection.announces(List::Resources, "subscribe");
    let announced = ChangeFilter {
        tools: announces(List::Tools),
        prompts: announces(List::Prompts),
        resources: announces(List::Resources),
        uris: if subscribable { sink.filter.uris.clone() } else { BTreeSet::new() },
    };
    let (peer, sink) = (Arc::clone(&connection.peer), Arc::clone(sink));
    let subscriber = Subscriber { peer, sink, announced, limit: connection.options.start_timeout };
    tokio::spawn(async move { subscriber.run().await })
}

/// Ends the subscription with its task.
struct Listed<'a>(&'a Subscriber, BTreeSet<String>);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let Self(subscriber, uris) = self;
        subscriber.peer.sinks.remove(&subscriber.sink);
        subscriber.sink.end();
        for uri in std::mem::take(uris) {
            subscriber.unsubscribe(uri);
        }
    }
}

impl Subscriber {
    async fn run(&self) {
        self.peer.sinks.add(&self.sink);
        let mut listed = Listed(self, BTreeSet::new());
        for uri in &self.announced.uris {
            let subscribed =
                self.peer.request(methods::RESOURCES_SUBSCRIBE, self.limit, |params| {
                    params.string("uri", uri);
                });
            match subscribed.await {
                Ok(_) => drop(listed.1.insert(uri.clone())),
                // One that cannot be subscribed to is not granted; the others may be.
                Err(RequestFault::Peer(_)) => {}
                Err(fault) => return self.sink.fail(fault),
            }
        }
        let mut granted = self.announced.clone();
        granted.uris.clone_from(&listed.1);
        self.sink.acknowledge(&granted);
        self.peer.pending.wait_for_end().await;
        listed.1.clear();
    }

    /// Nobody waits for the answer.
    fn unsubscribe(&self, uri: String) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.peer.pending.closed().is_some() {
            return;
        }
        let (peer, limit) = (Arc::clone(&self.peer), self.limit);
        let uri = Fragment::string(&uri);
        runtime.spawn(async move {
            let asked = peer.request(methods::RESOURCES_UNSUBSCRIBE, limit, |params| {
                params.fragment("uri", &uri);
            });
            asked.await.ok();
        });
    }
}
