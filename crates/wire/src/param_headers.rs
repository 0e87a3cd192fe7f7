//! Tool parameters that are repeated as HTTP headers: `x-mcp-header` in a tool's input schema
//! (revision 2026-07-28, "Streamable HTTP", custom headers from tool parameters).
//!
//! An annotation counts where it is reached from the schema's root through `properties` alone, on a
//! parameter of type `string`, `integer` or `boolean`. Anything else makes the whole tool invalid:
//! server and client could otherwise disagree about which headers a call has.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::object;

/// The keyword in a schema.
pub const ANNOTATION: &str = "x-mcp-header";
/// What a header's name begins with.
pub const PREFIX: &str = "Mcp-Param-";

/// Beyond it, a receiver whose numbers are floats no longer sees the integer that was sent.
const LARGEST: u64 = (1 << 53) - 1;

/// Which parameters of one tool become headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// One parameter and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// Property names from the root.
    path: Vec<String>,
    /// With the prefix, as annotated.
    name: String,
}

/// Why an annotation makes a tool unusable. Reads after "its parameter headers are bad: ".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnnotationFault {
    /// The schema has the keyword somewhere and cannot be read.
    #[error("its input schema cannot be read")]
    Unreadable,
    /// The keyword's value is no string.
    #[error("`x-mcp-header` of `{property}` is not a string")]
    NotText {
        /// Property names, joined by dots.
        property: String,
    },
    /// The name is empty or has characters that no header's name may have (RFC 9110 §5.6.2).
    #[error("`x-mcp-header` of `{property}` is not a header's name")]
    NotToken {
        /// Property names, joined by dots.
        property: String,
    },
    /// Two parameters share a name; case makes no difference.
    #[error("`x-mcp-header` of `{property}` is taken by another parameter")]
    Duplicate {
        /// Property names, joined by dots.
        property: String,
    },
    /// The parameter is of another type.
    #[error(
        "`x-mcp-header` of `{property}` is on a parameter that is no string, integer or boolean"
    )]
    Type {
        /// Property names, joined by dots.
        property: String,
    },
    /// The keyword is below something else than `properties`.
    #[error("`x-mcp-header` is where no parameter is: only `properties` lead to one")]
    Unreachable,
}

/// An argument that no header can carry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the integer at `{property}` is beyond 2^53 - 1 and goes into the header `{header}`")]
#[non_exhaustive]
pub struct ValueFault {
    /// Property names, joined by dots.
    pub property: String,
    /// The header's name.
    pub header: String,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema.
    ///
    /// # Errors
    /// [`AnnotationFault`]: the tool is not to be used over HTTP.
    pub fn of_schema(schema: &RawValue) -> Result<Self, AnnotationFault> {
        if !may_be_annotated(schema.get()) {
            return Ok(Self::default());
        }
        let schema: Value =
            serde_json::from_str(schema.get()).map_err(|_| AnnotationFault::Unreadable)?;
        let Value::Object(schema) = &schema else { return Ok(Self::default()) };
        if schema.contains_key(ANNOTATION) || is_stray(schema, true) {
            return Err(AnnotationFault::Unreachable);
        }
        let mut found = Collector::default();
        found.properties(schema)?;
        Ok(Self(found.headers))
    }

    /// No parameter becomes a header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values for a call, values not yet encoded for a header. A parameter that is absent or
    /// `null` has none; neither has an object or array, which the annotation does not allow.
    ///
    /// # Errors
    /// [`ValueFault`] for an integer outside of ±(2^53 − 1).
    pub fn values(&self, arguments: Option<&RawValue>) -> Result<Vec<(&str, String)>, ValueFault> {
        let Some(arguments) = arguments else { return Ok(Vec::new()) };
        let mut values = Vec::with_capacity(self.0.len());
        for ParamHeader { path, name } in &self.0 {
            let found = path.iter().try_fold(arguments, |value, step| object::member(value, step));
            let Some(found) = found else { continue };
            match spelled(found) {
                Ok(Some(value)) => values.push((name.as_str(), value.into_owned())),
                Ok(None) => {}
                Err(TooLarge) => {
                    let (property, header) = (path.join("."), name.clone());
                    return Err(ValueFault { property, header });
                }
            }
        }
        Ok(values)
    }
}

/// Without the keyword's letters, and without escapes that could spell them, there is none.
fn may_be_annotated(schema: &str) -> bool {
    let find = |what: &str| memchr::memmem::find(schema.as_bytes(), what.as_bytes()).is_some();
    find(ANNOTATION) || find("\\u")
}

#[derive(Default)]
struct Collector {
    path: Vec<String>,
    seen: HashSet<String>,
    headers: Vec<ParamHeader>,
}

impl Collector {
    fn properties(&mut self, schema: &Map<String, Value>) -> Result<(), AnnotationFault> {
        let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
        for (name, property) in properties {
            let Value::Object(property) = property else { continue };
            self.path.push(name.clone());
            if let Some(annotation) = property.get(ANNOTATION) {
                self.annotated(annotation, property.get("type"))?;
            }
            self.properties(property)?;
            self.path.pop();
        }
        Ok(())
    }

    fn annotated(
        &mut self,
        annotation: &Value,
        kind: Option<&Value>,
    ) -> Result<(), AnnotationFault> {
        let property = self.path.join(".");
        let Value::String(name) = annotation else {
            return Err(AnnotationFault::NotText { property });
        };
        if !is_token(name) {
            return Err(AnnotationFault::NotToken { property });
        }
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(AnnotationFault::Type { property });
        }
        if !self.seen.insert(name.to_ascii_lowercase()) {
            return Err(AnnotationFault::Duplicate { property });
        }
        self.headers.push(ParamHeader { path: self.path.clone(), name: format!("{PREFIX}{name}") });
        Ok(())
    }
}

/// Whether the keyword occurs where `properties` alone do not lead. `reached` says whether they lead
/// to `schema`.
fn is_stray(schema: &Map<String, Value>, reached: bool) -> bool {
    schema.iter().any(|(keyword, value)| match keyword.as_str() {
        ANNOTATION => !reached,
        "properties" => is_stray_in_map(value, reached),
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => {
            is_stray_in_map(value, false)
        }
        // What is here are values and names, not schemas.
        "default" | "const" | "enum" | "examples" | "example" | "dependentRequired"
        | "required" => false,
        _ => is_stray_in(value, false),
    })
}

/// For a map whose keys are names.
fn is_stray_in_map(map: &Value, reached: bool) -> bool {
    map.as_object().is_some_and(|map| map.values().any(|schema| is_stray_in(schema, reached)))
}

fn is_stray_in(value: &Value, reached: bool) -> bool {
    match value {
        Value::Object(schema) => is_stray(schema, reached),
        Value::Array(items) => items.iter().any(|item| is_stray_in(item, false)),
        _ => false,
    }
}

/// `1*tchar` (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

struct TooLarge;

/// A string as it is, an integer in decimal, `true` or `false`.
fn spelled(value: &RawValue) -> Result<Option<Cow<'_, str>>, TooLarge> {
    match value.get().as_bytes().first() {
        Some(b'"') => Ok(object::text(value)),
        Some(b't' | b'f') => Ok(Some(Cow::Borrowed(value.get()))),
        Some(b'-' | b'0'..=b'9') => match object::integer(value) {
            Some(number) if number.unsigned_abs() <= LARGEST => {
                Ok(Some(Cow::Owned(number.to_string())))
            }
            Some(_) => Err(TooLarge),
            None if is_fraction(value) => Ok(Some(Cow::Borrowed(value.get()))),
            None => Err(TooLarge),
        },
        _ => Ok(None),
    }
}

/// A number that is no integer, however large.
fn is_fraction(value: &RawValue) -> bool {
    object::number(value).is_some_and(|number| number.fract() != 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::Fragment;

    fn headers(schema: &str) -> Result<ParamHeaders, AnnotationFault> {
        ParamHeaders::of_schema(Fragment::parse(schema).unwrap().as_raw())
    }

    fn values(schema: &str, arguments: &str) -> Result<Vec<(String, String)>, ValueFault> {
        let headers = headers(schema).unwrap();
        let arguments = Fragment::parse(arguments).unwrap();
        let values = headers.values(Some(arguments.as_raw()))?;
        Ok(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    const TABLE: &str = r#"{"type":"object","properties":{
        "s":{"type":"string","x-mcp-header":"S"},
        "i":{"type":"integer","\u0078-mcp-header":"Int"},
        "b":{"type":"boolean","x-mcp-header":"B"},
        "plain":{"type":"string"},
        "x-mcp-header":{"type":"string"},
        "o":{"type":"object","default":{"x-mcp-header":"no"},
             "properties":{"deep.er":{"type":"string","x-mcp-header":"Deep"}}}}}"#;

    #[test]
    fn values_are_spelled_by_their_json_type() {
        let given = |arguments| {
            let values = values(TABLE, arguments).unwrap();
            let values = values.iter().map(|(name, value)| format!("{name}={value}"));
            values.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            given(r#"{"s":"\u00e9 x","i":42,"b":false,"plain":"p","o":{"deep.er":""}}"#),
            "Mcp-Param-B=false Mcp-Param-Int=42 Mcp-Param-Deep= Mcp-Param-S=\u{e9} x"
        );
        assert_eq!(given(r#"{"s":null,"o":null,"x-mcp-header":"v"}"#), "");
        assert_eq!(given(r#"{"i":1e2}"#), "Mcp-Param-Int=100");
        assert_eq!(given(r#"{"i":-0}"#), "Mcp-Param-Int=0");
        assert_eq!(given(r#"{"i":1.5,"s":{"a":1},"b":[true]}"#), "Mcp-Param-Int=1.5");
        assert_eq!(given(r#"{"i":9007199254740991}"#), "Mcp-Param-Int=9007199254740991");
        for integer in ["9007199254740992", "-9007199254740992", "1e300", "123456789012345678901"] {
            let fault = values(TABLE, &format!("{{\"i\":{integer}}}")).unwrap_err();
            assert_eq!(fault.property, "i", "{integer}");
        }
        assert!(headers(TABLE).unwrap().values(None).unwrap().is_empty());
    }

    #[test]
    fn a_bad_annotation_is_named() {
        let at = |property: &str| format!("{{\"properties\":{{\"p\":{property}}}}}");
        let one = |annotation: &str, kind: &str| {
            at(&format!("{{\"type\":{kind},\"x-mcp-header\":{annotation}}}"))
        };
        type Reason = fn(String) -> AnnotationFault;
        let token: Reason = |property| AnnotationFault::NotToken { property };
        let kind: Reason = |property| AnnotationFault::Type { property };
        let text: Reason = |property| AnnotationFault::NotText { property };
        let unreachable: Reason = |_| AnnotationFault::Unreachable;
        let duplicate: Reason = |_| AnnotationFault::Duplicate { property: "q".to_owned() };
        let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
        for (schema, reason) in [
            (one(r#""""#, r#""string""#), token),
            (one(r#""a b""#, r#""string""#), token),
            (one(r#""R:P""#, r#""string""#), token),
            (one("\"R\u{e9}\"", r#""string""#), token),
            (one(r#""R\t1""#, r#""string""#), token),
            (one("7", r#""string""#), text),
            (one(r#""A""#, r#""number""#), kind),
            (one(r#""A""#, r#""object""#), kind),
            (one(r#""A""#, r#""array""#), kind),
            (one(r#""A""#, r#""null""#), kind),
            (one(r#""A""#, r#"["string","null"]"#), kind),
            (at(r#"{"x-mcp-header":"A"}"#), kind),
            (r#"{"x-mcp-header":"A"}"#.to_owned(), unreachable),
            (at(&format!("{{\"items\":{inner}}}")), unreachable),
            (at(&format!("{{\"anyOf\":[{inner}]}}")), unreachable),
            (format!("{{\"$defs\":{{\"d\":{inner}}}}}"), unreachable),
            (format!("{{\"allOf\":[{{\"properties\":{{\"p\":{inner}}}}}]}}"), unreachable),
            (format!("{{\"patternProperties\":{{\"p\":{inner}}}}}"), unreachable),
            (format!("{{\"additionalProperties\":{inner}}}"), unreachable),
            (
                r#"{"properties":{"p":{"type":"string","x-mcp-header":"Aa"},"q":{"type":"string","x-mcp-header":"aA"}}}"#
                    .to_owned(),
                duplicate,
            ),
        ] {
            assert_eq!(headers(&schema), Err(reason("p".to_owned())), "{schema}");
        }
        for fine in [r#"{"default":{"x-mcp-header":1}}"#, "true", r#"{"title":"x-mcp-header"}"#] {
            assert_eq!(headers(fine), Ok(ParamHeaders::default()), "{fine}");
        }
    }
}
