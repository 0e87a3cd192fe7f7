//! One of the pipes that a server writes to, of which whoever ends the server can be given a copy.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Receiver;

/// Clones read from the same pipe.
#[derive(Debug, Clone)]
pub struct Output(Arc<Mutex<Receiver>>);

impl Output {
    pub(crate) fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Receiver::from_owned_fd(pipe)?))))
    }

    /// Its reading end once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        self.lock().as_fd().try_clone_to_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Receiver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, space)
    }
}
