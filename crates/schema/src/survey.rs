//! A look at a whole schema: how big it is, and where its references lead.

use serde_json::Value;

use crate::error::SchemaFault;

const SUBSCHEMAS: usize = 20_000;
const REFERENCES: usize = 4_000;
const PATTERNS: usize = 256;

/// What a schema is made of.
#[derive(Debug, Default)]
pub(crate) struct Survey<'s> {
    subschemas: usize,
    patterns: usize,
    references: Vec<&'s str>,
    /// `$id` of subschemas.
    pub(crate) ids: Vec<(&'s str, &'s Value)>,
    /// `$anchor` and `$dynamicAnchor`.
    pub(crate) anchors: Vec<(&'s str, &'s Value)>,
}

impl<'s> Survey<'s> {
    /// Walks through the schema.
    pub(crate) fn of(root: &'s Value) -> Result<Self, SchemaFault> {
        let mut survey = Self::default();
        let mut left = vec![root];
        while let Some(schema) = left.pop() {
            survey.note(schema, std::ptr::eq(schema, root))?;
            subschemas(schema, &mut |_, inner| left.push(inner));
        }
        survey.check_references(root)?;
        Ok(survey)
    }

    fn note(&mut self, schema: &'s Value, is_root: bool) -> Result<(), SchemaFault> {
        let Some(members) = schema.as_object() else { return Ok(()) };
        self.subschemas = self.subschemas.saturating_add(1);
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        self.references
            .extend(["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(text));
        self.anchors.extend(
            ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text).map(|a| (a, schema)),
        );
        if !is_root {
            self.ids.extend(["$id", "id"].into_iter().filter_map(text).map(|id| (id, schema)));
        }
        let by_name = members.get("patternProperties").and_then(Value::as_object);
        let patterns = by_name.map_or(0, |patterns| patterns.len());
        self.patterns = self
            .patterns
            .saturating_add(patterns)
            .saturating_add(usize::from(members.contains_key("pattern")));
        let bounds = [
            (self.subschemas, SUBSCHEMAS, "subschemas"),
            (self.references.len(), REFERENCES, "references"),
            (self.patterns, PATTERNS, "patterns"),
        ];
        match bounds.into_iter().find(|(count, limit, _)| count > limit) {
            Some((_, limit, what)) => Err(SchemaFault::TooBig { what, limit }),
            None => Ok(()),
        }
    }

    /// Inside of one document with one base this can be told at once; where subschemas have an `$id`
    /// of their own it shows when the schema is compiled.
    fn check_references(&self, root: &Value) -> Result<(), SchemaFault> {
        if !self.ids.is_empty() {
            return Ok(());
        }
        let own = root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
        for reference in &self.references {
            let local = own.and_then(|own| reference.strip_prefix(own)).unwrap_or(reference);
            let leads = match local.strip_prefix('#') {
                None => local.is_empty() && own.is_some(),
                Some("") => true,
                Some(pointer) if pointer.starts_with('/') => {
                    root.pointer(&decoded(pointer)).is_some()
                }
                Some(anchor) => self.anchors.iter().any(|(name, _)| *name == anchor),
            };
            let is_meta_schema = reference.contains("//json-schema.org/");
            if !leads && !is_meta_schema {
                return Err(SchemaFault::Reference { target: crate::error::shown(reference) });
            }
        }
        Ok(())
    }
}

/// How a subschema applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applies<'s> {
    /// To the same value.
    Here,
    /// To the same value, one of several.
    Alternative,
    /// To a member of that name.
    Member(&'s str),
    /// To an item at that place.
    Item(usize),
    /// To any member's value or any item.
    Inside,
    /// To members' names.
    Names,
    /// Where something refers to it.
    Elsewhere,
}

/// Gives the direct subschemas of a schema; what merely looks like one (`default`, `enum`) is not.
pub(crate) fn subschemas<'s>(schema: &'s Value, each: &mut dyn FnMut(Applies<'s>, &'s Value)) {
    for (keyword, word) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), word) {
            ("not" | "if" | "then" | "else", _) => each(Applies::Here, word),
            ("allOf", Value::Array(all)) => all.iter().for_each(|one| each(Applies::Here, one)),
            ("anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().for_each(|one| each(Applies::Alternative, one));
            }
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                all.values().for_each(|one| each(Applies::Here, one));
            }
            ("properties", Value::Object(all)) => {
                all.iter().for_each(|(name, one)| each(Applies::Member(name), one));
            }
            ("patternProperties", Value::Object(all)) => {
                all.values().for_each(|one| each(Applies::Inside, one));
            }
            ("prefixItems" | "items", Value::Array(all)) => {
                all.iter().enumerate().for_each(|(place, one)| each(Applies::Item(place), one));
            }
            (
                "items"
                | "additionalItems"
                | "contains"
                | "unevaluatedItems"
                | "additionalProperties"
                | "unevaluatedProperties",
                _,
            ) => each(Applies::Inside, word),
            ("propertyNames", _) => each(Applies::Names, word),
            ("$defs" | "definitions", Value::Object(all)) => {
                all.values().for_each(|one| each(Applies::Elsewhere, one));
            }
            ("contentSchema", _) => each(Applies::Elsewhere, word),
            _ => {}
        }
    }
}

/// A pointer as it stands in a URI's fragment.
pub(crate) fn decoded(pointer: &str) -> String {
    percent_encoding::percent_decode_str(pointer).decode_utf8_lossy().into_owned()
}
