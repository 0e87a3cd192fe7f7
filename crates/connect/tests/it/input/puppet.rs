//! Handlers that answer as the test says.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_connect::input::{
    Completion, InputAnswer, InputFuture, InputHandler, InputOffer, InputRefusal, InputRequest,
};
use plenipo_wire::Fragment;

type Answer = Result<InputAnswer, InputRefusal>;
type Script = dyn Fn(&InputRequest) -> Option<Answer> + Send + Sync;

/// Answers, remembers, and counts what was dropped before it could answer.
pub(crate) struct Puppet {
    offer: InputOffer,
    answer: Box<Script>,
    /// How long each answer takes.
    pub(crate) delay: Duration,
    pub(crate) seen: Mutex<Vec<InputRequest>>,
    pub(crate) dropped: AtomicUsize,
}

struct CountDrop<'a>(Option<&'a AtomicUsize>);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Puppet {
    /// `None` never answers.
    pub(crate) fn new(
        offer: InputOffer,
        answer: impl Fn(&InputRequest) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Self {
            offer,
            answer: Box::new(answer),
            delay: Duration::ZERO,
            seen: Mutex::default(),
            dropped: AtomicUsize::new(0),
        }
    }

    /// Accepts everything with this content.
    pub(crate) fn accepting(content: &'static str) -> Arc<Self> {
        Arc::new(Self::new(InputOffer::ELICITATION, move |_| Some(Ok(accept(content)))))
    }

    pub(crate) fn asked(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

pub(crate) fn accept(content: &str) -> InputAnswer {
    InputAnswer::Accept(Some(Fragment::parse(content).unwrap()))
}

impl InputHandler for Puppet {
    fn offers(&self) -> InputOffer {
        self.offer
    }

    fn answer<'a>(&'a self, request: &'a InputRequest) -> InputFuture<'a, Answer> {
        self.seen.lock().unwrap().push(request.clone());
        Box::pin(async move {
            let mut guard = CountDrop(Some(&self.dropped));
            tokio::time::sleep(self.delay).await;
            let answer = match (self.answer)(request) {
                Some(answer) => answer,
                None => pending().await,
            };
            guard.0 = None;
            answer
        })
    }

    fn finished<'a>(
        &'a self,
        _request: &'a InputRequest,
        completion: Completion,
    ) -> InputFuture<'a, ()> {
        Box::pin(completion.wait())
    }
}
