//! Taking an object apart: every member is taken by name, and what is left over is an error.

use std::borrow::Cow;

use super::tree::{Location, Tree, quote};
use crate::error::{StateError, StateErrorKind};

/// A value and where it stands.
pub(super) struct Located<'a> {
    pub(super) path: Location<'a>,
    pub(super) value: Tree<'a>,
}

impl<'a> Located<'a> {
    pub(super) fn root(value: Tree<'a>) -> Self {
        Self { path: Location::default(), value }
    }

    pub(super) fn fault(&self, kind: StateErrorKind, reason: impl Into<String>) -> StateError {
        StateError::new(kind, self.path.to_string(), reason)
    }

    fn mistyped(&self, expected: &str) -> StateError {
        let found = self.value.describe();
        self.fault(StateErrorKind::WrongType, format!("expected {expected}, found {found}"))
    }

    pub(super) fn object(self) -> Result<Members<'a>, StateError> {
        match self.value {
            Tree::Object(members) => Ok(Members { path: self.path, members }),
            _ => Err(self.mistyped("an object")),
        }
    }

    pub(super) fn list(self) -> Result<(Location<'a>, Vec<Tree<'a>>), StateError> {
        match self.value {
            Tree::List(items) => Ok((self.path, items)),
            _ => Err(self.mistyped("an array")),
        }
    }

    pub(super) fn boolean(self) -> Result<bool, StateError> {
        match self.value {
            Tree::Boolean(value) => Ok(value),
            _ => Err(self.mistyped("a boolean")),
        }
    }

    pub(super) fn unsigned(&self) -> Result<u64, StateError> {
        match self.value {
            Tree::Unsigned(value) => Ok(value),
            _ => Err(self.mistyped("a whole number of at least 1")),
        }
    }

    /// The text, and the location for further complaints about it.
    pub(super) fn text(&self) -> Result<&str, StateError> {
        match &self.value {
            Tree::Text(value) => Ok(value),
            _ => Err(self.mistyped("a string")),
        }
    }

    pub(super) fn text_or_null(self) -> Result<Option<String>, StateError> {
        match self.value {
            Tree::Text(value) => Ok(Some(value.into_owned())),
            Tree::Null => Ok(None),
            _ => Err(self.mistyped("a string or null")),
        }
    }

    /// One of several words, the first of each pair; the last words may be aliases.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], shown: usize) -> Result<T, StateError> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let allowed: Vec<&str> = words.iter().take(shown).map(|(word, _)| *word).collect();
        let (allowed, found) = (allowed.join(", "), quote(text));
        let reason = match shown {
            1 => format!("expected {allowed}, found {found}"),
            _ => format!("expected one of {allowed}, found {found}"),
        };
        Err(self.fault(StateErrorKind::UnknownValue, reason))
    }
}

/// An object's members that have not been taken yet.
pub(super) struct Members<'a> {
    path: Location<'a>,
    members: Vec<(Cow<'a, str>, Tree<'a>)>,
}

impl<'a> Members<'a> {
    /// The member's value while it stays in the object.
    pub(super) fn peek(&self, key: &str) -> Option<&Tree<'a>> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn optional(&mut self, key: &str) -> Option<Located<'a>> {
        let index = self.members.iter().position(|(name, _)| name == key)?;
        let (name, value) = self.members.remove(index);
        Some(Located { path: self.path.member(name), value })
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<Located<'a>, StateError> {
        self.optional(key).ok_or_else(|| {
            let path = self.path.member(Cow::Borrowed(key)).to_string();
            StateError::new(StateErrorKind::MissingMember, path, "this member is missing")
        })
    }

    /// What nobody took, each where it stands, in the order written.
    pub(super) fn into_located(self) -> impl Iterator<Item = (Cow<'a, str>, Located<'a>)> {
        let Self { path, members } = self;
        members.into_iter().map(move |(name, value)| {
            let path = path.member(name.clone());
            (name, Located { path, value })
        })
    }

    /// The names of the members that nobody took.
    pub(super) fn into_names(self) -> Vec<String> {
        self.members.into_iter().map(|(name, _)| name.into_owned()).collect()
    }

    /// Refuses what nobody took.
    pub(super) fn finish(self) -> Result<(), StateError> {
        match self.members.first() {
            None => Ok(()),
            Some((name, _)) => {
                let path = self.path.member(name.clone()).to_string();
                let reason = "unknown member (it may restrict something)";
                Err(StateError::new(StateErrorKind::UnknownMember, path, reason))
            }
        }
    }
}
