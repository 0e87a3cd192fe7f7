//! What a tool's input schema says about its top-level arguments: enough to type words and to catch what is missing.
//! It is no validator; the server has the last word.

use plenipo_wire::RawValue;
use serde_json::Value;

/// The arguments that a tool takes.
#[derive(Debug, Default)]
pub(crate) struct InputSchema {
    properties: Vec<Property>,
    /// `additionalProperties: false`.
    closed: bool,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) types: Types,
    /// Types of a list's items.
    pub(super) items: Types,
    pub(super) required: bool,
}

/// JSON types that a value may have; none known means any.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Types(Vec<String>);

impl Types {
    pub(super) fn allows(&self, name: &str) -> bool {
        self.0.iter().any(|present| present == name)
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a list is the only thing that fits.
    pub(super) fn is_list(&self) -> bool {
        self.allows("array") && !self.allows("string")
    }

    /// For a sentence: `integer or null`.
    pub(super) fn words(&self) -> String {
        self.0.join(" or ")
    }

    fn of(schema: &Value) -> Self {
        let mut types = Self::default();
        types.collect(schema, 0);
        types
    }

    fn collect(&mut self, schema: &Value, depth: usize) {
        const DEPTH: usize = 4;
        match schema.get("type") {
            Some(Value::String(name)) => self.add(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|n| self.add(n))
            }
            _ => {}
        }
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        for value in values.chain(schema.get("const")) {
            if self.is_open() || depth > 0 {
                self.add(type_name(value));
            }
        }
        if depth < DEPTH {
            for word in ["anyOf", "oneOf"] {
                let options = schema.get(word).and_then(Value::as_array).into_iter().flatten();
                options.for_each(|option| self.collect(option, depth + 1));
            }
        }
    }

    fn add(&mut self, name: &str) {
        if !self.allows(name) {
            self.0.push(name.to_owned());
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl InputSchema {
    /// Reads a schema; what it does not understand leaves everything open.
    pub(crate) fn read(raw: &RawValue) -> Self {
        let schema: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut properties: Vec<Property> = properties
            .map(|(name, schema)| Property {
                name: name.clone(),
                types: Types::of(schema),
                items: schema.get("items").map(Types::of).unwrap_or_default(),
                required: required.contains(&name.as_str()),
            })
            .collect();
        for name in required {
            if !properties.iter().any(|property| property.name == name) {
                let (types, items) = (Types::default(), Types::default());
                properties.push(Property { name: name.to_owned(), types, items, required: true });
            }
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Self { properties, closed }
    }

    /// Types words all the same, but neither misses nor refuses an argument.
    pub(super) fn without_rules(mut self) -> Self {
        self.closed = false;
        self.properties.iter_mut().for_each(|property| property.required = false);
        self
    }

    pub(super) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Names that the schema says cannot be there.
    pub(super) fn refuses(&self, name: &str) -> bool {
        self.closed && self.property(name).is_none()
    }

    pub(super) fn missing(&self, given: &[String]) -> Vec<&str> {
        let required = self.properties.iter().filter(|property| property.required);
        required
            .map(|property| property.name.as_str())
            .filter(|name| !given.iter().any(|g| g == name))
            .collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|property| property.name.as_str())
    }

    /// `tool(path: string, head?: integer)`.
    pub(crate) fn signature(&self, tool: &str) -> String {
        let mut ordered: Vec<&Property> = self.properties.iter().collect();
        ordered.sort_by_key(|property| !property.required);
        let words: Vec<String> = ordered.into_iter().map(Property::signature).collect();
        format!("{tool}({})", words.join(", "))
    }
}

impl Property {
    fn signature(&self) -> String {
        let mark = if self.required { "" } else { "?" };
        let types = if self.types.is_open() { "any".to_owned() } else { self.types.0.join(" | ") };
        let items = &self.items.0;
        let types = if self.types.is_list() && items.len() == 1 {
            format!("{}[]", items.join(""))
        } else {
            types
        };
        format!("{}{mark}: {types}", self.name)
    }
}
