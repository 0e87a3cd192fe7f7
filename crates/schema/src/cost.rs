//! How much work a check will be, before it is done.
//!
//! A few lines of schema can ask for more steps than there is time for: alternatives of
//! alternatives, each by reference. The count follows the same paths as the check and adds up what
//! each costs, but walks every pair of subschema and value once.

use std::collections::HashMap;

use serde_json::Value;

use crate::error::SchemaFault;
use crate::survey::{Applies, Survey, decoded, subschemas};

/// Subschemas applied to values: about a tenth of a second.
const STEPS: usize = 1_000_000;
/// Pairs looked at while counting.
const PAIRS: usize = 300_000;
/// How deep subschemas may lead into each other, and into a value.
const DEPTH: usize = 1_500;

/// Steps of a check.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) total: usize,
    /// Those inside of `anyOf` and `oneOf`: what an explanation has to go through.
    pub(crate) alternatives: usize,
}

/// Counts, within bounds.
pub(crate) fn of(root: &Value, value: &Value) -> Result<Cost, SchemaFault> {
    let survey = Survey::of(root)?;
    let mut count = Count { root, survey, known: HashMap::new() };
    let cost = count.of(root, value, DEPTH)?;
    if cost.total > STEPS {
        return Err(too_costly("steps", STEPS));
    }
    Ok(cost)
}

struct Count<'s> {
    root: &'s Value,
    survey: Survey<'s>,
    /// `None` while it is being counted: a circle costs nothing more.
    known: HashMap<(*const Value, *const Value), Option<Cost>>,
}

impl<'s> Count<'s> {
    fn of(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Result<Cost, SchemaFault> {
        let Some(members) = schema.as_object() else {
            return Ok(Cost { total: 1, alternatives: 0 });
        };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&pair) {
            return Ok(known.unwrap_or_default());
        }
        let depth = depth.checked_sub(1).ok_or_else(|| too_costly("levels", DEPTH))?;
        if self.known.len() >= PAIRS {
            return Err(too_costly("steps", PAIRS));
        }
        self.known.insert(pair, None);
        let mut cost = Cost { total: members.len().saturating_add(1), alternatives: 0 };
        cost.total = cost.total.saturating_add(listed(members.get("enum")));
        let mut inner = Vec::new();
        subschemas(schema, &mut |applies, inside| inner.push((applies, inside)));
        for (applies, inside) in inner {
            self.apply(&mut cost, (applies, inside), value, depth)?;
        }
        for target in self.targets(schema)? {
            let there = self.of(target, value, depth)?;
            cost.add(there, false);
        }
        if ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|name| members.contains_key(*name))
        {
            // What the others evaluated is found out by going through them again.
            cost.total = cost.total.saturating_mul(2);
        }
        self.known.insert(pair, Some(cost));
        Ok(cost)
    }

    fn apply(
        &mut self,
        cost: &mut Cost,
        (applies, schema): (Applies<'_>, &'s Value),
        value: &Value,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        let mut each = |count: &mut Self, value: &Value| {
            let there = count.of(schema, value, depth)?;
            cost.add(there, applies == Applies::Alternative);
            Ok(())
        };
        match (applies, value) {
            (Applies::Here | Applies::Alternative, _) => each(self, value),
            (Applies::Member(name), Value::Object(members)) => {
                members.get(name).map_or(Ok(()), |value| each(self, value))
            }
            (Applies::Item(place), Value::Array(items)) => {
                items.get(place).map_or(Ok(()), |value| each(self, value))
            }
            (Applies::Inside, Value::Object(members)) => {
                members.values().try_for_each(|value| each(self, value))
            }
            (Applies::Inside, Value::Array(items)) => {
                items.iter().try_for_each(|value| each(self, value))
            }
            (Applies::Names, Value::Object(members)) => {
                // Names are text: one stands for all.
                each(self, &Value::Null)?;
                cost.total = cost.total.saturating_mul(members.len().max(1));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where the references of a schema may lead: all of them where that depends.
    fn targets(&self, schema: &'s Value) -> Result<Vec<&'s Value>, SchemaFault> {
        let mut targets = Vec::new();
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = schema.get(keyword).and_then(Value::as_str) else { continue };
            let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
            let last = document.rsplit('/').next().unwrap_or_default();
            let embedded =
                self.survey.ids.iter().filter(|(id, _)| id.trim_end_matches('#').ends_with(last));
            let documents = embedded.map(|(_, schema)| *schema).chain([self.root]);
            let anchored = self.survey.anchors.iter().filter(|(name, _)| *name == fragment);
            match fragment {
                "" => targets.extend(documents),
                pointer if pointer.starts_with('/') => {
                    let pointer = decoded(pointer);
                    targets.extend(documents.filter_map(|document| document.pointer(&pointer)));
                }
                _ => targets.extend(anchored.map(|(_, schema)| *schema)),
            }
        }
        Ok(targets)
    }
}

impl Cost {
    fn add(&mut self, other: Self, alternative: bool) {
        self.total = self.total.saturating_add(other.total);
        let inside = if alternative { other.total } else { other.alternatives };
        self.alternatives = self.alternatives.saturating_add(inside);
    }
}

fn listed(values: Option<&Value>) -> usize {
    values.and_then(Value::as_array).map_or(0, Vec::len)
}

fn too_costly(what: &'static str, limit: usize) -> SchemaFault {
    SchemaFault::TooCostly { what, limit }
}
