//! Who somebody is to the company: what a connection is pinned to.

use std::fmt;

use plenipo_oauth::Issuer;
use ring::rand::{SecureRandom, SystemRandom};

use plenipo_credentials::RecordId;

/// Which sign-in an identity comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `plenipo enterprise login`: kept for this purpose alone.
    Enterprise,
    /// `plenipo account login`: the person's own account, which may be lent to it.
    Account,
}

/// A person at an identity provider, as one client of it knows the person.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// Which sign-in it comes from.
    pub source: Source,
    /// The identity provider, to the letter.
    pub issuer: Issuer,
    /// Our client there.
    pub client_id: String,
    /// `sub`.
    pub subject: String,
}

/// Changes with every sign-in and sign-out and with nothing else: 128 random bits, so that even a
/// store that was emptied never has one again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(String);

/// What a connection was made with. Tokens are not part of it: one that is renewed changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pin {
    /// Who.
    pub identity: Identity,
    /// Which sign-in of theirs.
    pub generation: Generation,
}

impl Source {
    /// `enterprise` or `account`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enterprise => "enterprise",
            Self::Account => "account",
        }
    }

    /// The command that signs in.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Enterprise => "plenipo enterprise login",
            Self::Account => "plenipo account login",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Enterprise, Self::Account].into_iter().find(|source| source.as_str() == text)
    }
}

impl Identity {
    /// From its parts.
    #[must_use]
    pub fn new(
        source: Source,
        issuer: Issuer,
        client_id: impl Into<String>,
        subject: impl Into<String>,
    ) -> Self {
        Self { source, issuer, client_id: client_id.into(), subject: subject.into() }
    }

    /// The record of its sign-in. Of accounts there is one, whoever it belongs to.
    pub(crate) fn record(&self) -> RecordId {
        match self.source {
            Source::Account => digest(&["account"]),
            Source::Enterprise => {
                digest(&["person", self.issuer.as_str(), &self.client_id, &self.subject])
            }
        }
    }
}

impl Generation {
    /// A new one; `None` when the system has no random numbers.
    #[must_use]
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self(hexadecimal(&bytes)))
    }

    /// As it is kept: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The reverse; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl Pin {
    /// From its parts.
    #[must_use]
    pub fn new(identity: Identity, generation: Generation) -> Self {
        Self { identity, generation }
    }
}

/// The record that counts the sign-ins and sign-outs that are under way.
pub(crate) fn slot(source: Source, issuer: &Issuer, client_id: &str) -> RecordId {
    match source {
        Source::Account => digest(&["account slot"]),
        Source::Enterprise => digest(&["slot", issuer.as_str(), client_id]),
    }
}

fn digest(parts: &[&str]) -> RecordId {
    RecordId::of("plenipo enterprise 1", parts)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.source, self.issuer, self.client_id, self.subject)
    }
}

impl fmt::Display for Pin {
    /// Source, issuer, client, subject and generation: nothing secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.identity, self.generation.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(source: Source, issuer: &str, client: &str, subject: &str) -> Identity {
        Identity::new(source, Issuer::parse(issuer).unwrap(), client, subject)
    }

    #[test]
    fn people_have_records_of_their_own_and_accounts_share_one() {
        let all = [
            identity(Source::Enterprise, "https://i.example", "c", "ada"),
            identity(Source::Enterprise, "https://i.example/", "c", "ada"),
            identity(Source::Enterprise, "https://i.example", "ca", "da"),
            identity(Source::Enterprise, "https://i.example", "c", "bob"),
            identity(Source::Account, "https://i.example", "c", "ada"),
        ];
        let ids: std::collections::BTreeSet<_> = all.iter().map(Identity::record).collect();
        assert_eq!(ids.len(), all.len());
        let other = identity(Source::Account, "https://j.example", "d", "bob");
        assert_eq!(other.record(), all[4].record());
        for known in &all {
            assert!(!ids.contains(&slot(known.source, &known.issuer, &known.client_id)));
        }
    }

    #[test]
    fn generations_are_never_the_same() {
        let (one, other) = (Generation::random().unwrap(), Generation::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(Generation::parse(one.as_str()), Some(one));
        for bad in ["", "1", &"g".repeat(32), &"A".repeat(32)] {
            assert_eq!(Generation::parse(bad), None);
        }
    }
}
