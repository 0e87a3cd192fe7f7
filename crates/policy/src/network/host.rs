//! A host as it is compared: one spelling for each.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// Longest text that is looked at; a name has 253 characters at most.
const MAX_TEXT_BYTES: usize = 1024;
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A canonical host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there are names and addresses")]
pub enum Host {
    /// Lower case ASCII (`xn--…` where the name is not), without a trailing dot, never an address in
    /// another spelling.
    Name(String),
    /// An IPv4 address inside an IPv6 one (`::ffff:1.2.3.4`) is the IPv4 address.
    Address(IpAddr),
}

/// What a host must be and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing is there, or an empty label.
    #[error("must be a host name or an address without empty parts")]
    Empty,
    /// Over 253 bytes, or a label over 63.
    #[error("must be at most 253 characters, 63 between dots")]
    TooLong,
    /// A character that is in no host name.
    #[error("must have letters, digits, `-`, `_` and dots only")]
    Character,
    /// Not a name that IDNA (UTS 46) can write in ASCII.
    #[error("must be a valid internationalised name")]
    International,
    /// It looks like an address and is none.
    #[error("must be a valid address where it ends in a number")]
    Address,
}

impl Host {
    /// The canonical host that `text` means: a name in any case, with or without a trailing dot, in Unicode or
    /// ASCII; an IPv4 address in any spelling that `inet_aton(3)` takes; an IPv6 address with or without brackets.
    ///
    /// # Errors
    ///
    /// [`HostError`]: what the text must be.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(HostError::TooLong);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Character)?;
            return inner
                .parse()
                .map(|address: Ipv6Addr| address.into())
                .map_err(|_| HostError::Address);
        }
        if text.contains(':') {
            return text
                .parse()
                .map(|address: Ipv6Addr| address.into())
                .map_err(|_| HostError::Character);
        }
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        let last = name.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return ipv4(name)
                .map(|address| Self::Address(address.into()))
                .ok_or(HostError::Address);
        }
        check_name(name)?;
        Ok(Self::Name(name.to_owned()))
    }

    /// `localhost` and every name below it.
    pub fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl From<Ipv6Addr> for Host {
    fn from(address: Ipv6Addr) -> Self {
        IpAddr::V6(address).into()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// Lower case ASCII. Names without a foreign character or an `xn--` label need no tables.
fn to_ascii(text: &str) -> Result<Cow<'_, str>, HostError> {
    let lower = text.to_ascii_lowercase();
    if lower.is_ascii() && !lower.split('.').any(|label| label.starts_with("xn--")) {
        return Ok(lower.into());
    }
    idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL)
        .map_err(|_| HostError::International)
}

fn check_name(name: &str) -> Result<(), HostError> {
    if name.len() > MAX_NAME_BYTES {
        return Err(HostError::TooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::Empty);
        }
        if label.len() > MAX_LABEL_BYTES {
            return Err(HostError::TooLong);
        }
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if !label.bytes().all(fits) || label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Character);
        }
    }
    Ok(())
}

/// What a C library may take for a part of an address.
fn is_number(label: &str) -> bool {
    let digits = |text: &str, radix| text.chars().all(|digit| digit.is_digit(radix));
    match label.strip_prefix("0x") {
        Some(hexadecimal) => digits(hexadecimal, 16),
        None => !label.is_empty() && digits(label, 10),
    }
}

/// One to four numbers, decimal, octal or hexadecimal; the last fills what is left of 32 bits.
fn ipv4(name: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = name.split('.').map(number).collect::<Option<_>>()?;
    let (last, bytes) = parts.split_last()?;
    let left = 4_u32.checked_sub(u32::try_from(bytes.len()).ok()?).filter(|left| *left > 0)?;
    if *last >= 1_u64 << (8 * left) || bytes.iter().any(|byte| *byte > 255) {
        return None;
    }
    let high = bytes.iter().fold(0, |value, byte| value << 8 | byte);
    u32::try_from(high << (8 * left) | last).ok().map(Ipv4Addr::from_bits)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if part.len() > 1 && part.starts_with('0') => (part, 8),
        None => (part, 10),
    };
    let plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
