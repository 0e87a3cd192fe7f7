//! Sockets outside the sandbox that count what reaches them.
//!
//! A test about a closed network needs two numbers: one arrival in the control run, none in the
//! sandboxed one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};

/// A listening socket with a thread that takes what arrives. Stopped on drop; a socket file is left
/// to its fixture.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    arrived: Mutex<usize>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Stream(UnixListener),
    Datagram(UnixDatagram),
}

impl Listener {
    /// TCP on 127.0.0.1, any free port.
    ///
    /// # Panics
    /// When the socket cannot be made; so do the others.
    #[must_use]
    pub fn tcp() -> Self {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind TCP");
        socket.set_nonblocking(true).expect("non-blocking");
        let address = socket.local_addr().ok();
        Self::start(Socket::Tcp(socket), address)
    }

    /// UDP on 127.0.0.1, any free port.
    #[must_use]
    pub fn udp() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind UDP");
        socket.set_nonblocking(true).expect("non-blocking");
        let address = socket.local_addr().ok();
        Self::start(Socket::Udp(socket), address)
    }

    /// An `AF_UNIX` stream socket at a path, writable by every user.
    #[must_use]
    pub fn unix_stream(path: impl AsRef<Path>) -> Self {
        let listener = Self::unix_stream_at(&UnixAddress::from_pathname(&path).expect("a path"));
        open_to_everybody(path.as_ref());
        listener
    }

    /// An `AF_UNIX` datagram socket at a path, writable by every user.
    #[must_use]
    pub fn unix_datagram(path: impl AsRef<Path>) -> Self {
        let listener = Self::unix_datagram_at(&UnixAddress::from_pathname(&path).expect("a path"));
        open_to_everybody(path.as_ref());
        listener
    }

    /// An abstract `AF_UNIX` stream socket.
    #[must_use]
    pub fn abstract_stream(name: &str) -> Self {
        Self::unix_stream_at(&UnixAddress::from_abstract_name(name).expect("a name"))
    }

    /// An abstract `AF_UNIX` datagram socket.
    #[must_use]
    pub fn abstract_datagram(name: &str) -> Self {
        Self::unix_datagram_at(&UnixAddress::from_abstract_name(name).expect("a name"))
    }

    fn unix_stream_at(address: &UnixAddress) -> Self {
        let socket = UnixListener::bind_addr(address).expect("bind a stream socket");
        socket.set_nonblocking(true).expect("non-blocking");
        Self::start(Socket::Stream(socket), None)
    }

    fn unix_datagram_at(address: &UnixAddress) -> Self {
        let socket = UnixDatagram::bind_addr(address).expect("bind a datagram socket");
        socket.set_nonblocking(true).expect("non-blocking");
        Self::start(Socket::Datagram(socket), None)
    }

    fn start(socket: Socket, address: Option<SocketAddr>) -> Self {
        let shared = Arc::new(Shared { socket, arrived: Mutex::new(0) });
        let (stop, stopped) = UnixStream::pair().expect("a socket pair");
        let worker = Arc::clone(&shared);
        let thread = std::thread::spawn(move || worker.run(&stopped));
        Self { shared, address, stop: Some(stop), thread: Some(thread) }
    }

    /// How many connections or datagrams have arrived. Whatever the kernel has queued by now is
    /// counted: after a peer's `connect` or `send` has returned, this sees it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.take_arrived()
    }

    /// Address and port of a TCP or UDP listener.
    ///
    /// # Panics
    /// For an `AF_UNIX` listener.
    #[must_use]
    pub fn socket_address(&self) -> SocketAddr {
        self.address.expect("only TCP and UDP listeners have a socket address")
    }

    /// The port of a TCP or UDP listener.
    ///
    /// # Panics
    /// For an `AF_UNIX` listener.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.socket_address().port()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Shared {
    /// Takes what arrives until the other end of `stopped` is closed.
    fn run(&self, stopped: &UnixStream) {
        loop {
            let mut ready = [
                PollFd::from_borrowed_fd(self.socket.descriptor(), PollFlags::IN),
                PollFd::new(stopped, PollFlags::IN),
            ];
            if poll(&mut ready, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                return;
            }
            let [_, stop] = ready;
            if !stop.revents().is_empty() {
                return;
            }
            self.take_arrived();
        }
    }

    fn take_arrived(&self) -> usize {
        let mut arrived = self.arrived.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while self.socket.take_one() {
            *arrived += 1;
        }
        *arrived
    }
}

impl Socket {
    fn take_one(&self) -> bool {
        let mut buffer = [0; 1];
        match self {
            Self::Tcp(socket) => socket.accept().is_ok(),
            Self::Stream(socket) => socket.accept().is_ok(),
            Self::Udp(socket) => socket.recv(&mut buffer).is_ok(),
            Self::Datagram(socket) => socket.recv(&mut buffer).is_ok(),
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Stream(socket) => socket.as_fd(),
            Self::Datagram(socket) => socket.as_fd(),
        }
    }
}

fn open_to_everybody(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("chmod of a socket");
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::Fixture;

    #[test]
    fn every_kind_counts_what_has_arrived_without_waiting() {
        let fixture = Fixture::new();
        let name = format!("plenipo-testkit-{}", std::process::id());
        let (tcp, udp) = (Listener::tcp(), Listener::udp());
        let stream = Listener::unix_stream(fixture.join("stream"));
        let datagram = Listener::unix_datagram(fixture.join("datagram"));
        let hidden = Listener::abstract_stream(&name);
        let hidden_datagram = Listener::abstract_datagram(&format!("{name}-d"));
        let all = [&tcp, &udp, &stream, &datagram, &hidden, &hidden_datagram];
        assert!(all.iter().all(|listener| listener.count() == 0));

        TcpStream::connect(tcp.socket_address()).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", udp.socket_address()).unwrap();
        UnixStream::connect(fixture.join("stream")).unwrap();
        let local = UnixDatagram::unbound().unwrap();
        local.send_to(b"", fixture.join("datagram")).unwrap();
        UnixStream::connect_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
        let address = UnixAddress::from_abstract_name(format!("{name}-d")).unwrap();
        local.send_to_addr(b"x", &address).unwrap();
        assert!(all.iter().all(|listener| listener.count() == 1));
    }
}
