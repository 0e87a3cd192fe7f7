//! Scopes: reading, joining, choosing.

use std::fmt;

use crate::error::ScopeFault;

/// The most scopes that are taken in one list.
const MOST: usize = 256;
/// The longest list, in bytes.
const LONGEST: usize = 16 * 1024;

/// Asks for a refresh token (OpenID Connect Core §11).
pub const OFFLINE_ACCESS: &str = "offline_access";

/// A list of scope tokens (RFC 6749 §3.3) in order, none twice.
#[derive(Debug, Clone, Default)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Reads a list separated by spaces.
    ///
    /// # Errors
    /// [`ScopeFault`] for a character that no scope has, or too many of them.
    pub fn parse(text: &str) -> Result<Self, ScopeFault> {
        if text.len() > LONGEST {
            return Err(ScopeFault::TooLong);
        }
        Self::from_tokens(text.split(' ').filter(|token| !token.is_empty()))
    }

    /// Takes tokens one by one.
    ///
    /// # Errors
    /// [`ScopeFault`] for an empty token, a character that no scope has, or too many of them.
    pub fn from_tokens<T: AsRef<str>>(
        tokens: impl IntoIterator<Item = T>,
    ) -> Result<Self, ScopeFault> {
        let mut scopes = Self::default();
        for token in tokens {
            let token = token.as_ref();
            if token.is_empty() || !token.bytes().all(is_scope_character) {
                return Err(ScopeFault::Character);
            }
            scopes.add(token);
            if scopes.0.len() > MOST {
                return Err(ScopeFault::TooLong);
            }
        }
        Ok(scopes)
    }

    /// Each scope, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `scope` is in the list.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|own| own == scope)
    }

    /// Whether every scope of `other` is in the list.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.iter().all(|scope| self.contains(scope))
    }

    /// Both lists, this one first.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for scope in other.iter() {
            union.add(scope);
        }
        union
    }

    /// What is here and not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().filter(|scope| !other.contains(scope)).cloned().collect())
    }

    pub(crate) fn add(&mut self, scope: &str) {
        if !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }
}

impl PartialEq for Scopes {
    /// Order does not matter (RFC 6749 §3.3).
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.covers(other)
    }
}

impl Eq for Scopes {}

impl fmt::Display for Scopes {
    /// Separated by spaces, as on the wire.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Where the scopes of a request may come from.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ScopeSources<'a> {
    /// What a person or a configuration asked for by name.
    pub explicit: Option<&'a Scopes>,
    /// `scope` of the challenge (RFC 6750 §3), which is authoritative for this request.
    pub challenged: Option<&'a Scopes>,
    /// `scopes_supported` of the resource (RFC 9728 §2).
    pub resource: Option<&'a Scopes>,
    /// `scopes_supported` of the authorization server (RFC 8414 §2): says only whether
    /// `offline_access` is known.
    pub server: Option<&'a Scopes>,
}

impl ScopeSources<'_> {
    /// The scopes to ask for: explicit, else the challenge's, else the resource's, else none at all.
    /// `offline_access` is added only where the authorization server lists it and something else
    /// than an explicit list decides.
    #[must_use]
    pub fn choose(&self) -> Option<Scopes> {
        if let Some(explicit) = self.explicit {
            return Some(explicit.clone());
        }
        let mut chosen = self.challenged.or(self.resource).cloned().unwrap_or_default();
        if self.server.is_some_and(|server| server.contains(OFFLINE_ACCESS)) {
            chosen.add(OFFLINE_ACCESS);
        }
        Some(chosen).filter(|chosen| !chosen.is_empty())
    }
}

/// `%x21 / %x23-5B / %x5D-7E`
fn is_scope_character(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn lists_are_read_once_and_compared_without_order() {
        assert_eq!(scopes("a  b a ").to_string(), "a b");
        assert_eq!(scopes("a b"), scopes("b a"));
        assert_ne!(scopes("a b"), scopes("a"));
        assert!(scopes("").is_empty());
        for bad in ["a\"", "a\\", "\u{e4}", "a\tb", "a\nb"] {
            assert!(Scopes::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Scopes::from_tokens(["a b"]).is_err());
        assert!(Scopes::from_tokens([""]).is_err());
        assert!(Scopes::from_tokens((0..300).map(|n| n.to_string())).is_err());
    }

    #[test]
    fn scope_priority() {
        let (explicit, challenged, resource) = (scopes("x"), scopes("files:read"), scopes("a b"));
        let all = ScopeSources {
            explicit: Some(&explicit),
            challenged: Some(&challenged),
            resource: Some(&resource),
            server: None,
        };
        assert_eq!(all.choose().unwrap().to_string(), "x");
        let all = ScopeSources { explicit: None, ..all };
        assert_eq!(all.choose().unwrap().to_string(), "files:read");
        let all = ScopeSources { challenged: None, ..all };
        assert_eq!(all.choose().unwrap().to_string(), "a b");
        assert_eq!(ScopeSources::default().choose(), None);
    }

    #[test]
    fn offline_access_rule() {
        let (knows, other, asked) = (scopes("a offline_access"), scopes("a b"), scopes("a"));
        let with = |server, explicit| {
            let challenged = Some(&asked);
            ScopeSources { server, explicit, challenged, resource: None }.choose()
        };
        assert_eq!(with(Some(&knows), None).unwrap().to_string(), "a offline_access");
        assert_eq!(with(Some(&other), None).unwrap().to_string(), "a");
        assert_eq!(with(None, None).unwrap().to_string(), "a");
        assert_eq!(with(Some(&knows), Some(&asked)).unwrap().to_string(), "a");
    }
}
