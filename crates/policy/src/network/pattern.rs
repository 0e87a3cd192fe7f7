//! One line of an allow-list.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::str::FromStr;

use thiserror::Error;

use super::USUAL_PORTS;
use super::address::{special_range, within};
use super::host::{Host, HostError};

/// A place, and a port if one is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    place: Place,
    port: Option<NonZeroU16>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Name(String),
    /// Every name below, not the name itself.
    Below(String),
    /// The name and all below it.
    AtOrBelow(String),
    Addresses {
        first: IpAddr,
        prefix: u32,
    },
}

/// Why a pattern is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The host in it.
    #[error("{0}")]
    Host(HostError),
    /// A `*` that does not stand for whole labels at the start, or for everything.
    #[error("must have `*` only as `*.NAME` (all below NAME) or `**.NAME` (NAME, too)")]
    Wildcard,
    /// Not a number from 1 to 65535.
    #[error("must have a port from 1 to 65535 after the colon")]
    Port,
    /// Not a prefix of the address, or the whole address space.
    #[error("must have a prefix length of at least 1 that fits the address, with zeros after it")]
    Range,
    /// An IPv6 address is told from a port by its brackets.
    #[error("must have an IPv6 address in brackets, `[::1]`")]
    Brackets,
    /// A scheme or a path: a host is wanted.
    #[error("must be a host, not a URL")]
    Url,
    /// An allowed wildcard right below the root of names.
    #[error("must have at least two labels after the `*`, as in `*.example.org`, to be allowed")]
    TopLevel,
    /// An allowed range that is a good part of the address space.
    #[error(
        "must have a prefix length of at least 8 (IPv6: 16, private ranges excepted) to be allowed"
    )]
    WideRange,
}

/// Top-level names that nobody can register below: RFC 6761, RFC 6762, RFC 8375, and what ICANN set apart in 2024.
const NOT_REGISTERED: [&str; 6] = ["example", "internal", "invalid", "local", "localhost", "test"];
/// The shortest prefixes of an allowed range.
const WIDEST: (u32, u32) = (8, 16);

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.contains("//") || text.ends_with('/') {
            return Err(PatternError::Url);
        }
        let (place, port) = split_port(text)?;
        Ok(Self { place: Place::parse(place)?, port })
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
fn split_port(text: &str) -> Result<(&str, Option<NonZeroU16>), PatternError> {
    let split = match text.find(']') {
        Some(bracket) => match text.split_at_checked(bracket + 1) {
            Some((place, "")) => return Ok((place, None)),
            Some((place, rest)) => (place, rest.strip_prefix(':').ok_or(PatternError::Port)?),
            None => return Err(PatternError::Port),
        },
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(PatternError::Brackets);
            }
            Some(split) => split,
            None => return Ok((text, None)),
        },
    };
    let digits = !split.1.is_empty() && split.1.bytes().all(|byte| byte.is_ascii_digit());
    let port = split.1.parse().ok().filter(|_| digits).ok_or(PatternError::Port)?;
    Ok((split.0, Some(port)))
}

impl Place {
    fn parse(text: &str) -> Result<Self, PatternError> {
        let name = |text: &str| match Host::parse(text).map_err(PatternError::Host)? {
            Host::Name(name) => Ok(name),
            Host::Address(_) => Err(PatternError::Wildcard),
        };
        if let Some(above) = text.strip_prefix("**.") {
            return no_star(above).and_then(name).map(Self::AtOrBelow);
        }
        if let Some(above) = text.strip_prefix("*.") {
            return no_star(above).and_then(name).map(Self::Below);
        }
        let text = no_star(text)?;
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Some((address, prefix)) = inner.unwrap_or(text).split_once('/') {
            return range(address, prefix, inner.is_some());
        }
        Ok(match Host::parse(text).map_err(PatternError::Host)? {
            Host::Name(name) => Self::Name(name),
            Host::Address(first) => Self::Addresses { first, prefix: bits(first) },
        })
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::Below(above), Host::Name(name)) => is_below(name, above),
            (Self::AtOrBelow(above), Host::Name(name)) => name == above || is_below(name, above),
            (Self::Addresses { first, prefix }, Host::Address(address)) => {
                within(*address, *first, *prefix)
            }
            _ => false,
        }
    }

    fn covers_all_of(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Name(name)) => self.covers(&Host::Name(name.clone())),
            (Self::Below(above), Self::Below(name)) => name == above || is_below(name, above),
            (Self::Below(above), Self::AtOrBelow(name)) => is_below(name, above),
            (Self::AtOrBelow(above), Self::Below(name) | Self::AtOrBelow(name)) => {
                name == above || is_below(name, above)
            }
            (
                Self::Addresses { first, prefix },
                Self::Addresses { first: other, prefix: longer },
            ) => longer >= prefix && within(*other, *first, *prefix),
            _ => false,
        }
    }
}

fn no_star(text: &str) -> Result<&str, PatternError> {
    if text.contains('*') { Err(PatternError::Wildcard) } else { Ok(text) }
}

fn range(address: &str, prefix: &str, bracketed: bool) -> Result<Place, PatternError> {
    let first: IpAddr = address.parse().map_err(|_| PatternError::Host(HostError::Address))?;
    let prefix = prefix.parse().map_err(|_| PatternError::Range)?;
    let zeros = match first {
        IpAddr::V4(address) => address.to_bits().trailing_zeros(),
        IpAddr::V6(address) => address.to_bits().trailing_zeros(),
    };
    let mapped = first.to_canonical() != first; // `::ffff:…` is never looked up as such
    let fits = (1..=bits(first)).contains(&prefix) && zeros >= bits(first) - prefix;
    if !fits || mapped || bracketed != first.is_ipv6() {
        return Err(PatternError::Range);
    }
    Ok(Place::Addresses { first, prefix })
}

fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|labels| labels.ends_with('.'))
}

impl HostPattern {
    /// Checks that an allow for this is a choice: a list that has `*.org` and `*.com` in it, or two halves of the address
    /// space, is none.
    ///
    /// # Errors
    ///
    /// It allows too much. As a deny it is fine.
    pub fn check_allowed(&self) -> Result<(), PatternError> {
        match &self.place {
            Place::Below(above) | Place::AtOrBelow(above)
                if !above.contains('.') && !NOT_REGISTERED.contains(&above.as_str()) =>
            {
                Err(PatternError::TopLevel)
            }
            Place::Addresses { first, prefix } => {
                let widest = if first.is_ipv4() { WIDEST.0 } else { WIDEST.1 };
                let is_set_apart = || special_range(*first, *prefix);
                if *prefix >= widest || is_set_apart() {
                    Ok(())
                } else {
                    Err(PatternError::WideRange)
                }
            }
            _ => Ok(()),
        }
    }

    pub(super) fn covers(&self, host: &Host) -> bool {
        self.place.covers(host)
    }

    pub(super) fn allows_port(&self, port: u16) -> bool {
        match self.port {
            Some(own) => own.get() == port,
            None => USUAL_PORTS.contains(&port),
        }
    }

    /// Read as a deny: every port where none is written.
    pub(super) fn denies(&self, host: &Host, port: u16) -> bool {
        self.covers(host) && self.port.is_none_or(|own| own.get() == port)
    }

    pub(super) fn allows_all_of(&self, other: &Self) -> bool {
        let ports = match other.port {
            Some(port) => self.allows_port(port.get()),
            None => self.port.is_none(),
        };
        ports && self.place.covers_all_of(&other.place)
    }

    pub(super) fn denies_all_of(&self, other: &Self) -> bool {
        (self.port.is_none() || self.port == other.port) && self.place.covers_all_of(&other.place)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Name(name) => formatter.write_str(name)?,
            Place::Below(name) => write!(formatter, "*.{name}")?,
            Place::AtOrBelow(name) => write!(formatter, "**.{name}")?,
            Place::Addresses { first, prefix } => {
                let whole = *prefix == bits(*first);
                match (first, whole) {
                    (IpAddr::V4(address), true) => write!(formatter, "{address}")?,
                    (IpAddr::V4(address), false) => write!(formatter, "{address}/{prefix}")?,
                    (IpAddr::V6(address), true) => write!(formatter, "[{address}]")?,
                    (IpAddr::V6(address), false) => write!(formatter, "[{address}/{prefix}]")?,
                }
            }
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
