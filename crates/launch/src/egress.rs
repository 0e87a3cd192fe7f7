//! The way out of a limited network: one listening socket inside the sandbox, served by a proxy outside.
//!
//! ```text
//! first process (own network namespace)                launcher
//! lo up ─ listen ─ … the sandbox is complete ─ socket ──▶ Egress::serve
//!                             report, command ◀─ "go on" ─┘
//! ```
//!
//! A socket stays in the namespace that it was made in, whoever has it: nobody else on the machine can connect to it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use plenipo_policy::Network;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::PROXY_PORT;
use crate::error::{ErrorKind, LaunchError};
use crate::ladder::{Attempt, Purpose};
use crate::sys;
use crate::terminal::{receive, send};

/// Variables that name a proxy, each in both spellings.
const PROXIES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// Variables that name what is reached without one: nothing is.
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// What serves a sandbox whose network is limited.
pub trait Egress: std::fmt::Debug {
    /// Takes over the socket that the command's connections arrive at. Called once, when the sandbox is complete and
    /// before the command starts; it must not wait for a connection.
    ///
    /// # Errors
    /// It cannot be served: the launch is refused.
    fn serve(&self, listener: TcpListener) -> io::Result<()>;
}

/// The environment with the proxy in it.
pub(crate) fn with_proxy<Name, Value>(environment: &mut Vec<(Name, Value)>)
where
    Name: AsRef<std::ffi::OsStr> + From<&'static str>,
    Value: From<String>,
{
    environment.retain(|(name, _)| {
        !PROXIES.iter().chain(&EXCEPTIONS).any(|known| name.as_ref() == *known)
    });
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    environment.extend(PROXIES.map(|name| (name.into(), proxy.clone().into())));
}

/// Both ends of the way, before the fork.
pub(crate) struct Way {
    outside: OwnedFd,
    inside: OwnedFd,
}

/// The first process's end.
pub(crate) struct Inside {
    channel: OwnedFd,
    listener: TcpListener,
}

impl Way {
    /// Present if the policy limits the network.
    pub(crate) fn of(attempt: &Attempt<'_>) -> Result<Option<Self>, LaunchError> {
        if !matches!(attempt.request.policy.network, Network::Limited(_)) {
            return Ok(None);
        }
        let flags = SocketFlags::CLOEXEC;
        let (outside, inside) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(|error| LaunchError::step("make a channel", error))?;
        Ok(Some(Self { outside, inside }))
    }

    /// Makes the socket, in the network namespace of the calling process.
    pub(crate) fn listen(self) -> Result<Inside, LaunchError> {
        let step =
            |what: &'static str| move |error: io::Error| LaunchError::unsupported(what, error);
        let any = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
            .map_err(|error| step("make an internet socket")(error.into()))?;
        sys::raise_loopback(any.as_fd()).map_err(step("bring the loopback interface up"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))
            .map_err(step("listen for the proxy"))?;
        Ok(Inside { channel: self.inside, listener })
    }

    /// Waits for the socket and has it served. If the first process ended before it came to that, it has told why.
    pub(crate) fn serve(self, attempt: &Attempt<'_>) -> Result<(), LaunchError> {
        drop(self.inside);
        let Ok(socket) = receive(self.outside.as_fd()) else { return Ok(()) };
        if attempt.purpose == Purpose::Run {
            let egress = attempt.request.egress.as_ref().ok_or_else(not_served)?;
            egress
                .serve(TcpListener::from(socket))
                .map_err(|error| LaunchError::step("serve the limited network", error))?;
        }
        // If the first process is gone, the launcher hears of it elsewhere.
        drop(std::fs::File::from(self.outside).write_all(&[0]));
        Ok(())
    }
}

impl Inside {
    /// Hands the socket out and returns when it is served.
    pub(crate) fn hand_out(self) -> Result<(), LaunchError> {
        send(self.channel.as_fd(), self.listener.as_fd())
            .map_err(|error| LaunchError::step("hand the proxy's socket out", error))?;
        let answered = std::fs::File::from(self.channel).read(&mut [0]);
        match answered {
            Ok(1) => Ok(()),
            _ => Err(not_served()),
        }
    }
}

/// Nobody is there to serve it.
pub(crate) fn not_served() -> LaunchError {
    LaunchError::new(ErrorKind::Unenforceable, "limit the network: there is no proxy to serve it")
}
