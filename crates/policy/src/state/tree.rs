//! JSON text to a tree that remembers member order and refuses a key given twice.
//!
//! `serde_json::Value` would silently keep one of two equal keys, and derived types cannot say
//! where in the text something is wrong.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::error::{StateError, StateErrorKind};

/// A tree takes memory out of proportion to its text (`[[],[],…]`), so its size has a limit of
/// its own: nine values for each of 8192 entries leave room.
const MAX_VALUES: usize = 100_000;

/// How many characters of a foreign text are shown.
const SHOWN: usize = 80;

/// One JSON value. Numbers other than non-negative integers are never needed.
#[derive(Debug)]
pub(super) enum Tree {
    Null,
    Boolean(bool),
    Unsigned(u64),
    OtherNumber,
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Tree {
    /// What was found, for "expected …, found …".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
            Self::OtherNumber => "a number".to_owned(),
            Self::Text(value) => quote(value),
            Self::List(_) => "an array".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// Text found in a state, shortened and quoted for a message.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// The path of a member: `a.b`, or `a["odd key"]` where the key is no plain word. Long keys are
/// shortened: every member's path repeats its parents'.
pub(super) fn member_path(parent: &str, key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = (1..=SHOWN).contains(&key.len()) && key.bytes().all(plain);
    match (parent.is_empty(), is_plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{parent}.{key}"),
        (_, false) => format!("{parent}[{}]", quote(key)),
    }
}

/// Parses exactly one JSON value.
pub(super) fn parse(json: &str) -> Result<Tree, StateError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut fault = None;
    let mut values = 0;
    let seed = Seed { path: String::new(), fault: &mut fault, values: &mut values };
    let parsed = seed.deserialize(&mut deserializer).and_then(|tree| {
        deserializer.end()?;
        Ok(tree)
    });
    parsed.map_err(|error| {
        fault.unwrap_or_else(|| {
            let reason = format!("expected one JSON object: {error}");
            StateError::new(StateErrorKind::Malformed, "", reason)
        })
    })
}

/// Deserializes one value, knowing where it stands. A fault found here is left in `fault`, with
/// its path; the error that serde carries only ends the walk.
struct Seed<'a> {
    path: String,
    fault: &'a mut Option<StateError>,
    values: &'a mut usize,
}

impl Seed<'_> {
    fn fail<E: serde::de::Error>(&mut self, kind: StateErrorKind, path: String, why: &str) -> E {
        *self.fault = Some(StateError::new(kind, path, why));
        E::custom(why)
    }

    fn child(&mut self, path: String) -> Seed<'_> {
        Seed { path, fault: self.fault, values: self.values }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Tree;

    fn deserialize<D: serde::Deserializer<'de>>(
        mut self,
        deserializer: D,
    ) -> Result<Tree, D::Error> {
        *self.values += 1;
        if *self.values > MAX_VALUES {
            let why = "more than 100000 values in the sandbox state";
            return Err(self.fail(StateErrorKind::TooLarge, String::new(), why));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Boolean(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Unsigned(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            match access.next_element_seed(self.child(path))? {
                Some(item) => items.push(item),
                None => return Ok(Tree::List(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = member_path(&self.path, &key);
            if !seen.insert(key.clone()) {
                let why = "this key is given twice";
                return Err(self.fail(StateErrorKind::DuplicateKey, path, why));
            }
            let value = access.next_value_seed(self.child(path))?;
            members.push((key, value));
        }
        Ok(Tree::Object(members))
    }
}
