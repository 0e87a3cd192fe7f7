//! Memory to read into: one piece for all connections of a thread, so that a connection that waits holds none.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// As much as a pipe holds, unless somebody made it larger.
const BYTES: usize = 64 * 1024;
/// What it begins with, and who is sent little stays with: memory that has to be cleared is memory that is there.
const FIRST_BYTES: usize = 8 * 1024;
/// For who reads within `take`.
const FEW_BYTES: usize = 4 * 1024;

thread_local! {
    static SPACE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads what is there, waiting until something is; how much, 0 at the end. Dropped before that, it took nothing.
pub(crate) async fn read(
    source: &mut (impl AsyncRead + Unpin),
    mut take: impl FnMut(&[u8]),
) -> io::Result<usize> {
    poll_fn(|context| {
        SPACE.with(|space| match space.try_borrow_mut() {
            Ok(mut space) => {
                if space.is_empty() {
                    *space = vec![0; FIRST_BYTES];
                }
                let read = poll_read(source, &mut space, context, &mut take);
                if matches!(read, Poll::Ready(Ok(count)) if count == space.len()) {
                    *space = vec![0; BYTES];
                }
                read
            }
            Err(_) => poll_read(source, &mut [0; FEW_BYTES], context, &mut take),
        })
    })
    .await
}

fn poll_read(
    source: &mut (impl AsyncRead + Unpin),
    space: &mut [u8],
    context: &mut Context<'_>,
    take: &mut impl FnMut(&[u8]),
) -> Poll<io::Result<usize>> {
    let mut space = ReadBuf::new(space);
    ready!(Pin::new(source).poll_read(context, &mut space))?;
    take(space.filled());
    Poll::Ready(Ok(space.filled().len()))
}
