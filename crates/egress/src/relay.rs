//! Bytes both ways, until both have ended.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use plenipo_policy::Host;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::body::BodyEnd;
use crate::requests::{self, Kind, OtherName, Requests};
use crate::server_name::{Greeting, greeting};
use crate::slots::Slot;

const CHUNK: usize = 64 * 1024;

/// What is looked at on the way from the client to the server.
#[derive(Debug)]
pub(crate) enum Check {
    Nothing,
    /// Held back until it is clear that the client asks for no other name.
    ServerName {
        host: Host,
        held: Vec<u8>,
    },
    /// Held back, request by request, until it is clear that none is for another name.
    Requests(Requests),
    /// Ends where the request's body does.
    Body(BodyEnd),
}

impl Check {
    /// A name on the list stands for itself alone; an address for whatever it serves.
    pub(crate) fn for_tunnel(host: &Host) -> Self {
        match host {
            Host::Name(_) => Self::ServerName { host: host.clone(), held: Vec::new() },
            Host::Address(_) => Self::Nothing,
        }
    }
}

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    /// Nothing was said for too long.
    Idle,
    /// The client asked for a name that the tunnel is not for.
    OtherName,
}

/// One direction.
#[derive(Debug, Default)]
struct Flow {
    buffer: Vec<u8>,
    /// No more is read.
    ended: bool,
    /// The reader was told.
    closed: bool,
}

/// A client, a server, and what is between them.
#[derive(Debug)]
pub(crate) struct Relay<'a> {
    client: &'a TcpStream,
    server: &'a TcpStream,
    check: Check,
    up: Flow,
    down: Flow,
    /// Whether the answer's end is the end, whatever the client may still say.
    one_answer: bool,
    /// The client has closed its side.
    client_closed: bool,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        client: &'a TcpStream,
        server: &'a TcpStream,
        check: Check,
    ) -> io::Result<Self> {
        server.set_nodelay(true)?;
        client.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        let one_answer = matches!(check, Check::Body(_));
        let (up, down) = Default::default();
        Ok(Self { client, server, check, up, down, one_answer, client_closed: false })
    }

    /// Relays `first`, which the client has sent already, and all that follows.
    pub(crate) fn run(mut self, first: Vec<u8>, slot: &Slot, idle: Duration) -> io::Result<End> {
        if self.take(first)? == Verdict::OtherName {
            return Ok(End::OtherName);
        }
        loop {
            // A server may take a closed side for a client that is gone, so after a whole request it is left open.
            self.up.flush(self.server, self.client_closed)?;
            self.down.flush(self.client, true)?;
            if self.up.is_through() {
                slot.uploaded();
            }
            if self.down.is_through() && (self.one_answer || self.up.is_through()) {
                return Ok(End::Finished);
            }
            if !self.wait(idle)? {
                return Ok(End::Idle);
            }
            if self.up.wants_bytes()
                && let Some(bytes) = read(self.client)?
            {
                if bytes.is_empty() {
                    (self.up.ended, self.client_closed) = (true, true);
                    self.let_go();
                } else if self.take(bytes)? == Verdict::OtherName {
                    return Ok(End::OtherName);
                }
            }
            if self.down.wants_bytes()
                && let Some(bytes) = read(self.server)?
            {
                if let Check::Requests(requests) = &mut self.check {
                    match requests.answered(&bytes) {
                        Ok(mut more) => self.up.buffer.append(&mut more),
                        Err(OtherName) => return Ok(End::OtherName),
                    }
                }
                self.down.ended = bytes.is_empty();
                self.down.buffer = bytes;
            }
        }
    }

    /// Bytes of the client's.
    fn take(&mut self, mut bytes: Vec<u8>) -> io::Result<Verdict> {
        match &mut self.check {
            Check::Nothing => self.up.buffer = bytes,
            Check::ServerName { host, held } => {
                held.append(&mut bytes);
                match greeting(held) {
                    Greeting::Incomplete => {}
                    Greeting::Named(named) if named != *host => return Ok(Verdict::OtherName),
                    Greeting::Malformed => return Ok(Verdict::OtherName),
                    Greeting::NotTls if requests::kind(held) == Kind::Undecided => {}
                    Greeting::NotTls if requests::kind(held) == Kind::Http => {
                        let held = std::mem::take(held);
                        self.check = Check::Requests(Requests::to(host.clone()));
                        return self.take(held);
                    }
                    Greeting::NotTls | Greeting::Nameless | Greeting::Named(_) => {
                        self.up.buffer = std::mem::take(held);
                        self.check = Check::Nothing;
                    }
                }
            }
            Check::Requests(requests) => match requests.take(&bytes) {
                Ok(passed) => self.up.buffer = passed,
                Err(OtherName) => return Ok(Verdict::OtherName),
            },
            Check::Body(end) => {
                let taken = end.take(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
                bytes.truncate(taken);
                self.up.buffer = bytes;
                self.up.ended |= end.is_done();
            }
        }
        Ok(Verdict::Fine)
    }

    /// Passes on what was too short to tell: without a whole line it is no request.
    fn let_go(&mut self) {
        if let Check::ServerName { held, .. } = &mut self.check
            && greeting(held) == Greeting::NotTls
        {
            self.up.buffer = std::mem::take(held);
        }
    }

    /// Waits for one of the two to be ready for what is wanted of it; false when that took too long.
    fn wait(&self, idle: Duration) -> io::Result<bool> {
        let wanted = |reads: &Flow, writes: &Flow| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads.wants_bytes());
            flags.set(PollFlags::OUT, !writes.buffer.is_empty());
            flags
        };
        // One that nothing is wanted of is not waited for: its hanging up would show for ever.
        let mut ends: Vec<PollFd<'_>> = [
            (self.client, wanted(&self.up, &self.down)),
            (self.server, wanted(&self.down, &self.up)),
        ]
        .into_iter()
        .filter(|(_, flags)| !flags.is_empty())
        .map(|(stream, flags)| PollFd::new(stream, flags))
        .collect();
        let timeout = Timespec::try_from(idle).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut ends, Some(&timeout)) {
            Ok(0) => Ok(false),
            Ok(_) | Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    OtherName,
}

impl Flow {
    fn wants_bytes(&self) -> bool {
        !self.ended && self.buffer.is_empty()
    }

    fn is_through(&self) -> bool {
        self.closed
    }

    /// Writes what can be written; after the last byte the reader is told, if it is to be `told`.
    fn flush(&mut self, mut to: &TcpStream, told: bool) -> io::Result<()> {
        while !self.buffer.is_empty() {
            match to.write(&self.buffer) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.buffer.drain(..written.min(self.buffer.len()))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.ended && !self.closed {
            self.closed = true;
            if told {
                to.shutdown(Shutdown::Write)?;
            }
        }
        Ok(())
    }
}

/// What can be read now; empty at the end, `None` if there is nothing yet.
fn read(mut from: &TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; CHUNK];
    match from.read(&mut bytes) {
        Ok(read) => {
            bytes.truncate(read);
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
