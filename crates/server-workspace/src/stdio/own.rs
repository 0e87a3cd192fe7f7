//! This process's own stdin and stdout, each served by a thread that nobody waits for: a read or write
//! that never returns does not keep a runtime from ending, as it does behind tokio's own.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{mpsc, oneshot};

const READ_BYTES: usize = 64 * 1024;

/// This process's stdin.
pub(crate) struct Stdin {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
}

impl Stdin {
    pub(crate) fn start() -> io::Result<Self> {
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

/// Writes frames to this process's stdout until there are no more. Dropping it lets go of `frames`,
/// whatever the thread is waiting for.
pub(crate) async fn write_frames(mut frames: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(1);
    let (end, written) = oneshot::channel();
    thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        // Nobody is left to tell when the server has ended.
        end.send(write_stdout(receiver)).ok();
    })?;
    while let Some(frame) = frames.recv().await {
        if sender.send(frame).await.is_err() {
            break;
        }
    }
    drop(sender);
    written.await.unwrap_or(Ok(()))
}

fn write_stdout(mut frames: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(frame) = frames.blocking_recv() {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&frame)?;
        stdout.flush()?;
    }
    Ok(())
}
