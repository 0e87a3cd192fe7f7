//! SOCKS version 5: RFC 1928. No authentication, and no command but CONNECT.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plenipo_policy::Host;

use crate::head::Target;

/// The first byte of everything a client says.
pub(crate) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The answer to a greeting that offers to go without authentication.
pub(crate) const GREETED: [u8; 2] = [VERSION, NO_AUTHENTICATION];
/// The answer to one that does not.
pub(crate) const NO_METHOD: [u8; 2] = [VERSION, 0xff];

/// The first byte of a client that speaks version 4 (or 4a), and this proxy's whole answer to it: request rejected. That
/// version's names end where a zero byte stands, and it has no word for IPv6.
pub(crate) const OLD_VERSION: u8 = 4;
pub(crate) const OLD_REFUSAL: [u8; 8] = [0, 91, 0, 0, 0, 0, 0, 0];

/// How a request ended: RFC 1928, section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

impl Reply {
    /// With an address that means none: what the proxy is bound to is nobody's business.
    pub(crate) fn to_bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]
    }
}

/// Takes a greeting: whether it offers what is needed, and its length. `None`: it is not complete.
pub(crate) fn greeting(bytes: &[u8]) -> Option<(bool, usize)> {
    let [_, count, rest @ ..] = bytes else { return None };
    let methods = rest.get(..usize::from(*count))?;
    Some((methods.contains(&NO_AUTHENTICATION), 2 + methods.len()))
}

/// Takes a request: where to connect, and its length. `None`: it is not complete.
pub(crate) fn request(bytes: &[u8]) -> Option<Result<(Target, usize), Reply>> {
    let [version, command, _, kind, rest @ ..] = bytes else { return None };
    if *version != VERSION {
        return Some(Err(Reply::GeneralFailure));
    }
    if *command != CONNECT {
        return Some(Err(Reply::CommandNotSupported));
    }
    let (host, length) = match (*kind, rest) {
        (IPV4, [a, b, c, d, ..]) => (Some(address(Ipv4Addr::new(*a, *b, *c, *d))), 4),
        (IPV6, rest) => {
            let octets: [u8; 16] = rest.get(..16)?.try_into().ok()?;
            (Some(address(Ipv6Addr::from(octets))), 16)
        }
        (NAME, [length, rest @ ..]) => {
            let name = rest.get(..usize::from(*length))?;
            let host = std::str::from_utf8(name).ok().and_then(|name| Host::parse(name).ok());
            (host, 1 + name.len())
        }
        (IPV4 | NAME, _) => return None,
        _ => return Some(Err(Reply::AddressNotSupported)),
    };
    let [high, low] = rest.get(length..)?.get(..2)? else { return None };
    let port = u16::from_be_bytes([*high, *low]);
    Some(match host.filter(|_| port > 0) {
        Some(host) => Ok((Target { host, port }, 4 + length + 2)),
        None => Err(Reply::GeneralFailure),
    })
}

fn address(address: impl Into<IpAddr>) -> Host {
    Host::from(address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        let length = u8::try_from(name.len()).unwrap();
        [&[5, 1, 0, 3, length], name, &port.to_be_bytes()].concat()
    }

    #[test]
    fn a_greeting_has_to_offer_to_go_without_authentication() {
        assert_eq!(greeting(&[5, 1, 0]), Some((true, 3)));
        assert_eq!(greeting(&[5, 2, 2, 0, 5]), Some((true, 4)));
        assert_eq!(greeting(&[5, 1, 2]), Some((false, 3)));
        assert_eq!(greeting(&[5, 0]), Some((false, 2)));
        assert_eq!(greeting(&[5, 2, 0]), None);
        assert_eq!(greeting(&[5]), None);
    }

    #[test]
    fn a_request_names_a_host_or_an_address() {
        let to = |host: &str, port| Target { host: Host::parse(host).unwrap(), port };
        let cases = [
            (named(b"Example.ORG.", 443), to("example.org", 443)),
            (named(b"127.1", 80), to("127.0.0.1", 80)),
            (vec![5, 1, 0, 1, 127, 0, 0, 1, 0, 22], to("127.0.0.1", 22)),
            ([&[5, 1, 0, 4][..], &[0; 15], &[1, 1, 187]].concat(), to("::1", 443)),
            (
                [&[5, 1, 0, 4][..], &[0; 10], &[255, 255, 10, 0, 0, 1, 0, 80]].concat(),
                to("10.0.0.1", 80),
            ),
        ];
        for (bytes, target) in cases {
            assert_eq!(request(&bytes), Some(Ok((target, bytes.len()))));
            for end in 0..bytes.len() {
                assert_eq!(request(&bytes[..end]), None, "{bytes:?} to {end}");
            }
        }
    }

    #[test]
    fn other_commands_and_names_that_are_none_are_refused() {
        for (bytes, reply) in [
            (vec![5, 2, 0, 1, 1, 1, 1, 1, 0, 80], Reply::CommandNotSupported),
            (vec![5, 3, 0, 1, 1, 1, 1, 1, 0, 80], Reply::CommandNotSupported),
            (vec![5, 1, 0, 2, 0], Reply::AddressNotSupported),
            (vec![4, 1, 0, 80], Reply::GeneralFailure),
            (named(b"evil.com\0.ok.com", 443), Reply::GeneralFailure),
            (named(b"ok.com", 0), Reply::GeneralFailure),
            (named(b"", 443), Reply::GeneralFailure),
            (named(b"\xff\xfe", 443), Reply::GeneralFailure),
            (named(b"a b", 443), Reply::GeneralFailure),
        ] {
            assert_eq!(request(&bytes), Some(Err(reply)), "{bytes:?}");
        }
    }
}
