//! JSON to nodes, with what VS Code's files have besides: `//` and `/* */` comments, and commas
//! after the last member.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::ConfigError;
use crate::node::{Name, Node, Place, Table, Value};
use plenipo_connect::text::shown;

/// How deep values may nest; no configuration needs more.
const MAX_DEPTH: usize = 32;

pub(crate) fn parse(root: &Place<'_>, text: &str) -> Result<Table, ConfigError> {
    let plain = without_comments(text);
    let whole: &RawValue = serde_json::from_str(&plain).map_err(|error| {
        let place = root.at(offset_of(text, error.line()));
        let mut reason = error.to_string();
        if let Some(end) = reason.rfind(" at line ") {
            reason.truncate(end);
        }
        let column = match error.column() {
            0 => String::new(),
            column => format!(" (column {column})"),
        };
        place.fault(format!("is not JSON: {}{column}", shown(&reason)))
    })?;
    let document = Document { root, text: &plain };
    let node = document.node(whole, 0)?;
    match node.value {
        Value::Table(table) => Ok(table),
        other => Err(root.wrong_type("a JSON object", &other)),
    }
}

/// The byte at which a line (counted from 1) starts.
fn offset_of(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

struct Document<'a> {
    root: &'a Place<'a>,
    text: &'a str,
}

impl Document<'_> {
    /// Where a part of the text starts.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn node(&self, raw: &RawValue, depth: usize) -> Result<Node, ConfigError> {
        let text = raw.get();
        let offset = self.offset(text);
        let fault = |reason: String| self.root.at(offset).fault(reason);
        if depth > MAX_DEPTH {
            return Err(fault(format!("nests deeper than {MAX_DEPTH} levels")));
        }
        let invalid = |error: serde_json::Error| fault(format!("is not JSON: {error}"));
        let value = match text.as_bytes().first() {
            Some(b'n') => Value::Null,
            Some(b't') => Value::Boolean(true),
            Some(b'f') => Value::Boolean(false),
            Some(b'"') => Value::Text(serde_json::from_str(text).map_err(invalid)?),
            Some(b'[') => {
                let items = serde_json::Deserializer::from_str(text)
                    .deserialize_seq(Items)
                    .map_err(invalid)?;
                let nodes = items.into_iter().map(|item| self.node(item, depth + 1));
                Value::Array(nodes.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let members = serde_json::Deserializer::from_str(text)
                    .deserialize_map(Members)
                    .map_err(invalid)?;
                let mut table = Table::with_capacity(members.len());
                for (name, value) in members {
                    let node = self.node(value, depth + 1)?;
                    table.push((Name { offset: node.offset, text: name }, node));
                }
                Value::Table(table)
            }
            _ if text.contains(['.', 'e', 'E']) => Value::Float(text.to_owned()),
            _ => Value::Integer { digits: text.to_owned(), radix: 10 },
        };
        Ok(Node { offset, value })
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// The text with comments and trailing commas turned into spaces: every byte keeps its place.
fn without_comments(text: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    // A comma after a value that nothing but space and comments has followed so far.
    let mut comma = None;
    let mut before = b'{';
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'"', _) => {
                (comma, before) = (None, byte);
                out.push(byte);
                while let Some(inner) = bytes.next() {
                    out.push(inner);
                    match inner {
                        b'"' => break,
                        b'\\' => out.extend(bytes.next()),
                        _ => {}
                    }
                }
            }
            (b'/', Some(b'/')) => {
                out.push(b' ');
                while let Some(inner) = bytes.next_if(|inner| *inner != b'\n') {
                    out.push(if inner == b'\r' { b'\r' } else { b' ' });
                }
            }
            (b'/', Some(b'*')) => {
                out.extend([b' ', b' ']);
                bytes.next();
                let mut last = b' ';
                for inner in bytes.by_ref() {
                    out.push(if inner == b'\n' { b'\n' } else { b' ' });
                    if last == b'*' && inner == b'/' {
                        break;
                    }
                    last = inner;
                }
            }
            (b',', _) => {
                comma = (!b"{[,:".contains(&before)).then_some(out.len());
                before = byte;
                out.push(byte);
            }
            (b'}' | b']', _) => {
                if let Some(place) = comma.take().and_then(|index: usize| out.get_mut(index)) {
                    *place = b' ';
                }
                before = byte;
                out.push(byte);
            }
            (space, _) if space.is_ascii_whitespace() => out.push(space),
            _ => {
                (comma, before) = (None, byte);
                out.push(byte);
            }
        }
    }
    // Only whole characters outside ASCII were replaced, byte by byte, by spaces.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces_and_nothing_else_moves() {
        let text = "{ // ä \"x\"\n \"a//b\": [1, /* , ] */ 2, ],\r\n /* \n* */ \"\\\"/*\": {\"u\": 1,},\n}";
        let plain = without_comments(text);
        assert_eq!(plain.len(), text.len());
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a//b": [1, 2], "\"/*": {"u": 1}}));
        assert_eq!(plain.lines().count(), text.lines().count());
    }

    #[test]
    fn a_comma_alone_stays_an_error() {
        for text in ["[,]", "{,}", "[1,,]", "{\"a\":1,,}", "/", "/*", "[1 //"] {
            let faults = crate::node::Faults::default();
            let root = Place::start("f", text, &faults);
            assert!(parse(&root, text).is_err(), "{text}");
        }
    }
}
