//! Telling from its text that an object matches, for the schemas that most tools have: named members of one type each.
//! Nothing is built, which makes the check of a usual call cheap.
//!
//! "Yes" is certain, "no" means that somebody else has to look.

use plenipo_wire::{RawValue, object};
use serde_json::{Map, Value};

use crate::plain::is_annotation;

/// Names that have to be there; more are looked at elsewhere.
const MOST_REQUIRED: usize = 64;

/// Whether `value` matches `schema` for sure.
pub(crate) fn matches(schema: &Value, value: &RawValue) -> bool {
    let Some(flat) = Flat::of(schema) else { return false };
    let (mut present, mut fits) = (0_u64, true);
    let walked = object::members(value, |name, text| {
        // Of a member that is written twice the last one counts, and this one may not be it.
        present |= flat.place_of(name);
        fits &= flat.takes(name, text);
    });
    let is_all = present.count_ones() as usize == flat.required.len();
    walked.is_some() && fits && is_all
}

/// What such a schema says.
struct Flat<'s> {
    properties: Option<&'s Map<String, Value>>,
    required: &'s [Value],
    others: bool,
}

impl<'s> Flat<'s> {
    fn of(schema: &'s Value) -> Option<Self> {
        let mut flat = Self { properties: None, required: &[], others: true };
        for (keyword, word) in schema.as_object()? {
            match (keyword.as_str(), word) {
                ("type", Value::String(name)) if name == "object" => {}
                ("properties", Value::Object(properties)) => flat.properties = Some(properties),
                ("required", Value::Array(names)) if names.len() <= MOST_REQUIRED => {
                    flat.required = names;
                }
                ("additionalProperties", Value::Bool(others)) => flat.others = *others,
                (other, _) if is_annotation(other) => {}
                _ => return None,
            }
        }
        Some(flat)
    }

    fn takes(&self, name: &str, value: &str) -> bool {
        match self.properties.and_then(|properties| properties.get(name)) {
            None => self.others,
            Some(Value::Bool(all)) => *all,
            Some(Value::Object(words)) => words.iter().all(|(keyword, word)| match word {
                Value::String(name) if keyword == "type" => is_a(name, value),
                _ => is_annotation(keyword),
            }),
            Some(_) => false,
        }
    }

    fn place_of(&self, name: &str) -> u64 {
        let place = self.required.iter().position(|required| required.as_str() == Some(name));
        place.map_or(0, |place| 1 << place)
    }
}

/// By its first character, which JSON tells types apart by.
fn is_a(name: &str, text: &str) -> bool {
    let text = text.as_bytes();
    match name {
        "object" => text.first() == Some(&b'{'),
        "array" => text.first() == Some(&b'['),
        "string" => text.first() == Some(&b'"'),
        "boolean" => matches!(text.first(), Some(b't' | b'f')),
        "null" => text.first() == Some(&b'n'),
        "number" => matches!(text.first(), Some(b'-' | b'0'..=b'9')),
        // Other spellings are looked at elsewhere.
        "integer" => {
            let digits = text.strip_prefix(b"-").unwrap_or(text);
            digits.first().is_some_and(u8::is_ascii_digit) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use plenipo_wire::Fragment;
    use serde_json::json;

    use super::*;

    fn is_sure(schema: &Value, value: &str) -> bool {
        matches(schema, Fragment::parse(value).unwrap().as_raw())
    }

    #[test]
    fn it_is_sure_of_named_members_of_one_type() {
        let schema = json!({
            "type": "object", "title": "t", "required": ["a", "b"],
            "properties": {
                "a": {"type": "string", "description": "d"}, "b": {"type": "integer"}, "c": true,
                "d": {"type": "array"}, "e": {"type": "boolean"}, "f": {"type": "number"}, "g": false,
            },
        });
        for (value, sure) in [
            (r#"{"a":"x","b":-12}"#, true),
            (r#"{"a":"x","b":1,"c":null,"d":[],"e":true,"f":1e3,"z":{}}"#, true),
            (r#"{"\u0061":"x","b":1}"#, false),
            (r#"{"a":"x"}"#, false),
            (r#"{"a":1,"b":1}"#, false),
            (r#"{"a":1,"a":"x","b":1}"#, false),
            (r#"{"a":"x","b":1.0}"#, false),
            (r#"{"a":"x","b":1,"g":1}"#, false),
            ("[]", false),
            ("{}", false),
        ] {
            assert_eq!(is_sure(&schema, value), sure, "{value}");
        }
    }

    #[test]
    fn what_says_more_is_left_to_others() {
        let closed =
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false});
        assert!(is_sure(&closed, r#"{"a":"x"}"#));
        assert!(!is_sure(&closed, r#"{"b":"x"}"#));
        for schema in [
            json!({"properties": {"a": {"type": "string", "minLength": 1}}}),
            json!({"properties": {"a": {"type": ["string", "null"]}}}),
            json!({"properties": {"a": {"enum": ["x"]}}}),
            json!({"anyOf": [{}]}),
            json!({"required": ["a", "a"]}),
            json!(true),
        ] {
            assert!(!is_sure(&schema, r#"{"a":"x"}"#), "{schema}");
        }
    }
}
