//! The body of a response, and the connection it comes over.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming};
use tokio::task::coop::unconstrained;

use crate::error::ClientFault;
use crate::lanes::{Lane, Lanes, gone};

/// A body that is read piece by piece. Dropped before its end, it closes a connection of HTTP/1.1.
pub struct Received {
    body: Incoming,
    /// What is driven by reading, up to the end of the body; then it is given back.
    lane: Option<(Box<Lane>, Lanes)>,
}

impl Received {
    /// Over a connection that somebody else drives.
    pub(crate) fn driven(body: Incoming) -> Self {
        Self { body, lane: None }
    }

    pub(crate) fn on(lanes: &Lanes, lane: Box<Lane>, body: Incoming) -> Self {
        let mut received = Self { body, lane: Some((lane, lanes.clone())) };
        received.end_if_over();
        received
    }

    pub(crate) fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }

    /// At least so many bytes are to come, if they all do.
    pub(crate) fn expected(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// The next data or trailers; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<Result<Frame<Bytes>, ClientFault>> {
        poll_fn(|context| self.poll_frame(context)).await
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientFault>>> {
        let polled = match &mut self.lane {
            None => Pin::new(&mut self.body).poll_frame(context),
            Some((lane, _)) => {
                // What is there was put there by driving the connection: nobody has to be woken for it.
                let mut polled = poll_quietly(&mut self.body);
                if polled.is_pending() {
                    lane.drive(context);
                    polled = poll_quietly(&mut self.body);
                }
                if polled.is_pending() && lane.has_ended() {
                    self.lane = None;
                    return Poll::Ready(Some(Err(gone())));
                }
                polled
            }
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                self.end_if_over();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.lane = None;
                Poll::Ready(Some(Err(ClientFault::Broken(Box::new(error)))))
            }
            Poll::Ready(None) => {
                self.give_back();
                Poll::Ready(None)
            }
        }
    }

    fn end_if_over(&mut self) {
        if self.is_over() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        if let Some((lane, lanes)) = self.lane.take() {
            lanes.give_back(lane);
        }
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("body", &self.body).finish_non_exhaustive()
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, hyper::Error>>>;

fn poll_quietly(body: &mut Incoming) -> Polled {
    let mut frame = unconstrained(poll_fn(|context| Pin::new(&mut *body).poll_frame(context)));
    Pin::new(&mut frame).poll(&mut Context::from_waker(Waker::noop()))
}
