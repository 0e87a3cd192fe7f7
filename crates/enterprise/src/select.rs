//! Whose identity is used: a pure decision about what is kept.
//!
//! `docs/enterprise.md` has the table of every combination; each of its cells is a test.

use plenipo_oauth::Issuer;

use crate::identity::{Pin, Source};

/// What an identity is wanted for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wanted<'a> {
    /// The configured identity provider.
    pub issuer: &'a Issuer,
    /// The configured client there.
    pub client_id: &'a str,
    /// `--as`: a subject, or the name that was shown for one.
    pub person: Option<&'a str>,
}

/// A sign-in that is kept, as far as the choice needs it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Kept {
    /// Who, and which sign-in of theirs.
    pub pin: Pin,
    /// What it is good for.
    pub condition: Condition,
    /// A name or an address, to show.
    pub name: Option<String>,
}

/// What a sign-in is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Condition {
    /// There is a token to ask with.
    Live,
    /// All that is kept has ended.
    Expired,
    /// The identity provider refused it.
    Rejected,
    /// Somebody signed out.
    SignedOut,
}

/// Why nobody's identity is used. No request is sent then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unselected {
    /// Nobody is signed in.
    Nobody {
        /// Which sign-in there was, or would be first.
        source: Source,
    },
    /// It is there and cannot be used; nothing else takes its place.
    Unusable {
        /// Which.
        source: Source,
        /// Why.
        condition: Condition,
    },
    /// What is kept is of an issuer that differs by a slash at the end.
    Slash {
        /// The configured issuer.
        configured: String,
        /// The one that is kept.
        kept: String,
        /// Which sign-in.
        source: Source,
    },
    /// Several people could be meant.
    Several {
        /// Names or subjects.
        people: Vec<String>,
    },
    /// Nobody of that name is signed in.
    NotThere {
        /// What `--as` said.
        person: String,
    },
}

impl<'a> Wanted<'a> {
    /// Whoever it is.
    #[must_use]
    pub fn new(issuer: &'a Issuer, client_id: &'a str) -> Self {
        Self { issuer, client_id, person: None }
    }

    /// Somebody who is named.
    #[must_use]
    pub fn of_person(mut self, person: Option<&'a str>) -> Self {
        self.person = person;
        self
    }

    fn is_of(&self, kept: &Kept) -> bool {
        kept.pin.identity.issuer == *self.issuer && kept.pin.identity.client_id == self.client_id
    }
}

impl Kept {
    /// From its parts.
    #[must_use]
    pub fn new(pin: Pin, condition: Condition) -> Self {
        Self { pin, condition, name: None }
    }

    fn subject(&self) -> &str {
        &self.pin.identity.subject
    }

    /// Name or subject.
    fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.subject().to_owned())
    }

    fn usable(&self) -> Result<&Pin, Unselected> {
        match self.condition {
            Condition::Live => Ok(&self.pin),
            condition => Err(Unselected::Unusable { source: self.pin.identity.source, condition }),
        }
    }
}

/// The sign-in to use: the enterprise sign-in of the person if there is one, good or not; the
/// account's otherwise, if it is of exactly this issuer and client.
///
/// The person is whom `--as` names, else the one who is signed in to the account at this issuer,
/// else the only one who is signed in for the enterprise.
///
/// # Errors
/// [`Unselected`].
pub fn select<'k>(wanted: Wanted<'_>, kept: &'k [Kept]) -> Result<&'k Pin, Unselected> {
    let present = || kept.iter().filter(|kept| kept.condition != Condition::SignedOut);
    let of = |source| present().filter(move |kept| kept.pin.identity.source == source);
    let stored: Vec<_> = of(Source::Enterprise).filter(|kept| wanted.is_of(kept)).collect();
    let account = of(Source::Account).next();
    // A subject means something at its own issuer only.
    let account_here = account.filter(|kept| kept.pin.identity.issuer == *wanted.issuer);
    let person = match wanted.person {
        Some(person) => Some(named(person, stored.iter().copied().chain(account_here))?),
        None => account_here.map(Kept::subject),
    };
    let chosen = match (person, stored.as_slice()) {
        (Some(person), stored) => stored.iter().find(|kept| kept.subject() == person).copied(),
        (None, []) => None,
        (None, [only]) => Some(*only),
        (None, several) => return Err(all(several.iter().copied())),
    };
    let account = account
        .filter(|kept| wanted.is_of(kept) && person.is_none_or(|person| kept.subject() == person));
    match chosen.or(account) {
        Some(kept) => kept.usable(),
        None if stored.is_empty() => Err(nobody(wanted, kept)),
        None => Err(all(stored.into_iter().chain(account_here))),
    }
}

/// The subject of the one who is called so.
fn named<'k>(
    person: &str,
    kept: impl Iterator<Item = &'k Kept> + Clone,
) -> Result<&'k str, Unselected> {
    if let Some(kept) = kept.clone().find(|kept| kept.subject() == person) {
        return Ok(kept.subject());
    }
    let mut called = kept.filter(|kept| kept.name.as_deref() == Some(person));
    let first = called.next();
    let first = first.ok_or_else(|| Unselected::NotThere { person: person.to_owned() })?;
    match called.find(|kept| kept.subject() != first.subject()) {
        None => Ok(first.subject()),
        Some(_) => Err(Unselected::Several { people: vec![person.to_owned()] }),
    }
}

fn all<'k>(kept: impl Iterator<Item = &'k Kept>) -> Unselected {
    Unselected::Several { people: kept.map(Kept::shown).collect() }
}

/// The nearest thing to what was looked for.
fn nobody(wanted: Wanted<'_>, kept: &[Kept]) -> Unselected {
    let slash = kept.iter().find(|kept| {
        kept.condition != Condition::SignedOut
            && wanted.issuer.differs_by_slash(kept.pin.identity.issuer.as_str())
    });
    if let Some(found) = slash {
        return Unselected::Slash {
            configured: wanted.issuer.to_string(),
            kept: found.pin.identity.issuer.to_string(),
            source: found.pin.identity.source,
        };
    }
    let left =
        |source| kept.iter().any(|kept| kept.pin.identity.source == source && wanted.is_of(kept));
    match !left(Source::Enterprise) && left(Source::Account) {
        true => Unselected::Nobody { source: Source::Account },
        false => Unselected::Nobody { source: Source::Enterprise },
    }
}
