//! The server at its two ends: this process's stdin and stdout, or any pair of streams.

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::server::Server;
use crate::{ServeError, ServerOptions};

mod own;

/// Frames that wait for the writer; beyond it requests are no longer read.
const QUEUED_FRAMES: usize = 128;
/// How long the last answers may take once the connection has ended.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Serves the host at this process's own stdin and stdout until stdin ends or SIGTERM, SIGINT or
/// SIGHUP arrives. Running commands are ended first.
///
/// Needs a tokio runtime with I/O and time. A current-thread runtime is enough and recommended: the
/// server expects to be what its process is for, and that nobody else in it starts processes.
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
    let input = own::Stdin::start().map_err(|source| ServeError::Read { source })?;
    let stop = async move {
        stopped.recv().await;
    };
    serve_until(options, input, own::write_frames, stop).await
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
    let write = |frames| write_frames(output, frames);
    serve_until(options, input, write, std::future::pending()).await
}

/// `write` is the only writer: whole frames, in the order in which they were queued.
async fn serve_until<R, F>(
    options: ServerOptions,
    input: R,
    write: impl FnOnce(mpsc::Receiver<Vec<u8>>) -> F,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin,
    F: Future<Output = io::Result<()>>,
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
        let mut writing = pin!(write(frames));
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
