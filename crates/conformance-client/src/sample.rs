//! Arguments that a schema accepts, for tools that nobody told us how to call.

use plenipo_wire::{Fragment, RawValue, object};

/// An object with every required property.
pub(crate) fn arguments(schema: &RawValue) -> Fragment {
    let required = object::member(schema, "required").and_then(object::items).unwrap_or_default();
    let properties = object::member(schema, "properties");
    Fragment::object(|arguments| {
        for (position, name) in required.into_iter().filter_map(object::text).enumerate() {
            let property = properties.and_then(|properties| object::member(properties, &name));
            arguments.fragment(&name, &value(property, position));
        }
    })
}

/// The required fields of an elicitation's form.
pub(crate) fn form(params: &Fragment) -> Fragment {
    let schema = object::member(params.as_raw(), "requestedSchema");
    schema.map_or_else(Fragment::object_empty, arguments)
}

/// A value of the property's type, other ones at other positions.
fn value(property: Option<&RawValue>, position: usize) -> Fragment {
    let member = |name| property.and_then(|property| object::member(property, name));
    if let Some(given) = member("default").or_else(|| member("const")) {
        return Fragment::from_raw(given);
    }
    if let Some(first) = member("enum").and_then(object::items).and_then(|all| all.first().copied())
    {
        return Fragment::from_raw(first);
    }
    let kind = member("type").and_then(object::text);
    let text = match kind.as_deref() {
        Some("integer" | "number") => format!("{}", position.saturating_add(2)),
        Some("boolean") => "true".to_owned(),
        Some("object") => "{}".to_owned(),
        Some("array") => "[]".to_owned(),
        Some("null") => "null".to_owned(),
        _ => "\"sample\"".to_owned(),
    };
    Fragment::parse(&text).unwrap_or_else(|_| Fragment::object_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_every_required_property_in_its_type() {
        let schema = Fragment::parse(
            r#"{"properties":{"a":{"type":"number"},"b":{"type":"integer"},"c":{"enum":["x","y"]},
            "d":{"default":[7]},"e":{"type":"boolean"},"f":{"type":"string"}},
            "required":["a","b","c","d","f","g"]}"#,
        )
        .unwrap();
        assert_eq!(
            arguments(schema.as_raw()).as_str(),
            r#"{"a":2,"b":3,"c":"x","d":[7],"f":"sample","g":"sample"}"#
        );
        assert_eq!(arguments(Fragment::object_empty().as_raw()).as_str(), "{}");
    }
}
