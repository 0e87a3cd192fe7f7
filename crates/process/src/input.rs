//! The pipe that a server reads from.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::{Errno, write};
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe::Sender;

/// Writes at once what the pipe takes, whatever the runtime knows of it. Of a new pipe it knows nothing until it looks
/// next, which a host that starts many servers lets it do only after the last: so each finds its first message when it
/// begins to read.
#[derive(Debug)]
pub struct Input(Sender);

impl Input {
    pub(crate) fn new(pipe: io::PipeWriter) -> io::Result<Self> {
        // Checks that it is a pipe, and makes writing to it not wait.
        Sender::from_owned_fd(pipe.into()).map(Self)
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match write(&self.0, bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Pin::new(&mut self.0).poll_write(context, bytes),
            written => Poll::Ready(written.map_err(io::Error::from)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn what_the_pipe_takes_is_written_before_the_runtime_looks_and_the_rest_when_there_is_room()
     {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut input = Input::new(writer).unwrap();
        let mut nobody = Context::from_waker(std::task::Waker::noop());
        assert!(matches!(
            Pin::new(&mut input).poll_write(&mut nobody, b"first"),
            Poll::Ready(Ok(5))
        ));
        let long = vec![b'x'; 1 << 20];
        let mut begun = Vec::new();
        let all = std::thread::spawn(move || {
            let mut start = [0; 5];
            reader.read_exact(&mut start).unwrap();
            begun.extend_from_slice(&start);
            reader.read_to_end(&mut begun).unwrap();
            begun
        });
        input.write_all(&long).await.unwrap();
        drop(input);
        let all = all.join().unwrap();
        assert_eq!(all.len(), 5 + long.len());
        assert!(all.starts_with(b"firstx"));
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        let mut input = Input::new(writer).unwrap();
        drop(reader);
        assert_eq!(input.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
