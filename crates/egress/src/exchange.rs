//! One connection, from its first byte to its end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::body::BodyEnd;
use crate::dial::{self, Failure};
use crate::head::{self, Request, Target};
use crate::proxy::Shared;
use crate::relay::{Check, End, Relay};
use crate::slots::Slot;
use crate::socks::{self, Reply};

const READ_BYTES: usize = 8 * 1024;
/// How long an answer of this proxy's own may take to be taken; after it, how long and how much more is read, so that the answer is not lost to a reset.
const LINGER: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 1024 * 1024;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Serves one client. That it goes away, or keeps silent for too long, ends it.
pub(crate) fn serve(stream: TcpStream, slot: &Slot, shared: &Shared) {
    let deadline = Instant::now() + shared.limits.head;
    let mut client = Client { stream, buffer: Vec::new(), deadline };
    let outcome = match client.first_byte() {
        Ok(Some(socks::VERSION)) => through_socks(&mut client, slot, shared),
        Ok(Some(socks::OLD_VERSION)) => {
            shared.tally.malformed();
            client.say(&socks::OLD_REFUSAL)
        }
        Ok(Some(_)) => through_http(&mut client, slot, shared),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // A failure has nobody else to be told to.
    drop(outcome);
}

struct Client {
    stream: TcpStream,
    /// What has arrived and is not used yet.
    buffer: Vec<u8>,
    deadline: Instant,
}

impl Client {
    fn first_byte(&mut self) -> io::Result<Option<u8>> {
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(LINGER))?;
        self.fill()?;
        Ok(self.buffer.first().copied())
    }

    /// Reads once more; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; READ_BYTES];
        let read = self.stream.read(&mut bytes)?;
        self.buffer.extend_from_slice(bytes.get(..read).unwrap_or_default());
        Ok(read > 0)
    }

    fn used(&mut self, count: usize) {
        self.buffer.drain(..count.min(self.buffer.len()));
    }

    /// The last word to a client that may still be sending.
    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        linger(&self.stream)
    }

    fn refuse(&mut self, status: &str, reason: &str) -> io::Result<()> {
        let text = format!("plenipo: {reason}\n");
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}",
            text.len()
        );
        self.say(answer.as_bytes())
    }
}

fn linger(stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + LINGER;
    let mut left = MAX_LINGER_BYTES;
    let mut bytes = [0; READ_BYTES];
    while left > 0 {
        let time = deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(time))?;
        match (&mut (&*stream)).read(&mut bytes) {
            Ok(read) if read > 0 => left = left.saturating_sub(read),
            _ => break,
        }
    }
    Ok(())
}

fn through_http(client: &mut Client, slot: &Slot, shared: &Shared) -> io::Result<()> {
    let (request, length) = loop {
        match head::parse(&client.buffer) {
            Ok(Some(parsed)) => break parsed,
            Ok(None) if client.fill()? => {}
            Ok(None) => return Ok(()),
            Err(malformed) => {
                shared.tally.malformed();
                return client.refuse(malformed.status, malformed.reason);
            }
        }
    };
    client.used(length);
    match request {
        Request::Tunnel(target) => match open(shared, &target) {
            Ok(server) => {
                client.stream.write_all(ESTABLISHED)?;
                tunnel(client, &server, &target, (slot, shared))
            }
            Err(failure) => refuse(client, &target, &failure),
        },
        Request::Forward { target, head, body } => match open(shared, &target) {
            Ok(server) => {
                server.set_write_timeout(Some(shared.limits.head))?;
                (&server).write_all(&head)?;
                let check = Check::Body(BodyEnd::of(body));
                let first = std::mem::take(&mut client.buffer);
                let relay = Relay::new(&client.stream, &server, check)?;
                settle(relay.run(first, slot, shared.limits.idle), client, &server).map(drop)
            }
            Err(failure) => refuse(client, &target, &failure),
        },
    }
}

fn refuse(client: &mut Client, target: &Target, failure: &Failure) -> io::Result<()> {
    let Target { host, port } = target;
    let (status, why) = match failure {
        Failure::Denied(denial) => ("403 Forbidden", format!("refused {host}:{port}: {denial}")),
        Failure::Unresolved(error) => {
            ("502 Bad Gateway", format!("cannot resolve {host}: {error}"))
        }
        Failure::Unreachable(error) if error.kind() == io::ErrorKind::TimedOut => {
            ("504 Gateway Timeout", format!("cannot reach {host}:{port}: {error}"))
        }
        Failure::Unreachable(error) => {
            ("502 Bad Gateway", format!("cannot reach {host}:{port}: {error}"))
        }
    };
    client.refuse(status, &why)
}

fn through_socks(client: &mut Client, slot: &Slot, shared: &Shared) -> io::Result<()> {
    let (acceptable, length) = loop {
        match socks::greeting(&client.buffer) {
            Some(greeting) => break greeting,
            None if client.fill()? => {}
            None => return Ok(()),
        }
    };
    if !acceptable {
        shared.tally.malformed();
        return client.say(&socks::NO_METHOD);
    }
    client.used(length);
    client.stream.write_all(&socks::GREETED)?;
    let requested = loop {
        match socks::request(&client.buffer) {
            Some(request) => break request,
            None if client.fill()? => {}
            None => return Ok(()),
        }
    };
    let (target, length) = match requested {
        Ok(request) => request,
        Err(reply) => {
            shared.tally.malformed();
            return client.say(&reply.to_bytes());
        }
    };
    client.used(length);
    match open(shared, &target) {
        Ok(server) => {
            client.stream.write_all(&Reply::Succeeded.to_bytes())?;
            tunnel(client, &server, &target, (slot, shared))
        }
        Err(failure) => {
            let reply = match failure {
                Failure::Denied(_) => Reply::NotAllowed,
                Failure::Unreachable(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    Reply::ConnectionRefused
                }
                Failure::Unresolved(_) | Failure::Unreachable(_) => Reply::HostUnreachable,
            };
            client.say(&reply.to_bytes())
        }
    }
}

fn open(shared: &Shared, target: &Target) -> Result<TcpStream, Failure> {
    let opened = dial::open(&shared.hosts, shared.resolver.as_ref(), target);
    if let Err(Failure::Denied(denial)) = &opened {
        shared.tally.refused(target, denial.word(), &denial.to_string());
    }
    opened
}

fn tunnel(
    client: &mut Client,
    server: &TcpStream,
    target: &Target,
    (slot, shared): (&Slot, &Shared),
) -> io::Result<()> {
    let first = std::mem::take(&mut client.buffer);
    let relay = Relay::new(&client.stream, server, Check::for_tunnel(&target.host))?;
    match settle(relay.run(first, slot, shared.limits.idle), client, server)? {
        End::OtherName => {
            shared.tally.refused(target, "server-name", "the client asked for another name in it");
        }
        End::Finished | End::Idle => {}
    }
    Ok(())
}

/// A relay that failed on one side is reset on both: neither may take half an answer for a whole one.
fn settle(outcome: io::Result<End>, client: &Client, server: &TcpStream) -> io::Result<End> {
    client.stream.set_nonblocking(false)?;
    match outcome {
        Ok(End::Finished) => linger(&client.stream).map(|()| End::Finished).or(Ok(End::Finished)),
        other => {
            set_socket_linger(&client.stream, Some(Duration::ZERO))?;
            set_socket_linger(server, Some(Duration::ZERO))?;
            other
        }
    }
}
