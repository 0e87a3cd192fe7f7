//! JSON text to a tree that remembers member order and refuses a key given twice.
//!
//! `serde_json::Value` would silently keep one of two equal keys, and derived types cannot say
//! where in the text something is wrong.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::error::{StateError, StateErrorKind};

/// A tree takes memory out of proportion to its text (`[[],[],…]`), so its size has a limit of
/// its own: nine values for each of 8192 entries leave room.
const MAX_VALUES: usize = 100_000;

/// How many characters of a foreign text are shown.
const SHOWN: usize = 80;

/// One JSON value. Numbers other than non-negative integers are never needed.
#[derive(Debug)]
pub(super) enum Tree<'a> {
    Null,
    Boolean(bool),
    Unsigned(u64),
    OtherNumber,
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl Tree<'_> {
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
fn member_path(parent: &str, key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = (1..=SHOWN).contains(&key.len()) && key.bytes().all(plain);
    match (parent.is_empty(), is_plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{parent}.{key}"),
        (_, false) => format!("{parent}[{}]", quote(key)),
    }
}

/// Where a value stands. It is written out for an error only.
#[derive(Debug, Clone, Default)]
pub(super) struct Location<'a>(Option<Rc<(Self, Step<'a>)>>);

#[derive(Debug)]
enum Step<'a> {
    Member(Cow<'a, str>),
    Item(usize),
}

impl Step<'_> {
    fn below(&self, path: &str) -> String {
        match self {
            Self::Member(key) => member_path(path, key),
            Self::Item(index) => format!("{path}[{index}]"),
        }
    }
}

impl<'a> Location<'a> {
    /// Of the member of an object that is here.
    pub(super) fn member(&self, key: Cow<'a, str>) -> Self {
        Self(Some(Rc::new((self.clone(), Step::Member(key)))))
    }

    /// Of the item of a list that is here.
    pub(super) fn item(&self, index: usize) -> Self {
        Self(Some(Rc::new((self.clone(), Step::Item(index)))))
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = self;
        while let Some(inner) = &place.0 {
            steps.push(&inner.1);
            place = &inner.0;
        }
        let path = steps.iter().rev().fold(String::new(), |path, step| step.below(&path));
        formatter.write_str(&path)
    }
}

/// Parses exactly one JSON value.
pub(super) fn parse(json: &str) -> Result<Tree<'_>, StateError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut fault = None;
    let mut values = 0;
    let seed = Seed { fault: &mut fault, values: &mut values };
    let parsed = seed.deserialize(&mut deserializer).and_then(|tree| {
        deserializer.end()?;
        Ok(tree)
    });
    parsed.map_err(|error| match fault {
        Some(fault) => fault.into_error(),
        None => {
            let reason = format!("expected one JSON object: {error}");
            StateError::new(StateErrorKind::Malformed, "", reason)
        }
    })
}

/// What is wrong, and where: the steps to it, the last one first.
struct Fault<'a> {
    kind: StateErrorKind,
    reason: String,
    steps: Vec<Step<'a>>,
}

impl Fault<'_> {
    fn into_error(self) -> StateError {
        let steps = self.steps.iter().rev();
        let path = match self.kind {
            StateErrorKind::TooLarge => String::new(),
            _ => steps.fold(String::new(), |path, step| step.below(&path)),
        };
        StateError::new(self.kind, path, self.reason)
    }
}

/// One value.
struct Seed<'a, 'de> {
    fault: &'a mut Option<Fault<'de>>,
    values: &'a mut usize,
}

impl<'de> Seed<'_, 'de> {
    /// Notes why reading ends here; the error itself only carries the news up.
    fn fail<E: serde::de::Error>(&mut self, kind: StateErrorKind, why: &str) -> E {
        *self.fault = Some(Fault { kind, reason: why.to_owned(), steps: Vec::new() });
        E::custom(why)
    }

    /// Notes on the way up where it was.
    fn at<E>(&mut self, step: Step<'de>, error: E) -> E {
        if let Some(fault) = self.fault {
            fault.steps.push(step);
        }
        error
    }

    fn child(&mut self) -> Seed<'_, 'de> {
        Seed { fault: self.fault, values: self.values }
    }
}

/// The keys of one object; most have few.
#[derive(Default)]
struct Keys(HashSet<String>);

impl Keys {
    const FEW: usize = 16;

    /// Whether `key` is not among `members`, whose keys this knows once they are many.
    fn is_new(&mut self, members: &[(Cow<'_, str>, Tree<'_>)], key: &str) -> bool {
        if members.len() < Self::FEW {
            return members.iter().all(|(present, _)| present != key);
        }
        if self.0.is_empty() {
            self.0.extend(members.iter().map(|(present, _)| present.clone().into_owned()));
        }
        self.0.insert(key.to_owned())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, 'de> {
    type Value = Tree<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(
        mut self,
        deserializer: D,
    ) -> Result<Tree<'de>, D::Error> {
        *self.values += 1;
        if *self.values > MAX_VALUES {
            let why = "more than 100000 values in the sandbox state";
            return Err(self.fail(StateErrorKind::TooLarge, why));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, 'de> {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Boolean(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Unsigned(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Tree<'de>, A::Error> {
        let mut items = Vec::new();
        loop {
            match access.next_element_seed(self.child()) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Tree::List(items)),
                Err(error) => return Err(self.at(Step::Item(items.len()), error)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Tree<'de>, A::Error> {
        let mut members = Vec::new();
        let mut keys = Keys::default();
        while let Some(key) = access.next_key_seed(Key)? {
            if !keys.is_new(&members, &key) {
                let error = self.fail(StateErrorKind::DuplicateKey, "this key is given twice");
                return Err(self.at(Step::Member(key), error));
            }
            match access.next_value_seed(self.child()) {
                Ok(value) => members.push((key, value)),
                Err(error) => return Err(self.at(Step::Member(key), error)),
            }
        }
        Ok(Tree::Object(members))
    }
}

/// A key, as it stands in the text if nothing in it is escaped.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }
}
