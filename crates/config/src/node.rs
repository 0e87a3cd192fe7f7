//! A parsed document, TOML or JSON, with the place of everything: what the readers walk.

use std::cell::RefCell;

use crate::error::ConfigError;
use plenipo_connect::text::{nearest, shown};

/// Keys that have a part in what does not fit together, and what that is.
pub(crate) type Misfit = (&'static [&'static str], &'static str);

/// A value and where it starts. It may hold secrets, so it cannot be printed.
pub(crate) struct Node {
    pub(crate) offset: usize,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    Null,
    Boolean(bool),
    /// Digits as written, without underscores and radix prefix.
    Integer {
        digits: String,
        radix: u32,
    },
    Float(String),
    Text(String),
    Date,
    Array(Vec<Node>),
    Table(Table),
}

/// Members in the order of the parser; a JSON object may have one name twice.
pub(crate) type Table = Vec<(Name, Node)>;

/// A member's name and where it is written.
pub(crate) struct Name {
    pub(crate) offset: usize,
    pub(crate) text: String,
}

impl Value {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer { .. } => "integer",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::Date => "datetime",
            Self::Array(_) => "array",
            Self::Table(_) => "table",
        }
    }
}

/// The faults of a file, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<ConfigError>>);

/// A place in a file: what an error needs.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    faults: &'a Faults,
    text: &'a str,
    offset: usize,
    key: String,
}

impl<'a> Place<'a> {
    /// The start of a file, whose faults go where they are told.
    pub(crate) fn start(file: &'a str, text: &'a str, faults: &'a Faults) -> Self {
        Self { file, faults, text, offset: 0, key: String::new() }
    }

    /// What was read, if it was: a fault is noted, and reading goes on.
    pub(crate) fn note<T>(&self, read: Result<T, ConfigError>) -> Option<T> {
        read.map_err(|fault| self.faults.0.borrow_mut().push(fault)).ok()
    }

    /// Hands each member of a table to `take`, and goes on where one has a fault.
    pub(crate) fn each(
        &self,
        node: &Node,
        mut take: impl FnMut(&str, &Node, &Self) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        for (name, value) in self.table(node)? {
            let place = self.member(name);
            place.note(take(&name.text, value, &place));
        }
        Ok(())
    }

    /// As [`Self::each`], of a table that is good only as a whole.
    pub(crate) fn all(
        &self,
        node: &Node,
        take: impl FnMut(&str, &Node, &Self) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        let before = self.noted();
        self.each(node, take)?;
        self.whole(before)
    }

    /// How many faults were noted up to now.
    pub(crate) fn noted(&self) -> usize {
        self.faults.0.borrow().len()
    }

    /// Refuses a value in which faults were noted since there were so many: the last is handed on like that of any other.
    pub(crate) fn whole(&self, since: usize) -> Result<(), ConfigError> {
        match self.noted() > since {
            true => self.faults.0.borrow_mut().pop().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// The faults that were noted since there were so many.
    pub(crate) fn noted_since(&self, count: usize) -> Vec<ConfigError> {
        let mut faults = self.faults.0.borrow_mut();
        let count = count.min(faults.len());
        faults.split_off(count)
    }

    pub(crate) fn at(&self, offset: usize) -> Self {
        Self { offset, ..self.clone() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Counted from 1.
    pub(crate) fn line(&self) -> usize {
        let before = self.text.as_bytes().get(..self.offset).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1)
    }

    pub(crate) fn fault(&self, reason: impl Into<String>) -> ConfigError {
        ConfigError {
            file: self.file.to_owned(),
            line: self.line(),
            key: self.key.clone(),
            reason: reason.into(),
            hint: None,
        }
    }

    /// The place of a member.
    pub(crate) fn member(&self, name: &Name) -> Self {
        let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let text = match shown(&name.text) {
            text if !text.is_empty() && text.bytes().all(bare) => text,
            text => format!("\"{text}\""),
        };
        let key = if self.key.is_empty() { text } else { format!("{}.{text}", self.key) };
        Self { offset: name.offset, key, ..*self }
    }

    /// This place, under the name of a key that is not there or was read before.
    pub(crate) fn named(&self, key: &str) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) };
        Self { key, ..*self }
    }

    /// This table, on the line of one of its members: the last of `path` that is there.
    pub(crate) fn on_line_of(&self, node: &Node, path: &[&str]) -> Self {
        let (mut place, mut node) = (self.clone(), node);
        for key in path {
            let Value::Table(table) = &node.value else { return place };
            let Some((name, value)) = table.iter().find(|(name, _)| name.text == *key) else {
                return place;
            };
            (place, node) = (place.at(name.offset), value);
        }
        place
    }

    /// A fault of this table, on the line of the first of the keys that it has.
    pub(crate) fn misfit(&self, node: &Node, (keys, reason): Misfit) -> ConfigError {
        let table = match &node.value {
            Value::Table(table) => table.as_slice(),
            _ => &[],
        };
        let found = keys.iter().find_map(|key| table.iter().find(|(name, _)| name.text == *key));
        found.map_or(self.clone(), |(name, _)| self.at(name.offset)).fault(reason)
    }

    /// The place of an item in this array.
    fn item(&self, index: usize, node: &Node) -> Self {
        Self { offset: node.offset, key: format!("{}[{index}]", self.key), ..*self }
    }

    pub(crate) fn unknown_key<'k>(
        &self,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> ConfigError {
        let mut fault = self.fault("is not a known key");
        fault.hint = nearest(name, known).map(|key| format!("did you mean `{key}`?"));
        fault
    }

    pub(crate) fn wrong_type(&self, expected: &str, found: &Value) -> ConfigError {
        self.fault(format!("should be {expected}, found {}", found.kind()))
    }

    pub(crate) fn string(&self, node: &Node) -> Result<String, ConfigError> {
        let Value::Text(text) = &node.value else {
            return Err(self.wrong_type("a string", &node.value));
        };
        if text.contains('\0') {
            return Err(self.fault("contains a NUL character"));
        }
        Ok(text.clone())
    }

    pub(crate) fn boolean(&self, node: &Node) -> Result<bool, ConfigError> {
        match &node.value {
            Value::Boolean(value) => Ok(*value),
            other => Err(self.wrong_type("true or false", other)),
        }
    }

    pub(crate) fn table<'n>(&self, node: &'n Node) -> Result<&'n Table, ConfigError> {
        match &node.value {
            Value::Table(table) => Ok(table),
            other => Err(self.wrong_type("a table", other)),
        }
    }

    pub(crate) fn array<'n>(
        &self,
        node: &'n Node,
    ) -> Result<impl Iterator<Item = (Self, &'n Node)>, ConfigError> {
        let Value::Array(items) = &node.value else {
            return Err(self.wrong_type("an array", &node.value));
        };
        Ok(items.iter().enumerate().map(|(index, item)| (self.item(index, item), item)))
    }

    pub(crate) fn strings(&self, node: &Node) -> Result<Vec<String>, ConfigError> {
        let items = self.array(node)?;
        Ok(items.filter_map(|(place, item)| place.note(place.string(item))).collect())
    }
}
