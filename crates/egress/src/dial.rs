//! From a target to a connection: decide, resolve once, decide about each address, connect to one of exactly those.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use plenipo_policy::{Denial, Host, Hosts, Route};

use crate::head::Target;

/// How long one address may take to answer.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Where names are looked up.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Every address of `name`, canonical and no address itself. Asked once for each connection.
    ///
    /// # Errors
    /// The name has no address, or that cannot be found out.
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver: `getaddrinfo(3)`.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing to set")]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = (name, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Failure {
    Denied(Denial),
    Unresolved(io::Error),
    Unreachable(io::Error),
}

/// Connects to `target` if `hosts` allow it.
pub(crate) fn open(
    hosts: &Hosts,
    resolver: &dyn Resolve,
    target: &Target,
) -> Result<TcpStream, Failure> {
    let addresses = match hosts.route(&target.host, target.port).map_err(Failure::Denied)? {
        Route::Addresses(addresses) => addresses,
        Route::Resolve => permitted(hosts, resolver, target)?,
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match TcpStream::connect_timeout(&SocketAddr::new(address, target.port), CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(Failure::Unreachable(last))
}

/// The addresses of the name that may be dialled; the first denial if there is none.
fn permitted(
    hosts: &Hosts,
    resolver: &dyn Resolve,
    target: &Target,
) -> Result<Vec<IpAddr>, Failure> {
    let Host::Name(name) = &target.host else { return Ok(Vec::new()) };
    let found = resolver.resolve(name).map_err(Failure::Unresolved)?;
    let mut denied = None;
    let mut permitted = Vec::new();
    for address in found.into_iter().take(MAX_ADDRESSES).map(|address| address.to_canonical()) {
        match hosts
            .check_address(address, target.port)
            .and_then(|()| foreign(hosts, address, target.port))
        {
            Ok(()) => permitted.push(address),
            Err(denial) => denied = denied.or(Some(denial)),
        }
    }
    match denied {
        Some(denial) if permitted.is_empty() => Err(Failure::Denied(denial)),
        _ => Ok(permitted),
    }
}

/// A public address may still be this machine's own, with services that trust the machine.
fn foreign(hosts: &Hosts, address: IpAddr, port: u16) -> Result<(), Denial> {
    match own_address_towards(address) {
        Ok(own) if own == address && !hosts.lists_address(address, port) => {
            Err(Denial::Special { address, kind: "machine's own" })
        }
        _ => Ok(()), // without a route there is no connection either
    }
}

/// Where a packet to `address` would come from. Nothing is sent.
fn own_address_towards(address: IpAddr) -> io::Result<IpAddr> {
    const ANY_PORT: u16 = 9;
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, ANY_PORT))?;
    socket.local_addr().map(|own| own.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known_by_the_way_to_it() {
        let own: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(own_address_towards(own).unwrap(), own);
        let hosts: Hosts = std::iter::empty().collect();
        assert!(matches!(
            foreign(&hosts, own, 80),
            Err(Denial::Special { kind: "machine's own", .. })
        ));
    }
}
