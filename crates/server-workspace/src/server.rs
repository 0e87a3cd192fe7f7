//! The loop: lines in, requests answered or handed to tasks, cancellations, the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plenipo_wire::protocol::{error_code, methods};
use plenipo_wire::views::Cancelled;
use plenipo_wire::{
    Incoming, LineReader, LineTooLong, ParseFault, ParseFaultKind, RawValue, RequestId, encode,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::call::{Call, Shared, check_additions, frame, too_many};
use crate::probe::Probes;
use crate::protocol::{Era, Failure, answer, id_of_beginning};
use crate::session::Sessions;
use crate::{ServeError, ServerOptions, text};

/// Calls that run at once.
const MAXIMUM_CALLS: usize = 64;
/// How long the commands may take to end when the connection has.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// A call that has ended.
struct Ended {
    id: RequestId,
    serial: u64,
    /// None when it was cancelled.
    answer: Option<Vec<u8>>,
}

/// A call whose answer is still wanted. Dropping it cancels the call.
struct Running {
    /// Tells it from a cancelled call that had the same id and has not ended yet.
    serial: u64,
    _cancel: oneshot::Sender<()>,
}

/// One connection.
pub(crate) struct Server {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Vec<u8>>,
    calls: JoinSet<Ended>,
    running: HashMap<RequestId, Running>,
    serial: u64,
}

impl Server {
    pub(crate) fn new(
        options: ServerOptions,
        outbox: mpsc::Sender<Vec<u8>>,
    ) -> Result<Self, ServeError> {
        check_additions(&options).map_err(|source| ServeError::Additions { source })?;
        let shared =
            Arc::new(Shared { options, probes: Probes::default(), sessions: Sessions::default() });
        Ok(Self { shared, outbox, calls: JoinSet::new(), running: HashMap::new(), serial: 0 })
    }

    /// Serves until the input ends or the writer is gone; then ends what runs.
    pub(crate) async fn run<R: AsyncRead + Unpin>(
        mut self,
        mut input: R,
    ) -> Result<(), ServeError> {
        let mut lines = LineReader::with_limit(self.shared.options.max_message_bytes);
        let served = loop {
            tokio::select! {
                biased;
                () = self.outbox.closed() => break Ok(()),
                Some(ended) = self.calls.join_next() => self.finish(ended).await,
                read = input.read_buf(lines.room()) => match read {
                    Ok(0) => break Ok(()),
                    Ok(_) => self.take_lines(&mut lines).await,
                    Err(source) => break Err(ServeError::Read { source }),
                }
            }
        };
        if let Some(line) = lines.finish() {
            self.take(line).await;
        }
        self.end_calls().await;
        served
    }

    async fn take_lines(&mut self, lines: &mut LineReader) {
        while let Some(line) = lines.next_line() {
            match line {
                Ok(line) => self.take(line).await,
                Err(fault) => self.refuse_length(&fault).await,
            }
        }
    }

    async fn take(&mut self, line: &[u8]) {
        match Incoming::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, params).await,
            Ok(Incoming::Notification { method, params }) if method == methods::CANCELLED => {
                self.cancel(params);
            }
            // Other notifications need nothing; answers belong to requests never made here.
            Ok(_) => {}
            Err(fault) => self.refuse_line(&fault).await,
        }
    }

    async fn request(&mut self, id: RequestId, method: &str, params: Option<&RawValue>) {
        if self.running.contains_key(&id) {
            let message = format!("request id {id} is in use");
            return self.fail(Some(&id), Failure::invalid_request(message)).await;
        }
        let era = match Era::of(params) {
            Ok(era) => era,
            Err(failure) => return self.fail(Some(&id), failure).await,
        };
        if method == methods::TOOLS_CALL {
            return match Call::accept(params) {
                Ok(call) => self.start(id, era, call).await,
                Err(failure) => self.fail(Some(&id), failure).await,
            };
        }
        match answer(era, method, params) {
            Ok(result) => {
                let mut frame = Vec::new();
                encode::write_success(&mut frame, &id, &result);
                self.send(frame).await;
            }
            Err(failure) => self.fail(Some(&id), failure).await,
        }
    }

    async fn start(&mut self, id: RequestId, era: Era, call: Call) {
        if self.calls.len() >= MAXIMUM_CALLS {
            return self.send(frame(&id, era, &too_many(MAXIMUM_CALLS))).await;
        }
        let (cancel, cancelled) = oneshot::channel();
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        self.running.insert(id.clone(), Running { serial, _cancel: cancel });
        let running = call.run(Arc::clone(&self.shared), self.outbox.clone(), cancelled);
        self.calls.spawn(async move {
            let answer = running.await.map(|result| frame(&id, era, &result));
            Ended { id, serial, answer }
        });
    }

    /// Answers an ended call, unless its cancellation arrived meanwhile.
    async fn finish(&mut self, ended: Result<Ended, JoinError>) {
        let Ok(Ended { id, serial, answer }) = ended else { return };
        if self.running.get(&id).is_none_or(|running| running.serial != serial) {
            return;
        }
        self.running.remove(&id);
        if let Some(answer) = answer {
            self.send(answer).await;
        }
    }

    /// Ends a call; one that is unknown or has ended is none of anybody's business any more.
    fn cancel(&mut self, params: Option<&RawValue>) {
        if let Some(Ok(cancelled)) = params.map(Cancelled::from_raw) {
            self.running.remove(&cancelled.request_id);
        }
    }

    async fn refuse_line(&self, fault: &ParseFault) {
        let code = match fault.kind() {
            ParseFaultKind::NotJsonRpc => error_code::INVALID_REQUEST,
            _ => error_code::PARSE_ERROR,
        };
        let message = format!("failed to {}", text::chain(fault));
        self.fail(None, Failure { code, message, data: None }).await;
    }

    async fn refuse_length(&self, fault: &LineTooLong) {
        let id = id_of_beginning(&fault.prefix);
        let message = format!("failed to {fault}");
        self.fail(id.as_ref(), Failure::invalid_request(message)).await;
    }

    async fn fail(&self, id: Option<&RequestId>, failure: Failure) {
        let mut frame = Vec::new();
        let data = failure.data.as_ref();
        encode::write_failure(&mut frame, id, failure.code, &failure.message, data);
        self.send(frame).await;
    }

    /// Waits while the host does not read, so that it cannot make answers pile up.
    async fn send(&self, frame: Vec<u8>) {
        // Without a writer the loop ends by itself.
        self.outbox.send(frame).await.ok();
    }

    async fn end_calls(mut self) {
        self.running.clear();
        let all = async { while self.calls.join_next().await.is_some() {} };
        // What is still there is killed when its task is dropped.
        timeout(SHUTDOWN, all).await.ok();
    }
}
