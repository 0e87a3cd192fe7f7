//! From `key=value` words and `--args` to one JSON object.

use std::ffi::{OsStr, OsString};
use std::io::Read;

use plenipo_wire::{Fragment, RawValue, object};
use serde_json::Value;

use crate::arguments::CallArguments;
use crate::failure::{Failure, with_sources};

use super::schema::{InputSchema, Property, Types};

/// Longest file or input that becomes an argument.
const MAX_VALUE_BYTES: u64 = 16 * 1024 * 1024;

/// What was given, with files and standard input read.
pub(crate) struct Inputs {
    base: Option<Fragment>,
    words: Vec<(String, Given)>,
}

impl Inputs {
    /// Reads files and standard input. They may take their time, so this comes before anything that has to be ended in
    /// good order.
    pub(super) fn read(given: &CallArguments) -> Result<Self, Failure> {
        let base = given.args.as_deref().map(base).transpose()?;
        Ok(Self { base, ..Self::of_pairs(&given.pairs)? })
    }

    /// Pairs alone.
    pub(crate) fn of_pairs(pairs: &[OsString]) -> Result<Self, Failure> {
        let words = pairs.iter().map(|word| split(word)).collect::<Result<_, _>>()?;
        Ok(Self { base: None, words })
    }

    /// The arguments object: `--args` as the base, pairs over it.
    pub(crate) fn arguments(&self, schema: &InputSchema, tool: &str) -> Result<Fragment, Failure> {
        let mut members: Vec<(String, Member)> = Vec::new();
        for (name, value) in &self.words {
            add(&mut members, schema, (name, value))?;
        }
        let from_base: Vec<(String, Box<RawValue>)> = self
            .base
            .as_ref()
            .and_then(|base| object::entries(base.as_raw()))
            .unwrap_or_default()
            .into_iter()
            .filter(|(name, _)| members.iter().all(|(present, _)| *present != **name))
            .map(|(name, value)| (name.into_owned(), value.to_owned()))
            .collect();
        let in_base = from_base.iter().map(|(name, _)| name);
        let names: Vec<String> =
            in_base.chain(members.iter().map(|(name, _)| name)).cloned().collect();
        check(schema, tool, &names)?;
        match &self.base {
            Some(base) if members.is_empty() => Ok(base.clone()), // as it was written, to the byte
            _ => join(from_base, members),
        }
    }
}

/// A value on its way: one, or the items of a list so far.
enum Member {
    One(String),
    List(Vec<String>),
}

fn add(
    members: &mut Vec<(String, Member)>,
    schema: &InputSchema,
    (name, value): (&str, &Given),
) -> Result<(), Failure> {
    let property = schema.property(name);
    let present = members.iter_mut().find(|(present, _)| present == name);
    let list = property.is_some_and(|property| property.types.is_list());
    let member = match (value, present) {
        (Given::Text(text), Some((_, Member::List(items)))) => {
            items.push(typed(name, text, item_types(property))?);
            return Ok(());
        }
        (_, Some(_)) => {
            return Err(Failure::usage(format!("the argument `{name}` is given more than once"))
                .with_hint("only a list takes several, each as KEY=ITEM"));
        }
        (Given::Json(text), None) => Member::One(text.clone()),
        (Given::Text(text), None) if list && !text.trim_start().starts_with('[') => {
            Member::List(vec![typed(name, text, item_types(property))?])
        }
        (Given::Text(text), None) => {
            Member::One(typed(name, text, property.map(|property| &property.types))?)
        }
    };
    members.push((name.to_owned(), member));
    Ok(())
}

fn item_types(property: Option<&Property>) -> Option<&Types> {
    property.map(|property| &property.items)
}

enum Given {
    Json(String),
    Text(String),
}

fn split(word: &OsStr) -> Result<(String, Given), Failure> {
    let Some(text) = word.to_str() else {
        return Err(Failure::usage(format!("the argument {} is not UTF-8", word.display()))
            .with_hint("put such content into a file and pass KEY=@FILE"));
    };
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(Failure::usage(format!(
            "expected KEY=VALUE, KEY:=JSON or KEY=@FILE, found {text:?}"
        )));
    };
    if let Some(name) = name.strip_suffix(':').filter(|name| !name.is_empty()) {
        let fragment = Fragment::parse(value).map_err(|error| {
            Failure::usage(format!(
                "the value of `{name}` is not JSON: failed to {}",
                with_sources(&error)
            ))
            .with_hint(format!("write {name}={value} to pass it as text"))
        })?;
        if let Some(place) = object::written_twice(fragment.as_raw()) {
            return Err(twice(&format!("the value of `{name}`"), &place));
        }
        return Ok((name.to_owned(), Given::Json(fragment.as_str().to_owned())));
    }
    let value = match value.strip_prefix('@') {
        Some(escaped) if escaped.starts_with('@') => escaped.to_owned(),
        Some(path) => read_file(path)?,
        None => value.to_owned(),
    };
    Ok((name.to_owned(), Given::Text(value)))
}

/// A word as the JSON that the schema wants there.
fn typed(name: &str, text: &str, types: Option<&Types>) -> Result<String, Failure> {
    let as_text = || Ok(Fragment::string(text).as_str().to_owned());
    let Some(types) = types.filter(|types| !types.is_open()) else { return as_text() };
    let parsed = serde_json::from_str::<Value>(text).ok();
    let fits = match &parsed {
        Some(Value::Bool(_)) => types.allows("boolean"),
        Some(Value::Number(number)) => {
            types.allows("number") || (types.allows("integer") && is_integer(number, text))
        }
        Some(Value::Null) => types.allows("null"),
        Some(Value::Array(_)) => types.allows("array"),
        Some(Value::Object(_)) => types.allows("object"),
        Some(Value::String(_)) | None => false,
    };
    if fits {
        return Ok(text.trim().to_owned());
    }
    if types.allows("string") {
        return as_text();
    }
    Err(Failure::usage(format!(
        "the argument `{name}` should be {}, found {text:?}",
        types.words()
    )))
}

/// Whatever the spelling: `1.0` and `1e2` are integers (JSON Schema, "integer"). Beyond what a float can tell apart it has
/// to be written as one.
fn is_integer(number: &serde_json::Number, text: &str) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = |float: f64| float.fract() == 0.0 && float.abs() < EXACT;
    !number.is_f64()
        || number.as_f64().is_some_and(is_whole)
        || text.trim().bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

fn check(schema: &InputSchema, tool: &str, names: &[String]) -> Result<(), Failure> {
    let signature = || format!("the tool is {}", schema.signature(tool));
    if let Some(unknown) = names.iter().find(|name| schema.refuses(name)) {
        let known: Vec<&str> = schema.names().collect();
        let message = format!("{tool} takes no argument `{unknown}`, only {}", known.join(", "));
        return Err(Failure::usage(message).with_hint(signature()));
    }
    let missing = schema.missing(names);
    if missing.is_empty() {
        return Ok(());
    }
    let plural = if missing.len() == 1 { "argument" } else { "arguments" };
    let quoted: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    Err(Failure::usage(format!("{tool} needs the {plural} {}", quoted.join(", ")))
        .with_hint(signature()))
}

fn join(
    base: Vec<(String, Box<RawValue>)>,
    members: Vec<(String, Member)>,
) -> Result<Fragment, Failure> {
    let base = base.into_iter().map(|(name, value)| (name, value.get().to_owned()));
    let members = members.into_iter().map(|(name, member)| {
        let text = match member {
            Member::One(text) => text,
            Member::List(items) => format!("[{}]", items.join(",")),
        };
        (name, text)
    });
    let written: Vec<String> = base
        .chain(members)
        .map(|(name, text)| format!("{}:{text}", Fragment::string(&name).as_str()))
        .collect();
    Fragment::parse_object(&format!("{{{}}}", written.join(","))).map_err(|error| {
        Failure::usage(format!("the arguments do not make a JSON object: {error}"))
    })
}

fn base(text: &str) -> Result<Fragment, Failure> {
    let text = match text.strip_prefix('@') {
        Some(path) => read_file(path)?,
        None if text == "-" => read(std::io::stdin(), "standard input")?,
        None => text.to_owned(),
    };
    let object = Fragment::parse_object(&text).map_err(|error| {
        Failure::usage(format!("--args is not a JSON object: failed to {}", with_sources(&error)))
    })?;
    match object::written_twice(object.as_raw()) {
        None => Ok(object),
        Some(place) => Err(twice("--args", &place)),
    }
}

/// Which of the two a server takes is not for us to guess.
fn twice(what: &str, place: &str) -> Failure {
    let place = plenipo_connect::text::shown(place);
    Failure::usage(format!("{what} has the member `{place}` twice"))
}

fn read_file(path: &str) -> Result<String, Failure> {
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("failed to read {path}: {error}")))?;
    read(file, path)
}

fn read(source: impl Read, what: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let failed =
        |why: &dyn std::fmt::Display| Failure::usage(format!("failed to read {what}: {why}"));
    source.take(MAX_VALUE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_VALUE_BYTES {
        return Err(failed(&"it is longer than 16 MiB"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => Err(failed(&"it is not UTF-8 text")),
    }
}
