//! Connections of HTTP/1.1 to servers without TLS and without a proxy, kept.
//!
//! Whoever sends a request drives its connection, up to the end of the response: no task is woken on the way, and nothing
//! is handed from one to another. Those that nobody uses are watched by one task, which lets go of what its server closed
//! and of what was not used for [`IDLE`]. A connection that is dropped before its response has ended is closed, which is
//! what cancels a request.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use tokio::runtime::{Handle, Id};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep};

use crate::client::{HEAD, HEADERS, IDLE, IDLE_PER_ORIGIN};
use crate::connector::{Connector, Stream};
use crate::error::ClientFault;
use crate::received::Received;
use crate::target::Target;

/// Kept connections; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Lanes(Arc<Shared>);

/// One connection, used for one request at a time.
pub(crate) struct Lane {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<Stream, Full<Bytes>>,
    ended: bool,
    origin: Arc<str>,
    /// Whose system calls tell when there is something to read.
    runtime: Option<Id>,
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    idle: HashMap<Arc<str>, Vec<Idle>>,
    /// Of the task that watches.
    watcher: Option<Waker>,
}

struct Idle {
    lane: Box<Lane>,
    since: Instant,
}

/// Why there is no response.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and only after a failure")]
enum Lost {
    /// Nothing was written.
    Unsent(Request<Full<Bytes>>, hyper::Error),
    Broken(ClientFault),
}

impl Lanes {
    /// Sends a request to where `target` is. One that met a connection that was just closed, and of which nothing was
    /// written, is sent on another.
    pub(crate) async fn send(
        &self,
        connector: &Connector,
        target: &Target,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Received>, ClientFault> {
        request.headers_mut().entry(header::HOST).or_insert_with(|| target.host_header().clone());
        *request.uri_mut() = target.path().clone();
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        let now = Instant::now();
        loop {
            let kept = self.0.lock().take(target.lane(), runtime, now);
            let was_kept = kept.is_some();
            let mut lane = match kept {
                Some(lane) => lane,
                None => Lane::open(connector, target, runtime).await?,
            };
            match lane.exchange(request).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(Response::from_parts(head, Received::on(self, lane, body)));
                }
                Err(Lost::Unsent(unsent, _)) if was_kept => request = unsent,
                Err(Lost::Unsent(_, error)) => return Err(ClientFault::Broken(Box::new(error))),
                Err(Lost::Broken(fault)) => return Err(fault),
            }
        }
    }

    /// Keeps a connection whose response has ended, unless it cannot be used again.
    pub(crate) fn give_back(&self, mut lane: Box<Lane>) {
        let mut state = self.0.lock();
        if state.watcher.is_none() && !self.watch(&mut state) {
            return;
        }
        let waker = state.watcher.as_ref().unwrap_or(Waker::noop());
        // From now on the watcher hears of it.
        if !lane.is_ready(waker) {
            return;
        }
        let idle = state.idle.entry(Arc::clone(&lane.origin)).or_default();
        if idle.len() < IDLE_PER_ORIGIN {
            idle.push(Idle { lane, since: Instant::now() });
        }
    }

    /// Starts the task that watches; false when there is nothing to start it on.
    fn watch(&self, state: &mut State) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        state.watcher = Some(Waker::noop().clone());
        let watch = Watch(Arc::downgrade(&self.0));
        runtime.spawn(watch.run());
        true
    }
}

impl Lane {
    async fn open(
        connector: &Connector,
        target: &Target,
        runtime: Option<Id>,
    ) -> Result<Box<Self>, ClientFault> {
        let stream = connector.clone().connect(target.uri().clone()).await;
        let stream = stream.map_err(|error| ClientFault::Unreachable {
            origin: target.origin(),
            source: error.to_string().into(),
        })?;
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD).max_headers(HEADERS);
        let made = builder.handshake(stream).await;
        let (sender, connection) = made.map_err(|error| ClientFault::Broken(Box::new(error)))?;
        let origin = Arc::clone(target.lane());
        Ok(Box::new(Self { sender, connection, ended: false, origin, runtime }))
    }

    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Lost> {
        let mut sent = pin!(unconstrained(self.sender.try_send_request(request)));
        poll_fn(|context| {
            // The answer is put there by this, and nowhere else: nobody has to be woken for it.
            self.drive(context);
            match sent.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                Poll::Ready(Err(mut error)) => Poll::Ready(Err(match error.take_message() {
                    Some(request) => Lost::Unsent(request, error.into_error()),
                    None => {
                        Lost::Broken(ClientFault::Broken(error.into_error().to_string().into()))
                    }
                })),
                Poll::Pending if self.ended => Poll::Ready(Err(Lost::Broken(gone()))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Reads and writes what can be; whoever is in `context` hears when there is more.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        if !self.ended && Pin::new(&mut self.connection).poll(context).is_ready() {
            self.ended = true;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether a request can be sent now; `waker` hears when that changes.
    fn is_ready(&mut self, waker: &Waker) -> bool {
        let mut drive = unconstrained(poll_fn(|context| {
            self.drive(context);
            Poll::<()>::Pending
        }));
        let polled = Pin::new(&mut drive).poll(&mut Context::from_waker(waker));
        debug_assert!(polled.is_pending(), "it only drives");
        !self.ended && self.sender.is_ready()
    }
}

/// A connection that ended without a word of why.
pub(crate) fn gone() -> ClientFault {
    ClientFault::Broken("the connection ended before the message was complete".into())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The one that was used last, if it still can be.
    fn take(&mut self, origin: &Arc<str>, runtime: Option<Id>, now: Instant) -> Option<Box<Lane>> {
        let idle = self.idle.get_mut(origin)?;
        while let Some(place) = idle.iter().rposition(|idle| idle.lane.runtime == runtime) {
            let Idle { mut lane, since } = idle.swap_remove(place);
            if now.saturating_duration_since(since) < IDLE && lane.is_ready(Waker::noop()) {
                return Some(lane);
            }
        }
        None
    }

    /// Lets go of what ended or is old; true when nothing is left.
    fn tend(&mut self, context: &mut Context<'_>) -> bool {
        if !self.watcher.as_ref().is_some_and(|watcher| watcher.will_wake(context.waker())) {
            self.watcher = Some(context.waker().clone());
        }
        self.idle.retain(|_, idle| {
            idle.retain_mut(|idle| {
                idle.lane.is_ready(context.waker()) && idle.since.elapsed() < IDLE
            });
            !idle.is_empty()
        });
        self.idle.is_empty()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = state.watcher.take() {
            watcher.wake();
        }
    }
}

/// The task that watches what nobody uses.
struct Watch(Weak<Shared>);

impl Watch {
    async fn run(self) {
        let mut pause = pin!(sleep(IDLE));
        poll_fn(|context| {
            let Some(shared) = self.0.upgrade() else { return Poll::Ready(()) };
            let mut is_time = false;
            while pause.as_mut().poll(context).is_ready() {
                is_time = true;
                pause.as_mut().reset(Instant::now() + IDLE);
            }
            let mut state = shared.lock();
            if state.tend(context) && is_time { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Drop for Watch {
    /// Also when its runtime ends: then the next one watches.
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.lock().watcher = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::*;
    use crate::client::HttpClientOptions;

    /// A server that answers each request with its connection's number, until it is told to close all.
    struct Counting {
        target: Target,
        close: mpsc::UnboundedSender<()>,
    }

    impl Counting {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let (close, mut closing) = mpsc::unbounded_channel();
            tokio::spawn(async move {
                let mut open = tokio::task::JoinSet::new();
                let mut number = 0;
                loop {
                    tokio::select! {
                        accepted = listener.accept() => {
                            number += 1;
                            open.spawn(answer(accepted.unwrap().0, number));
                        }
                        told = closing.recv() => match told {
                            Some(()) => open.shutdown().await,
                            None => break,
                        },
                    }
                }
            });
            let target = Target::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
            Self { target, close }
        }

        async fn ask(&self, lanes: &Lanes) -> Bytes {
            let connector = Connector::new(&HttpClientOptions::default());
            let request = Request::post("/").body(Full::default()).unwrap();
            let response = lanes.send(&connector, &self.target, request).await.unwrap();
            response.into_body().read(100).await.unwrap()
        }
    }

    async fn answer(mut stream: TcpStream, number: u32) {
        let mut bytes = [0; 1000];
        while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    }

    impl Lanes {
        fn kept(&self) -> usize {
            self.0.lock().idle.values().map(Vec::len).sum()
        }

        async fn wait_until_kept(&self, count: usize) {
            let waiting = async {
                while self.kept() != count {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_is_used_again_and_let_go_of_when_its_server_closes_it() {
        let (lanes, server) = (Lanes::default(), Counting::start().await);
        for _ in 0..3 {
            assert_eq!(server.ask(&lanes).await, "1");
            assert_eq!(lanes.kept(), 1);
        }
        server.close.send(()).unwrap();
        lanes.wait_until_kept(0).await;
        assert_eq!(server.ask(&lanes).await, "2");
    }

    #[tokio::test]
    async fn what_nobody_uses_for_long_is_let_go_of() {
        let (lanes, server) = (Lanes::default(), Counting::start().await);
        assert_eq!(server.ask(&lanes).await, "1");
        tokio::time::pause();
        tokio::time::advance(IDLE / 2).await;
        assert_eq!(lanes.kept(), 1);
        tokio::time::advance(IDLE).await;
        tokio::time::resume();
        lanes.wait_until_kept(0).await;
        assert_eq!(server.ask(&lanes).await, "2");
    }

    #[test]
    fn a_connection_is_not_used_on_another_runtime_and_watched_by_the_next() {
        let lanes = Lanes::default();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let server = Counting::start().await;
                assert_eq!(server.ask(&lanes).await, "1");
                assert_eq!(server.ask(&lanes).await, "1");
                server.close.send(()).unwrap();
                lanes.wait_until_kept(0).await;
            });
        }
        let server_of_all = std::thread::spawn(|| {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
            let server = runtime.block_on(Counting::start());
            (runtime, server)
        });
        let (_serving, server) = server_of_all.join().unwrap();
        for expected in ["1", "2"] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            assert_eq!(runtime.unwrap().block_on(server.ask(&lanes)), expected);
        }
    }
}
