//! The server at its two ends: this process's stdin and stdout, or any pair of streams.

use std::io::{self, Read};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::server::Server;
use crate::{ServeError, ServerOptions};

/// Frames that wait for the writer; beyond it requests are no longer read.
const QUEUED_FRAMES: usize = 128;
/// How long the last answers may take once the connection has ended.
const LAST_WRITES: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 * 1024;

/// Serves the host at this process's own stdin and stdout until stdin ends or SIGTERM, SIGINT or
/// SIGHUP arrives. Running commands are ended first.
///
/// Needs a tokio runtime with I/O and time. A current-thread runtime is enough and recommended: the
/// server expects to be what its process is for, and that nobody else in it starts processes. End
/// the runtime with `shutdown_background`: a write to a host that does not read never returns.
///
/// # Errors
/// [`ServeError`] when the options cannot be used, or reading or writing fails.
pub async fn serve(options: ServerOptions) -> Result<(), ServeError> {
    let watched = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let (stop, mut stopped) = mpsc::channel::<()>(1);
    for kind in watched {
        let mut arrivals = signal(kind).map_err(|source| ServeError::Signals { source })?;
        let stop = stop.clone();
        tokio::spawn(async move {
            arrivals.recv().await;
            stop.try_send(()).ok();
        });
    }
    let input = Stdin::start().map_err(|source| ServeError::Read { source })?;
    serve_until(options, input, tokio::io::stdout(), async move {
        stopped.recv().await;
    })
    .await
}

/// Serves the host at the other end of `input` and `output` until `input` ends.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on<R, W>(options: ServerOptions, input: R, output: W) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_until(options, input, output, std::future::pending()).await
}

async fn serve_until<R, W>(
    options: ServerOptions,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (outbox, frames) = mpsc::channel(QUEUED_FRAMES);
    let server = Server::new(options, outbox)?;
    let (end, ended) = oneshot::channel::<()>();
    let serving = async move {
        let served = server.run(input).await;
        drop(end);
        served
    };
    // When this ends the server notices, even in the middle of queueing an answer.
    let writing = async move {
        let mut writing = pin!(write_frames(output, frames));
        tokio::select! {
            written = &mut writing => return written,
            () = stop => return Ok(()),
            _ = ended => {}
        }
        // A host that has stopped reading does not keep the server alive.
        timeout(LAST_WRITES, writing).await.unwrap_or(Ok(()))
    };
    let (served, written) = tokio::join!(serving, writing);
    served.and(written.map_err(|source| ServeError::Write { source }))
}

/// The only writer: whole frames, in the order in which they were queued.
async fn write_frames<W: AsyncWrite + Unpin>(
    mut output: W,
    mut frames: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(frame) = frames.recv().await {
        output.write_all(&frame).await?;
        if frames.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// This process's stdin, read by a thread of its own that nobody waits for: a read that never
/// returns does not keep a runtime from ending, as tokio's own stdin does.
struct Stdin {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
}

impl Stdin {
    fn start() -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        thread::Builder::new().name("stdin".to_owned()).spawn(move || read_stdin(&sender))?;
        Ok(Self { chunks, chunk: io::Cursor::default() })
    }
}

fn read_stdin(sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let chunk = match io::stdin().lock().read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let last = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || last {
            return;
        }
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = Read::read(&mut self.chunk, buffer.initialize_unfilled())?;
        if count > 0 {
            buffer.advance(count);
            return Poll::Ready(Ok(()));
        }
        match ready!(self.chunks.poll_recv(context)) {
            None => Poll::Ready(Ok(())),
            Some(chunk) => {
                self.chunk = io::Cursor::new(chunk?);
                self.poll_read(context, buffer)
            }
        }
    }
}
