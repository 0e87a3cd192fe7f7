//! Which hosts a command may reach through the launcher's proxy: names and addresses, with ports.
//!
//! A pattern is `NAME`, `*.NAME` (what is below it), `**.NAME` (itself too), an address or a range of
//! addresses (`10.0.0.0/8`, `[fd00::/8]`), each with `:PORT` behind it where a port is meant. Without one
//! an allowed place means ports 80 and 443, a denied one every port. A deny wins over every allow.
//!
//! Names decide about names only: an allowed name that resolves to a private address is refused unless
//! that address is allowed itself ([`Hosts::check_address`]).

mod address;
mod host;
mod pattern;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use host::{Host, HostError};
pub use pattern::{HostPattern, PatternError};

/// The most patterns of one profile.
pub(crate) const MAX_PATTERNS: usize = 1024;
/// What an allowed place without a port means.
const USUAL_PORTS: [u16; 2] = [80, 443];
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// What a pattern says of the places that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a new word must break every enforcer's match")]
pub enum HostAccess {
    /// May be reached.
    Allow,
    /// May not, whatever else allows it.
    Deny,
}

impl HostAccess {
    /// `allow` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// The hosts of a limited network. Empty: nothing can be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    patterns: BTreeMap<HostPattern, HostAccess>,
}

impl FromIterator<(HostPattern, HostAccess)> for Hosts {
    /// A pattern that is given twice is denied if either says so.
    fn from_iter<I: IntoIterator<Item = (HostPattern, HostAccess)>>(all: I) -> Self {
        let mut patterns = BTreeMap::new();
        for (pattern, access) in all {
            let present = patterns.entry(pattern).or_insert(access);
            *present = access.max(*present);
        }
        Self { patterns }
    }
}

/// How a permitted host's addresses are found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new way must break every dialler's match")]
pub enum Route {
    /// These, and no others: an address was asked for, or `localhost`.
    Addresses(Vec<IpAddr>),
    /// Those that the name resolves to now, each of which has to pass [`Hosts::check_address`].
    Resolve,
}

/// Why a host may not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// No pattern covers it.
    NotListed,
    /// A pattern covers the host with other ports only.
    Port,
    /// This pattern denies it.
    Denied(HostPattern),
    /// The name resolves to an address of this kind, which no pattern allows.
    Special {
        /// The address.
        address: IpAddr,
        /// What it is: `private`, `loopback`.
        kind: &'static str,
    },
}

impl Denial {
    /// One word for reports: `not-listed`, `port`, `denied`, `special-address`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotListed => "not-listed",
            Self::Port => "port",
            Self::Denied(_) => "denied",
            Self::Special { .. } => "special-address",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed => formatter.write_str("not listed"),
            Self::Port => formatter
                .write_str("listed with other ports only (80 and 443 unless one is written)"),
            Self::Denied(pattern) => write!(formatter, "denied by {pattern}"),
            Self::Special { address, kind } => {
                write!(
                    formatter,
                    "resolves to the {kind} address {address}, which is not listed itself"
                )
            }
        }
    }
}

impl Hosts {
    /// Whether nothing can be reached.
    pub fn is_empty(&self) -> bool {
        self.with(HostAccess::Allow).next().is_none()
    }

    /// Every pattern, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, HostAccess)> {
        self.patterns.iter().map(|(pattern, access)| (pattern, *access))
    }

    fn with(&self, access: HostAccess) -> impl Iterator<Item = &HostPattern> {
        self.iter().filter(move |(_, found)| *found == access).map(|(pattern, _)| pattern)
    }

    /// Whether `host` may be reached on `port`, and how its addresses are found.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub fn route(&self, host: &Host, port: u16) -> Result<Route, Denial> {
        if let Some(pattern) = self.denying(host, port) {
            return Err(Denial::Denied(pattern.clone()));
        }
        let mut covering =
            self.with(HostAccess::Allow).filter(|pattern| pattern.covers(host)).peekable();
        if covering.peek().is_none() {
            return Err(Denial::NotListed);
        }
        if !covering.any(|pattern| pattern.allows_port(port)) {
            return Err(Denial::Port);
        }
        match host {
            Host::Address(address) => Ok(Route::Addresses(vec![*address])),
            Host::Name(_) if host.is_localhost() => self.loopback(port),
            Host::Name(_) => Ok(Route::Resolve),
        }
    }

    /// The first pattern that denies the host, or the IPv4 address that a translator would make of it.
    fn denying(&self, host: &Host, port: u16) -> Option<&HostPattern> {
        let inner = match host {
            Host::Address(address) => address::embedded(*address).map(Host::from),
            Host::Name(_) => None,
        };
        self.with(HostAccess::Deny).find(|pattern| {
            pattern.denies(host, port)
                || inner.as_ref().is_some_and(|inner| pattern.denies(inner, port))
        })
    }

    /// What `localhost` means is not asked of a resolver (RFC 6761, section 6.3).
    fn loopback(&self, port: u16) -> Result<Route, Denial> {
        let denied = |address: &IpAddr| self.denying(&Host::from(*address), port);
        let left: Vec<IpAddr> =
            LOOPBACK.into_iter().filter(|address| denied(address).is_none()).collect();
        match (left.is_empty(), LOOPBACK.iter().find_map(denied)) {
            (true, Some(pattern)) => Err(Denial::Denied(pattern.clone())),
            _ => Ok(Route::Addresses(left)),
        }
    }

    /// Whether an address that a permitted name resolved to may be dialled: a public one that no pattern
    /// denies, or one that a pattern allows.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub fn check_address(&self, address: IpAddr, port: u16) -> Result<(), Denial> {
        let host = Host::from(address);
        if let Some(pattern) = self.denying(&host, port) {
            return Err(Denial::Denied(pattern.clone()));
        }
        let kind = match &host {
            Host::Address(canonical) => address::special(*canonical),
            Host::Name(_) => None,
        };
        match kind {
            Some(kind) if !self.lists_address(address, port) => {
                Err(Denial::Special { address, kind })
            }
            _ => Ok(()),
        }
    }

    /// Whether a pattern that names addresses allows this one.
    pub fn lists_address(&self, address: IpAddr, port: u16) -> bool {
        let host = Host::from(address);
        self.with(HostAccess::Allow)
            .any(|pattern| pattern.covers(&host) && pattern.allows_port(port))
    }

    /// The first pattern for which these hosts are more than `limit`'s: one that allows what no pattern there does, or
    /// one that is denied there and not here.
    pub(crate) fn beyond(&self, limit: &Self) -> Option<(HostPattern, HostAccess)> {
        let allowed = self
            .with(HostAccess::Allow)
            .find(|own| !limit.with(HostAccess::Allow).any(|theirs| theirs.allows_all_of(own)));
        let denied = limit
            .with(HostAccess::Deny)
            .find(|theirs| !self.with(HostAccess::Deny).any(|own| own.denies_all_of(theirs)));
        let allowed = allowed.map(|pattern| (pattern.clone(), HostAccess::Allow));
        allowed.or_else(|| denied.map(|pattern| (pattern.clone(), HostAccess::Deny)))
    }
}

#[cfg(test)]
mod tests;
