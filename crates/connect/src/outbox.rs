//! Frames on their way to the server.
//!
//! A frame is queued whole and written by whoever queued it, without another task. A writer that
//! is dropped half-way leaves the rest to the next one, so frames are never torn. The reader
//! queues too, but never waits.

use std::fmt;
use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, watch};

/// Above this many unsent bytes nothing more is queued.
const FULL: usize = 32 * 1024 * 1024;
/// Above this many unsent bytes the reader queues no more answers.
const FULL_FOR_ANSWERS: usize = 1024 * 1024;
const KEEP_CAPACITY: usize = 64 * 1024;

pub(crate) type WriteHalf = Pin<Box<dyn AsyncWrite + Send>>;

pub(crate) struct Outbox {
    queue: Mutex<Vec<u8>>,
    pipe: AsyncMutex<Pipe>,
    closing: watch::Sender<bool>,
    flush_scheduled: AtomicBool,
    /// Of the connection. A caller's own may end, or stand still, before what it was given is written.
    runtime: Option<Handle>,
}

struct Pipe {
    stdin: Option<WriteHalf>,
    unsent: Vec<u8>,
    sent: usize,
}

/// So many bytes are waiting that no more are taken.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

impl Outbox {
    pub(crate) fn new(stdin: WriteHalf) -> Self {
        Self {
            queue: Mutex::default(),
            pipe: AsyncMutex::new(Pipe { stdin: Some(stdin), unsent: Vec::new(), sent: 0 }),
            closing: watch::Sender::new(false),
            flush_scheduled: AtomicBool::new(false),
            runtime: Handle::try_current().ok(),
        }
    }

    /// Queues what `write` appends, which has to be whole frames.
    pub(crate) fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Full> {
        self.push_below(FULL, write)
    }

    /// Queues an answer to the server.
    pub(crate) fn push_answer(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Full> {
        self.push_below(FULL_FOR_ANSWERS, write)
    }

    fn push_below(&self, limit: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Full> {
        let mut queue = self.lock_queue();
        if queue.len() > limit {
            return Err(Full { waiting: queue.len() });
        }
        write(&mut queue);
        Ok(())
    }

    /// Writes everything queued so far. May be dropped at any point.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        tokio::select! {
            biased;
            written = self.write() => written,
            () = self.closed() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes what the pipe takes without waiting. False when something is left, perhaps because somebody
    /// else is writing: then it needs a [`schedule_flush`](Self::schedule_flush).
    pub(crate) fn flush_at_once(&self) -> io::Result<bool> {
        // Whoever waits for the pipe later tells it whom to wake.
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.write()).poll(&mut context) {
            Poll::Ready(written) => written.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Lets a task on the connection's own runtime write what is queued; at most one waits at a time.
    pub(crate) fn schedule_flush(self: &Arc<Self>) {
        let Some(runtime) = &self.runtime else { return };
        if self.flush_scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let outbox = Arc::clone(self);
        runtime.spawn(async move {
            // A broken pipe shows up at the reading end.
            outbox.flush().await.ok();
        });
    }

    /// Closes the server's stdin; what is unsent is dropped.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        self.pipe.lock().await.stdin = None;
    }

    async fn write(&self) -> io::Result<()> {
        let mut pipe = self.pipe.lock().await;
        self.flush_scheduled.store(false, Ordering::Release);
        pipe.write_rest().await?;
        std::mem::swap(&mut pipe.unsent, &mut *self.lock_queue());
        pipe.write_rest().await
    }

    async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        closing.wait_for(|closing| *closing).await.ok();
    }

    fn lock_queue(&self) -> MutexGuard<'_, Vec<u8>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipe {
    async fn write_rest(&mut self) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        while let Some(rest) = self.unsent.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match stdin.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.sent = self.sent.saturating_add(count),
            }
        }
        self.sent = 0;
        self.unsent.clear();
        self.unsent.shrink_to(KEEP_CAPACITY);
        Ok(())
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn frame(number: usize, size: usize) -> Vec<u8> {
        let mut frame = format!("{number}:").into_bytes();
        frame.resize(size + frame.len(), b'x');
        frame.push(b'\n');
        frame
    }

    fn is_whole(line: &str) -> bool {
        let (number, rest) = line.split_once(':').unwrap();
        number.parse::<usize>().is_ok_and(|number| rest.len() == number % 97 * 40)
            && rest.bytes().all(|byte| byte == b'x')
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Writers come, are dropped half-way, and others take over, on a pipe that takes little.
        #[test]
        fn a_writer_that_is_dropped_never_tears_a_frame(
            patience in prop::collection::vec(0_u8..4, 1..40), pipe in 1_usize..600,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let count = patience.len();
            let text = runtime.block_on(async {
                let (near, mut far) = tokio::io::duplex(pipe);
                let outbox = Arc::new(Outbox::new(Box::pin(near)));
                let reader = tokio::spawn(async move {
                    let mut text = String::new();
                    far.read_to_string(&mut text).await.unwrap();
                    text
                });
                for (number, polls) in patience.into_iter().enumerate() {
                    outbox.push(|out| out.extend(frame(number, number % 97 * 40))).unwrap();
                    let mut flush = std::pin::pin!(outbox.flush());
                    for _ in 0..polls {
                        // One poll, then the reader gets its turn.
                        tokio::select! { biased; _ = &mut flush => break, () = std::future::ready(()) => {} }
                        tokio::task::yield_now().await;
                    }
                }
                outbox.flush().await.unwrap();
                outbox.close().await;
                reader.await.unwrap()
            });
            prop_assert_eq!(text.lines().count(), count);
            prop_assert!(text.lines().all(is_whole));
        }
    }

    #[tokio::test]
    async fn what_the_pipe_takes_is_written_at_once_and_the_rest_soon() {
        let (near, mut far) = tokio::io::duplex(16);
        let outbox = Arc::new(Outbox::new(Box::pin(near)));
        outbox.push(|out| out.extend(b"short\n")).unwrap();
        assert!(outbox.flush_at_once().unwrap());
        outbox.push(|out| out.extend(frame(1, 40))).unwrap();
        assert!(!outbox.flush_at_once().unwrap(), "it takes ten more");
        outbox.schedule_flush();
        let mut text = vec![0; 6 + frame(1, 40).len()];
        far.read_exact(&mut text).await.unwrap();
        assert_eq!(text, [b"short\n".to_vec(), frame(1, 40)].concat());
        outbox.close().await;
        outbox.push(|out| out.extend(b"late\n")).unwrap();
        assert!(outbox.flush_at_once().is_err());
    }

    #[test]
    fn what_a_caller_leaves_is_written_when_its_runtime_is_gone() {
        let mut own = tokio::runtime::Builder::new_multi_thread();
        let own = own.worker_threads(1).enable_all().build().unwrap();
        let (near, mut far) = tokio::io::duplex(64);
        let outbox = own.block_on(async { Arc::new(Outbox::new(Box::pin(near))) });
        let another = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..2 {
            outbox.push(|out| out.extend(b"x\n")).unwrap();
            let _here = another.enter();
            outbox.schedule_flush();
        }
        drop(another);
        own.block_on(async {
            let mut text = [0; 4];
            let read = far.read_exact(&mut text);
            tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
        });
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded() {
        let (near, _far) = tokio::io::duplex(16);
        let outbox = Arc::new(Outbox::new(Box::pin(near)));
        let chunk = vec![b'x'; FULL_FOR_ANSWERS + 1];
        outbox.push_answer(|out| out.extend(&chunk)).unwrap();
        assert!(outbox.push_answer(|out| out.extend(&chunk)).is_err());
        outbox.push(|out| out.extend(&chunk)).unwrap();
        for _ in 0..40 {
            outbox.push(|out| out.extend(&chunk)).ok();
        }
        let full = outbox.push(|out| out.extend(&chunk)).unwrap_err();
        assert!(full.waiting > FULL && full.waiting < FULL + 2 * chunk.len());
    }

    #[tokio::test]
    async fn closing_frees_a_writer_that_is_stuck() {
        let (near, _far) = tokio::io::duplex(16);
        let outbox = Arc::new(Outbox::new(Box::pin(near)));
        outbox.push(|out| out.extend([b'x'; 1000])).unwrap();
        let (flushed, ()) = tokio::join!(outbox.flush(), outbox.close());
        assert!(flushed.is_err());
        assert!(outbox.flush().await.is_err(), "and every later one");
        let again = tokio::time::timeout(Duration::from_secs(5), outbox.close()).await;
        assert!(again.is_ok());
    }
}
