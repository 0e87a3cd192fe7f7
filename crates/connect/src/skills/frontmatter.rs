//! The YAML at the head of a `SKILL.md`, against the JSON of its entry.
//!
//! Bounds: 64 KiB, 32 levels. Anchors, aliases and tags are refused: no frontmatter needs them, and
//! a few bytes of aliases stand for any amount of memory.

use plenipo_wire::Fragment;
use saphyr_parser::{Event, Parser, ScalarStyle};
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
    let mut tree = Tree::default();
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|_| "it is not YAML")?;
        tree.take(&event)?;
    }
    tree.root.ok_or("there is nothing in it")
}

/// Values built from events, without recursion.
#[derive(Debug, Default)]
struct Tree {
    open: Vec<Open>,
    root: Option<Value>,
}

#[derive(Debug)]
enum Open {
    Sequence(Vec<Value>),
    Mapping { members: Map<String, Value>, key: Option<String> },
}

impl Tree {
    fn take(&mut self, event: &Event<'_>) -> Result<(), &'static str> {
        let marked = match event {
            Event::Alias(_) => true,
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => *anchor > 0 || tag.is_some(),
            _ => false,
        };
        if marked {
            return Err("it has anchors, aliases or tags");
        }
        match event {
            Event::Scalar(text, style, ..) => self.add(scalar(text, *style)?),
            Event::SequenceStart(..) => self.enter(Open::Sequence(Vec::new())),
            Event::MappingStart(..) => self.enter(Open::Mapping { members: Map::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::Sequence(items)) => self.add(Value::Array(items)),
                Some(Open::Mapping { members, .. }) => self.add(Value::Object(members)),
                None => Err("it is not YAML"),
            },
            _ => Ok(()),
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), &'static str> {
        self.open.push(open);
        match self.open.len() > DEPTH {
            true => Err("it is nested deeper than 32 levels"),
            false => Ok(()),
        }
    }

    fn add(&mut self, value: Value) -> Result<(), &'static str> {
        match self.open.last_mut() {
            None if self.root.is_some() => return Err("it is not one document"),
            None => self.root = Some(value),
            Some(Open::Sequence(items)) => items.push(value),
            Some(Open::Mapping { members, key }) => match (key.take(), value) {
                (Some(key), value) => {
                    if members.insert(key, value).is_some() {
                        return Err("a key is there twice");
                    }
                }
                (None, Value::String(name)) => *key = Some(name),
                (None, _) => return Err("a key is no string"),
            },
        }
        Ok(())
    }
}

/// By the core schema (YAML 1.2.2 §10.3.2).
fn scalar(text: &str, style: ScalarStyle) -> Result<Value, &'static str> {
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.to_owned()));
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text)? {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
    })
}

fn number(text: &str) -> Result<Option<Number>, &'static str> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err("it has a number that JSON does not");
    }
    for (mark, radix) in [("0o", 8), ("0x", 16)] {
        let digits = text.strip_prefix(mark).filter(|rest| !rest.starts_with(['+', '-']));
        if let Some(number) = digits.and_then(|digits| i64::from_str_radix(digits, radix).ok()) {
            return Ok(Some(Number::from(number)));
        }
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_number = digits(whole)
        && digits(fraction)
        && (!whole.is_empty() || !fraction.is_empty())
        && digits(power)
        && !power.is_empty();
    if !is_number {
        return Ok(None);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Some(Number::from(integer)));
    }
    let float = text.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Some).ok_or("it has a number that JSON does not")
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
    fn plain_scalars_have_the_types_of_the_core_schema() {
        let yaml = "[~, null, True, 'true', \"1\", 1, -2, 0o17, 0xff, 1.5, .5, 1e3, 1., 0b1, +1, 1_000, yes, no, 1:30, .e]";
        let json = r#"[null,null,true,"true","1",1,-2,15,255,1.5,0.5,1000,1,"0b1",1,"1_000","yes","no","1:30",".e"]"#;
        assert_eq!(compared(yaml, json), Ok(None));
        assert_eq!(parse("a: .inf"), Err("it has a number that JSON does not"));
        assert_eq!(parse("{a: 1, a: 2}"), Err("a key is there twice"));
        assert_eq!(parse("{1: 1}"), Err("a key is no string"));
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
