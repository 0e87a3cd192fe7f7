//! Telling at a glance that a value matches, for schemas of the simple kind that most tools have.
//!
//! "Yes" is certain, "no" means that somebody else has to look.

use serde_json::{Map, Value};

/// Steps after which it is no glance any more, and how deep it goes.
const FUEL: usize = 20_000;
const DEPTH: usize = 100;
/// Beyond it a float may stand for more than one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether any object matches, so that a value need not even be read.
pub(crate) fn takes_everything(schema: &Value) -> bool {
    match schema {
        Value::Bool(all) => *all,
        Value::Object(members) => members.iter().all(|(keyword, _)| is_annotation(keyword)),
        _ => false,
    }
}

/// Whether `value` matches `schema` for sure.
pub(crate) fn matches(schema: &Value, value: &Value) -> bool {
    Glance { root: schema, fuel: FUEL, depth: DEPTH }.matches(schema, value)
}

struct Glance<'s> {
    root: &'s Value,
    fuel: usize,
    depth: usize,
}

impl<'s> Glance<'s> {
    fn matches(&mut self, schema: &'s Value, value: &Value) -> bool {
        let (Some(fuel), Some(depth)) = (self.fuel.checked_sub(1), self.depth.checked_sub(1))
        else {
            return false;
        };
        (self.fuel, self.depth) = (fuel, depth);
        let matches = match schema {
            Value::Bool(all) => *all,
            Value::Object(members) => {
                members.iter().all(|(keyword, word)| self.keyword(members, (keyword, word), value))
            }
            _ => false,
        };
        self.depth = self.depth.saturating_add(1);
        matches
    }

    fn keyword(
        &mut self,
        schema: &'s Map<String, Value>,
        (keyword, word): (&str, &'s Value),
        value: &Value,
    ) -> bool {
        match keyword {
            "type" => is_of_type(word, value),
            "enum" => word.as_array().is_some_and(|values| values.contains(value)),
            "const" => word == value,
            "properties" => self.properties(word, value),
            "required" => has_all(word, value),
            "additionalProperties" => self.others(schema, word, value),
            "items" => self.items(word, value),
            "anyOf" => self.any(word, value),
            "allOf" => self.all(word, value),
            "$ref" => {
                let target = word.as_str().and_then(|text| text.strip_prefix('#'));
                let target = target.filter(|text| text.starts_with('/'));
                target
                    .and_then(|pointer| self.root.pointer(pointer))
                    .is_some_and(|target| self.matches(target, value))
            }
            "minimum" => bounded(word, value, |least, number| number >= least),
            "maximum" => bounded(word, value, |most, number| number <= most),
            "minLength" => counted(word, value.as_str().map(|text| text.chars().count()), false),
            "maxLength" => counted(word, value.as_str().map(|text| text.chars().count()), true),
            "minItems" => counted(word, value.as_array().map(Vec::len), false),
            "maxItems" => counted(word, value.as_array().map(Vec::len), true),
            other => is_annotation(other),
        }
    }

    fn properties(&mut self, word: &'s Value, value: &Value) -> bool {
        let (Some(properties), Some(members)) = (word.as_object(), value.as_object()) else {
            return word.is_object();
        };
        members.iter().all(|(name, value)| match properties.get(name) {
            Some(schema) => self.matches(schema, value),
            None => true,
        })
    }

    fn others(&mut self, schema: &'s Map<String, Value>, word: &'s Value, value: &Value) -> bool {
        let Some(members) = value.as_object() else { return true };
        let known = schema.get("properties").and_then(Value::as_object);
        let mut others = members.iter().filter(|(name, _)| {
            known.is_none_or(|properties| !properties.contains_key(name.as_str()))
        });
        others.all(|(_, value)| self.matches(word, value))
    }

    fn items(&mut self, word: &'s Value, value: &Value) -> bool {
        let Some(items) = value.as_array() else { return !word.is_array() };
        items.iter().all(|item| self.matches(word, item))
    }

    fn any(&mut self, word: &'s Value, value: &Value) -> bool {
        word.as_array().into_iter().flatten().any(|schema| self.matches(schema, value))
    }

    fn all(&mut self, word: &'s Value, value: &Value) -> bool {
        word.as_array().is_some_and(|all| all.iter().all(|schema| self.matches(schema, value)))
    }
}

/// Keywords that no value can break.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    const WORDS: [&str; 12] = [
        "$schema",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
    ];
    WORDS.contains(&keyword) || keyword.starts_with("x-")
}

fn is_of_type(word: &Value, value: &Value) -> bool {
    match word {
        Value::String(name) => is_a(name, value),
        Value::Array(names) => {
            names.iter().any(|name| name.as_str().is_some_and(|n| is_a(n, value)))
        }
        _ => false,
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn has_all(word: &Value, value: &Value) -> bool {
    let Some(names) = word.as_array() else { return false };
    let Some(members) = value.as_object() else { return true };
    names.iter().all(|name| name.as_str().is_some_and(|name| members.contains_key(name)))
}

fn bounded(word: &Value, value: &Value, fits: impl Fn(f64, f64) -> bool) -> bool {
    let Some(number) = value.as_f64() else { return word.is_number() };
    let exact = |number: f64| number.abs() < EXACT;
    word.as_f64().is_some_and(|bound| exact(bound) && exact(number) && fits(bound, number))
}

/// `length`: `None` when the keyword says nothing about such a value.
fn counted(word: &Value, length: Option<usize>, most: bool) -> bool {
    let (Some(bound), Some(length)) = (word.as_u64(), length) else { return word.is_u64() };
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if most { length <= bound } else { length >= bound }
}
