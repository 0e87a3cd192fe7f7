//! Taking connections.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plenipo_policy::Hosts;
use rustix::net::Shutdown;

use crate::dial::Resolve;
use crate::exchange;
use crate::slots::{Slot, Slots};
use crate::tally::{Summary, Tally};

/// Resolving a name takes the most.
const STACK_BYTES: usize = 512 * 1024;
/// Before another try when the machine is out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(50);

/// How much a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    /// Until a request's head is complete.
    pub(crate) head: Duration,
    /// Without a byte either way.
    pub(crate) idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (head, idle) = (Duration::from_secs(30), Duration::from_secs(600));
        Self { connections: 256, head, idle }
    }
}

/// What every connection needs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) hosts: Hosts,
    pub(crate) resolver: Box<dyn Resolve>,
    pub(crate) tally: Tally,
    pub(crate) limits: Limits,
}

/// A proxy for one allow-list.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    slots: Arc<Slots>,
    listener: Mutex<Option<TcpListener>>,
}

impl Proxy {
    /// A proxy that reaches `hosts`, and serves nobody yet.
    pub fn new(hosts: Hosts, resolver: impl Resolve + 'static) -> Self {
        Self::with_limits(hosts, resolver, Limits::default())
    }

    pub(crate) fn with_limits(
        hosts: Hosts,
        resolver: impl Resolve + 'static,
        limits: Limits,
    ) -> Self {
        let (resolver, tally) = (Box::new(resolver), Tally::default());
        let shared = Arc::new(Shared { hosts, resolver, tally, limits });
        Self { shared, slots: Slots::of(limits.connections), listener: Mutex::default() }
    }

    /// Takes connections from `listener` in a thread of its own, until [`finish`](Self::finish) or the end of the
    /// process.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn serve(&self, listener: TcpListener) -> io::Result<()> {
        let accepting = listener.try_clone()?;
        let (shared, slots) = (Arc::clone(&self.shared), Arc::clone(&self.slots));
        thread::Builder::new()
            .name("egress".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || accept(&accepting, &shared, &slots))?;
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        Ok(())
    }

    /// Takes no more connections, waits for `grace` at most until what clients sent has been passed on, and says what
    /// was refused. Connections that are left end with the process.
    pub fn finish(&self, grace: Duration) -> Summary {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            // It ends the waiting for a connection in the other thread; that it had ended is no failure.
            rustix::net::shutdown(listener.as_fd(), Shutdown::Both).unwrap_or(());
        }
        self.slots.drained(grace);
        self.shared.tally.summary()
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, slots: &Arc<Slots>) {
    loop {
        let slot = slots.take();
        match listener.accept() {
            Ok((client, _)) => start(client, slot, shared),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return, // shut down
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Where no thread can be had, the connection is closed; the client sees that.
fn start(client: TcpStream, slot: Slot, shared: &Arc<Shared>) {
    shared.tally.connection();
    let shared = Arc::clone(shared);
    let serve = move || exchange::serve(client, &slot, &shared);
    let thread = thread::Builder::new().name("egress".to_owned()).stack_size(STACK_BYTES);
    drop(thread.spawn(serve));
}

#[cfg(test)]
mod tests;
