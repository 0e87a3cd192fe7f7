//! Which network addresses a peer may send us to (SSRF): a pure decision, made by the HTTP client
//! after a name is resolved and before it connects.
//!
//! A peer's document can name any host. It must not make us reach into networks that the peer could
//! not reach itself. The server that the person configured sets the limit: one on the public
//! internet may name public addresses only, one in a private network also private ones, one on this
//! machine also loopback. Addresses of cloud metadata services and link-local ones are never reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::TransportFault;
use crate::url::{EndpointUrl, is_loopback};

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reach {
    /// Reachable from everywhere.
    Public,
    /// In a private network (RFC 1918, RFC 6598, RFC 4193).
    Private,
    /// This machine.
    Loopback,
    /// Nowhere a token endpoint can be: link-local, metadata services, multicast, reserved.
    Never,
}

impl Reach {
    /// Of an address, with IPv4 addresses inside of IPv6 ones seen through.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

/// The furthest in that requests on behalf of one server may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPolicy {
    innermost: Reach,
}

impl AddressPolicy {
    /// Public addresses only.
    pub const PUBLIC: Self = Self { innermost: Reach::Public };

    /// The policy for what `server` names, as far as its URL tells: a literal address or `localhost`.
    /// A name counts as public until [`widened_by`](Self::widened_by) the addresses it has.
    #[must_use]
    pub fn for_server(server: &EndpointUrl) -> Self {
        match server.host().parse::<IpAddr>() {
            Ok(address) => Self::PUBLIC.widened_by(&[address]),
            Err(_) if is_loopback(server.host()) => Self { innermost: Reach::Loopback },
            Err(_) => Self::PUBLIC,
        }
    }

    /// With the addresses that the configured server itself has.
    #[must_use]
    pub fn widened_by(self, addresses: &[IpAddr]) -> Self {
        let innermost = addresses
            .iter()
            .map(|address| Reach::of(*address))
            .filter(|reach| *reach != Reach::Never)
            .fold(self.innermost, Reach::max);
        Self { innermost }
    }

    /// Whether a connection to `address`, which `host` resolved to, may be made.
    ///
    /// # Errors
    /// [`TransportFault::Address`], which says why not.
    pub fn admits(self, host: &str, address: IpAddr) -> Result<(), TransportFault> {
        let reason = match Reach::of(address) {
            reach if reach <= self.innermost && reach != Reach::Never => return Ok(()),
            Reach::Never => "an address that is never used for this",
            Reach::Loopback => "this machine, where a server elsewhere must not send requests",
            _ => "a private network, where a public server must not send requests",
        };
        Err(TransportFault::Address { host: crate::text::shown(host), address, reason })
    }

    /// Checks a host that is a literal address, for when a proxy resolves names.
    ///
    /// # Errors
    /// As [`admits`](Self::admits).
    pub fn admits_literal(self, host: &str) -> Result<(), TransportFault> {
        match host.parse() {
            Ok(address) => self.admits(host, address),
            Err(_) if is_loopback(host) => self.admits(host, Ipv4Addr::LOCALHOST.into()),
            Err(_) => Ok(()),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Reach::Loopback,
        (10, ..) | (192, 168, _) => Reach::Private,
        (172, 16..=31, _) => Reach::Private,
        // Shared address space holds a cloud's metadata service too.
        (100, 100, 100) => Reach::Never,
        (100, 64..=127, _) => Reach::Private,
        // "This network", link-local with the metadata services, protocol assignments,
        // documentation, benchmarks, multicast and above.
        (0, ..) | (169, 254, _) | (192, 0, 0 | 2) | (198, 18..=19, _) => Reach::Never,
        (198, 51, 100) | (203, 0, 113) | (224.., ..) => Reach::Never,
        _ => Reach::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    let segments = address.segments();
    let [a, b, c, d, e, f, g, h] = segments;
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c) {
        _ if address.is_loopback() => Reach::Loopback,
        _ if address.is_unspecified() => Reach::Never,
        // IPv4 in IPv6: compatible, translated (RFC 6052), 6to4 (RFC 3056), Teredo.
        (0, 0, 0) if (d, e) == (0, 0) && f == 0 => embedded(g, h),
        (0x64, 0xff9b, _) => embedded(g, h),
        (0x2002, high, low) => embedded(high, low),
        (0x2001, 0, _) => Reach::Never,
        // The metadata service of a cloud, inside of the private range.
        (0xfd00, 0x0ec2, _) => Reach::Never,
        _ if a & 0xfe00 == 0xfc00 => Reach::Private,
        // Link-local, site-local, multicast, documentation.
        _ if a & 0xffc0 == 0xfe80 || a & 0xffc0 == 0xfec0 || a & 0xff00 == 0xff00 => Reach::Never,
        (0x2001, 0x0db8, _) => Reach::Never,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(server: &str) -> AddressPolicy {
        AddressPolicy::for_server(&EndpointUrl::parse(server).unwrap())
    }

    #[test]
    fn ssrf_table() {
        let table = [
            ("93.184.216.34", Reach::Public),
            ("2606:2800:220:1::1", Reach::Public),
            ("10.1.2.3", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("172.32.0.1", Reach::Public),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("fd12:3456::1", Reach::Private),
            ("127.0.0.1", Reach::Loopback),
            ("127.255.255.254", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("::ffff:10.0.0.1", Reach::Private),
            ("::127.0.0.1", Reach::Loopback),
            ("64:ff9b::a9fe:a9fe", Reach::Never),
            ("2002:7f00:1::", Reach::Loopback),
            ("2002:0a00:0001::", Reach::Private),
            ("2001:0:1::", Reach::Never),
            ("169.254.169.254", Reach::Never),
            ("::ffff:169.254.169.254", Reach::Never),
            ("100.100.100.200", Reach::Never),
            ("fd00:ec2::254", Reach::Never),
            ("fe80::1", Reach::Never),
            ("0.0.0.0", Reach::Never),
            ("0.1.2.3", Reach::Never),
            ("::", Reach::Never),
            ("224.0.0.1", Reach::Never),
            ("255.255.255.255", Reach::Never),
            ("ff02::1", Reach::Never),
            ("192.0.0.192", Reach::Never),
            ("198.18.0.1", Reach::Never),
        ];
        let (public, private, local) =
            (policy("https://a.example"), policy("https://10.0.0.1"), policy("http://localhost"));
        for (text, reach) in table {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(Reach::of(address), reach, "{text}");
            assert_eq!(public.admits("h", address).is_ok(), reach == Reach::Public, "{text}");
            assert_eq!(private.admits("h", address).is_ok(), reach <= Reach::Private, "{text}");
            assert_eq!(local.admits("h", address).is_ok(), reach <= Reach::Loopback, "{text}");
        }
    }

    #[test]
    fn a_name_is_public_until_its_addresses_are_known() {
        let named = policy("https://mcp.corp.example");
        let inside: IpAddr = "10.0.0.7".parse().unwrap();
        assert!(named.admits("as", inside).is_err());
        assert!(named.widened_by(&[inside]).admits("as", inside).is_ok());
        let metadata: IpAddr = "169.254.169.254".parse().unwrap();
        assert!(named.widened_by(&[metadata]).admits("as", metadata).is_err());
        assert_eq!(named.widened_by(&[metadata]), named);
    }

    #[test]
    fn behind_a_proxy_literal_addresses_are_still_checked() {
        let public = policy("https://a.example");
        assert!(public.admits_literal("10.0.0.1").is_err());
        assert!(public.admits_literal("localhost").is_err());
        assert!(public.admits_literal("as.example").is_ok());
        let fault = public.admits_literal("127.0.0.1").unwrap_err().to_string();
        assert!(fault.contains("127.0.0.1") && fault.contains("this machine"), "{fault}");
    }
}
