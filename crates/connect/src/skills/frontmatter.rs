//! The YAML at the head of a `SKILL.md`, against the JSON of its entry.
//!
//! Bounds: 64 KiB, 32 levels. Anchors, aliases and tags are refused: no frontmatter needs them, and
//! a few bytes of aliases stand for any amount of memory.

use plenipo_wire::Fragment;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use saphyr_parser::{Event, Parser};
use serde_json::{Map, Number, Value};

use super::Skill;
use crate::error::SkillFault;
use crate::text::shown;

const BYTES: usize = 64 * 1024;
const DEPTH: usize = 32;

/// Fails unless both say the same, field by field.
pub(super) fn check(skill: &Skill, text: &str) -> Result<(), SkillFault> {
    let fault = |reason: &str| SkillFault::Frontmatter { reason: shown(reason) };
    let view = skill.view().map_err(|_| fault("the entry cannot be read"))?;
    let entry = Fragment::from_raw(view.frontmatter);
    let entry: Value =
        serde_json::from_str(entry.as_str()).map_err(|_| fault("the entry's cannot be read"))?;
    let yaml = head(text).ok_or_else(|| fault("there is none"))?;
    let own = parse(yaml).map_err(fault)?;
    match difference(&own, &entry) {
        None => Ok(()),
        Some(field) => Err(fault(&format!("`{field}` differs"))),
    }
}

/// What is between the first two `---` lines.
fn head(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return rest.get(..end);
        }
        end += line.len();
    }
    None
}

fn parse(yaml: &str) -> Result<Value, &'static str> {
    if yaml.len() > BYTES {
        return Err("it is over 64 KiB");
    }
    harmless(yaml)?;
    let documents = Yaml::load_from_str(yaml).map_err(|_| "it is not YAML")?;
    match documents.as_slice() {
        [document] => value(document),
        _ => Err("it is not one document"),
    }
}

/// Looks at the events before anything is built of them.
fn harmless(yaml: &str) -> Result<(), &'static str> {
    let mut depth = 0_usize;
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|_| "it is not YAML")?;
        let marked = match event {
            Event::Alias(_) => true,
            Event::Scalar(_, _, anchor, tag) => anchor > 0 || tag.is_some(),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                depth += 1;
                anchor > 0 || tag.is_some()
            }
            Event::SequenceEnd | Event::MappingEnd => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => false,
        };
        if marked {
            return Err("it has anchors, aliases or tags");
        }
        if depth > DEPTH {
            return Err("it is nested deeper than 32 levels");
        }
    }
    Ok(())
}

fn value(yaml: &Yaml<'_>) -> Result<Value, &'static str> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        Yaml::Value(Scalar::Integer(number)) => Value::Number(Number::from(*number)),
        Yaml::Value(Scalar::FloatingPoint(number)) => {
            Number::from_f64(number.into_inner()).map(Value::Number).ok_or("it has no JSON form")?
        }
        Yaml::Value(Scalar::String(text)) => Value::String(text.clone().into_owned()),
        Yaml::Sequence(items) => Value::Array(items.iter().map(value).collect::<Result<_, _>>()?),
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (key, member) in members {
                let key = key.as_str().ok_or("a key is no string")?;
                object.insert(key.to_owned(), value(member)?);
            }
            Value::Object(object)
        }
        _ => return Err("it has no JSON form"),
    })
}

/// The path of the first difference.
fn difference(own: &Value, entry: &Value) -> Option<String> {
    let below = |name: &str, inner: String| match inner.is_empty() {
        true => name.to_owned(),
        false => format!("{name}.{inner}"),
    };
    match (own, entry) {
        (Value::Object(own), Value::Object(entry)) => {
            let missing = entry.keys().find(|name| !own.contains_key(*name)).cloned();
            missing.or_else(|| {
                own.iter().find_map(|(name, value)| match entry.get(name) {
                    None => Some(name.clone()),
                    Some(other) => difference(value, other).map(|inner| below(name, inner)),
                })
            })
        }
        (Value::Array(own), Value::Array(entry)) if own.len() == entry.len() => {
            let pairs = own.iter().zip(entry).enumerate();
            pairs
                .filter_map(|(index, (own, entry))| {
                    difference(own, entry).map(|inner| below(&index.to_string(), inner))
                })
                .next()
        }
        // JSON has one kind of number.
        (Value::Number(own), Value::Number(entry)) if own.as_f64() == entry.as_f64() => None,
        (own, entry) if own == entry => None,
        _ => Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(yaml: &str, json: &str) -> Result<Option<String>, &'static str> {
        let entry = serde_json::from_str(json).unwrap();
        parse(yaml).map(|own| difference(&own, &entry))
    }

    #[test]
    fn the_head_is_between_the_first_two_lines_of_dashes() {
        assert_eq!(head("---\na: 1\n---\n# b\n---\n"), Some("a: 1\n"));
        assert_eq!(head("\u{feff}---\r\na: 1\r\n---"), Some("a: 1\r\n"));
        for text in ["", "a: 1", "--- a\n---\n", "---\na: 1\n", " ---\n---\n"] {
            assert_eq!(head(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_field_has_to_be_the_same() {
        let yaml = "name: a\nn: 1.0\nlist: [x, {y: ~}]\nwhen: 2026-01-02\nlong: >-\n  one\n  two\n";
        let json =
            r#"{"name":"a","n":1,"list":["x",{"y":null}],"when":"2026-01-02","long":"one two"}"#;
        assert_eq!(compared(yaml, json), Ok(None));
        let differs = |json: &str| compared(yaml, json).unwrap().unwrap();
        assert_eq!(differs(r#"{"name":"a"}"#), "list");
        assert_eq!(differs(&json.replace("null", "0")), "list.1.y");
        assert_eq!(differs(&json.replace("two\"", "two\",\"more\":1")), "more");
        assert_eq!(compared("a", r#"{"a":1}"#), Ok(Some(String::new())));
    }

    #[test]
    fn what_may_grow_is_refused_before_it_does() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
        assert_eq!(parse(bomb), Err("it has anchors, aliases or tags"));
        assert_eq!(parse("a: !!python/object x"), Err("it has anchors, aliases or tags"));
        let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
        assert_eq!(parse(&deep), Err("it is nested deeper than 32 levels"));
        assert_eq!(parse(&"a".repeat(BYTES + 1)), Err("it is over 64 KiB"));
        assert_eq!(parse("a: ["), Err("it is not YAML"));
        assert_eq!(parse("a: 1\n---\nb: 1\n"), Err("it is not one document"));
    }
}
