//! Addresses that a name on an allow-list must not lead to by itself.
//!
//! Sources: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890 and its successors), and the
//! addresses at which cloud machines serve their own credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Range4 = (Ipv4Addr, u32, &'static str);
type Range6 = (Ipv6Addr, u32, &'static str);

const V4: [Range4; 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, "metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "metadata"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

const V6: [Range6; 11] = [
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "private"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "private"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved"),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "tunnel"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "reserved"),
];

/// The prefix under which a translator reaches the IPv4 internet (RFC 6052).
const TRANSLATED: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// All that is public in IPv6.
const GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What kind of address this is, if it is no public one.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

/// Whether a whole range is of one kind that is not public.
pub(super) fn special_range(first: IpAddr, prefix: u32) -> bool {
    let inside = |range: IpAddr, length: u32| prefix >= length && within(first, range, length);
    match first {
        IpAddr::V4(_) => V4.iter().any(|(range, length, _)| inside((*range).into(), *length)),
        IpAddr::V6(_) => V6.iter().any(|(range, length, _)| inside((*range).into(), *length)),
    }
}

/// The IPv4 address that a translator would reach for this one.
pub(super) fn embedded(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V6(address) if within_v6(address, TRANSLATED) => Some(last_four(address).into()),
        _ => None,
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let found = V4.iter().find(|(range, prefix, _)| within_v4(address, (*range, *prefix)));
    found.map(|(_, _, kind)| *kind)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if within_v6(address, TRANSLATED) {
        return special_v4(last_four(address));
    }
    let found = V6.iter().find(|(range, prefix, _)| within_v6(address, (*range, *prefix)));
    let elsewhere = (!within_v6(address, GLOBAL)).then_some("reserved");
    found.map(|(_, _, kind)| *kind).or(elsewhere)
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// Whether an address begins with the first `prefix` bits of a range of its kind.
pub(super) fn within(address: IpAddr, range: IpAddr, prefix: u32) -> bool {
    match (address, range) {
        (IpAddr::V4(address), IpAddr::V4(range)) => within_v4(address, (range, prefix)),
        (IpAddr::V6(address), IpAddr::V6(range)) => within_v6(address, (range, prefix)),
        _ => false,
    }
}

fn within_v4(address: Ipv4Addr, (range, prefix): (Ipv4Addr, u32)) -> bool {
    let differing = u64::from(address.to_bits() ^ range.to_bits());
    differing >> 32_u32.saturating_sub(prefix) == 0
}

fn within_v6(address: Ipv6Addr, (range, prefix): (Ipv6Addr, u32)) -> bool {
    let differing = address.to_bits() ^ range.to_bits();
    differing.checked_shr(128_u32.saturating_sub(prefix)).unwrap_or(0) == 0
}
