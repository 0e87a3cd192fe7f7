//! Telling from its text that an object matches, for the schemas that most tools have: named members of one type each.
//! The schema is looked at once; nothing is built for a value, which makes the check of a usual call cheap.
//!
//! "Yes" is certain, "no" means that somebody else has to look.

use plenipo_wire::object;
use serde_json::{Map, Value};

use crate::plain::is_annotation;

/// Names that have to be there; more are looked at elsewhere.
const MOST_REQUIRED: usize = 64;

/// What such a schema says.
#[derive(Debug)]
pub(crate) struct Flat {
    /// By name.
    members: Vec<Member>,
    /// A bit for each name that has to be there.
    required: u64,
    /// Whether other members may be there.
    others: bool,
}

#[derive(Debug)]
struct Member {
    name: Box<str>,
    takes: Takes,
    /// Its bit, when it has to be there.
    required: u64,
}

#[derive(Debug, Clone, Copy)]
enum Takes {
    All,
    Nothing,
    Object,
    Array,
    String,
    Boolean,
    Null,
    Number,
    Integer,
}

impl Flat {
    /// `None` when the schema says more.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let (mut properties, mut required, mut others) = (None, [].as_slice(), true);
        for (keyword, word) in schema.as_object()? {
            match (keyword.as_str(), word) {
                ("type", Value::String(name)) if name == "object" => {}
                ("properties", Value::Object(members)) => properties = Some(members),
                ("required", Value::Array(names)) if names.len() <= MOST_REQUIRED => {
                    required = names.as_slice();
                }
                ("additionalProperties", Value::Bool(all)) => others = *all,
                (other, _) if is_annotation(other) => {}
                _ => return None,
            }
        }
        let flat = Self { members: members(properties)?, required: 0, others };
        flat.requiring(required)
    }

    fn requiring(mut self, names: &[Value]) -> Option<Self> {
        for (place, name) in names.iter().enumerate() {
            let (name, bit) = (name.as_str()?, 1 << place);
            match self.members.binary_search_by(|member| (*member.name).cmp(name)) {
                Ok(found) => {
                    let member = self.members.get_mut(found)?;
                    // Not to be written twice.
                    if member.required != 0 {
                        return None;
                    }
                    member.required = bit;
                }
                Err(place) => {
                    let takes = if self.others { Takes::All } else { Takes::Nothing };
                    let member = Member { name: name.into(), takes, required: bit };
                    self.members.insert(place, member);
                }
            }
            self.required |= bit;
        }
        Some(self)
    }

    /// Whether `value`, which is JSON, matches for sure.
    pub(crate) fn matches(&self, value: &str) -> bool {
        let (mut present, mut fits) = (0_u64, true);
        let walked = object::members(value, |name, text| {
            // Of a member that is written twice the last one counts, and this one may not be it.
            match self.members.binary_search_by(|member| (*member.name).cmp(name)) {
                Ok(found) => {
                    let Some(member) = self.members.get(found) else { return fits = false };
                    present |= member.required;
                    fits &= member.takes.takes(text);
                }
                Err(_) => fits &= self.others,
            }
        });
        walked.is_some() && fits && present == self.required
    }
}

fn members(properties: Option<&Map<String, Value>>) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let takes = Takes::of(schema)?;
        members.push(Member { name: name.as_str().into(), takes, required: 0 });
    }
    members.sort_by(|one, other| one.name.cmp(&other.name));
    Some(members)
}

impl Takes {
    fn of(schema: &Value) -> Option<Self> {
        let words = match schema {
            Value::Bool(true) => return Some(Self::All),
            Value::Bool(false) => return Some(Self::Nothing),
            Value::Object(words) => words,
            _ => return None,
        };
        let mut takes = Self::All;
        for (keyword, word) in words {
            match word {
                Value::String(name) if keyword == "type" => takes = Self::named(name)?,
                _ if is_annotation(keyword) => {}
                // Others have to look at each value of it.
                _ => return Some(Self::Nothing),
            }
        }
        Some(takes)
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "number" => Self::Number,
            "integer" => Self::Integer,
            _ => return None,
        })
    }

    /// By its first character, which JSON tells types apart by.
    fn takes(self, text: &str) -> bool {
        let text = text.as_bytes();
        let first = text.first();
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Object => first == Some(&b'{'),
            Self::Array => first == Some(&b'['),
            Self::String => first == Some(&b'"'),
            Self::Boolean => matches!(first, Some(b't' | b'f')),
            Self::Null => first == Some(&b'n'),
            Self::Number => matches!(first, Some(b'-' | b'0'..=b'9')),
            // Other spellings are looked at elsewhere.
            Self::Integer => {
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                digits.first().is_some_and(u8::is_ascii_digit)
                    && digits.iter().all(u8::is_ascii_digit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plenipo_wire::Fragment;
    use serde_json::json;

    use super::*;

    fn is_sure(schema: &Value, value: &str) -> bool {
        let value = Fragment::parse(value).unwrap();
        Flat::of(schema).is_some_and(|flat| flat.matches(value.as_str()))
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
