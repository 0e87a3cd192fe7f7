//! What is wrong with a value, in words for a person.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::cost::Cost;
use crate::error::{Mismatch, shown};

/// An explanation goes through alternatives one by one and keeps what each says.
const ALTERNATIVES: usize = 2_000;
/// How much of a value is shown, in characters.
const FOUND: usize = 60;

/// The first place where `value`, which does not match, differs.
pub(crate) fn mismatch(validator: &Validator, value: &Value, cost: &Cost) -> Mismatch {
    if cost.alternatives > ALTERNATIVES {
        return Mismatch::unexplained(found(value));
    }
    match validator.validate(value) {
        Err(error) => of(&error),
        Ok(()) => Mismatch::unexplained(found(value)),
    }
}

fn of(error: &ValidationError<'_>) -> Mismatch {
    let path = error.instance_path();
    let (inner, expected, found) = expectation(error);
    let mut place = place(path);
    if let Some(inner) = &inner {
        push_name(&mut place, inner);
    }
    let member = match path.segments().next() {
        Some(LocationSegment::Property(name)) => Some(name.into_owned()),
        _ => inner,
    };
    Mismatch { place, member, expected, found }
}

/// A member the error is about and that is not in its path; what should be there; what is.
fn expectation(error: &ValidationError<'_>) -> (Option<String>, String, String) {
    let here = found(error.instance());
    let plain = |expected: String| (None, expected, here.clone());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default().to_owned();
            (Some(name), "there".to_owned(), "nothing".to_owned())
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let name = unexpected.first().cloned();
            let value = name.as_deref().and_then(|name| error.instance().get(name));
            let value = value.map_or(here.clone(), found);
            (name, "absent".to_owned(), value)
        }
        ValidationErrorKind::Type { kind } => plain(types(kind)),
        ValidationErrorKind::Enum { options } => plain(one_of(options)),
        ValidationErrorKind::Constant { expected_value } => plain(found(expected_value)),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            plain(alternatives(context))
        }
        ValidationErrorKind::Pattern { pattern } => {
            plain(format!("text that matches `{}`", shown(pattern)))
        }
        ValidationErrorKind::PropertyNames { error } => {
            plain(format!("an object with other names: {}", shown(&error.to_string())))
        }
        kind => plain(limit(kind).unwrap_or_else(|| {
            format!("as `{}` in its schema says", error.schema_path().as_str())
        })),
    }
}

fn limit(kind: &ValidationErrorKind) -> Option<String> {
    Some(match kind {
        ValidationErrorKind::Minimum { limit } => format!("at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        ValidationErrorKind::MinLength { limit } => format!("at least {limit} characters long"),
        ValidationErrorKind::MaxLength { limit } => format!("at most {limit} characters long"),
        ValidationErrorKind::MinItems { limit } => format!("a list of at least {limit}"),
        ValidationErrorKind::MaxItems { limit } => format!("a list of at most {limit}"),
        ValidationErrorKind::AdditionalItems { limit } => format!("a list of at most {limit}"),
        ValidationErrorKind::UniqueItems => "a list without repetitions".to_owned(),
        ValidationErrorKind::MinProperties { limit } => {
            format!("an object of at least {limit} members")
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("an object of at most {limit} members")
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => "one alternative, not several".to_owned(),
        ValidationErrorKind::FalseSchema => "absent".to_owned(),
        _ => return None,
    })
}

fn types(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(name) => vec![name.to_string()],
        TypeKind::Multiple(names) => names.iter().map(|name| name.to_string()).collect(),
    };
    names.join(" or ")
}

fn one_of(options: &Value) -> String {
    const SHOWN: usize = 8;
    let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut words: Vec<String> = all.iter().take(SHOWN).map(found).collect();
    if all.len() > SHOWN {
        words.push("…".to_owned());
    }
    format!("one of {}", words.join(", "))
}

/// `string or null` where the alternatives differ in nothing else.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut words: Vec<String> = Vec::new();
    for errors in context {
        match errors.as_slice() {
            [one] => match one.kind() {
                ValidationErrorKind::Type { kind } => words.push(types(kind)),
                ValidationErrorKind::Enum { options } => words.push(one_of(options)),
                _ => return format!("one of {} alternatives", context.len()),
            },
            _ => return format!("one of {} alternatives", context.len()),
        }
    }
    words.dedup();
    words.join(" or ")
}

/// A value, shortened.
fn found(value: &Value) -> String {
    let (open, count) = match value {
        Value::Array(items) => ("a list of", items.len()),
        Value::Object(members) => ("an object of", members.len()),
        Value::String(text) => {
            let mut short: String = text.chars().take(FOUND).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            return shown(&format!("{short:?}"));
        }
        other => return other.to_string(),
    };
    format!("{open} {count}")
}

/// `labels[2].name`
pub(crate) fn place(path: &Location) -> String {
    let mut place = String::new();
    for segment in path.segments() {
        match segment {
            LocationSegment::Property(name) => push_name(&mut place, &name),
            LocationSegment::Index(index) => place.extend(["[", &index.to_string(), "]"]),
        }
    }
    place
}

fn push_name(place: &mut String, name: &str) {
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(&shown(name));
}
