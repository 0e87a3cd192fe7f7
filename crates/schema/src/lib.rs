//! JSON Schemas from peers: what fits one, and what a person is told when something does not.
//!
//! [`Schema`] is a tool's: arguments before they are sent, `structuredContent` after it came. [`form::Form`] is an
//! elicitation's, which allows far less and which a person fills in.
//!
//! The dialect is the one that `$schema` names, 2020-12 where it names none; one that is not known
//! is an error and never ignored. Nothing is ever fetched: a `$ref` that leads out of the schema is
//! an error, too. `format` is an annotation.
//!
//! Schemas and values come from peers, so everything is bounded: the schema's text
//! ([`MAX_SCHEMA_BYTES`]), its subschemas, patterns (which are matched in linear time) and depth, and
//! the work of a check, which is counted before it is done. What is over a bound is said, not
//! checked.
//!
//! Most tools have plain schemas, most calls fit them, and for those neither is anything compiled
//! nor a meta-schema loaded: that costs milliseconds and is left to what is unusual or wrong.
//!
//! ```
//! use plenipo_schema::Schema;
//! use plenipo_wire::Fragment;
//!
//! let schema = Fragment::parse(r#"{"properties": {"limit": {"type": "integer"}}}"#).unwrap();
//! let schema = Schema::read(schema.as_raw()).unwrap();
//! let fault = schema.check(Fragment::parse(r#"{"limit": "5"}"#).unwrap().as_raw()).unwrap_err();
//! assert_eq!(fault.to_string(), "`limit` should be integer, found \"5\"");
//! ```
#![forbid(unsafe_code)]

mod compile;
mod cost;
mod error;
mod explain;
mod flat;
pub mod form;
mod plain;
mod survey;

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use plenipo_wire::{Fragment, RawValue};
use serde_json::Value;

use flat::Flat;

pub use error::{Mismatch, SchemaFault, SchemaFaultKind};

/// Longest schema: 1 MiB of text.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// Longest value that is checked: 8 MiB of text.
pub const MAX_CHECKED_BYTES: usize = 8 * 1024 * 1024;
/// For what recurses as deep as a peer likes, within the bounds above.
const STACK: usize = 32 * 1024 * 1024;

/// A schema, compiled when that is first needed.
#[derive(Debug)]
pub struct Schema {
    value: Value,
    /// Any object matches.
    takes_everything: bool,
    /// When the schema says no more than most do.
    flat: Option<Flat>,
    /// `None`: the schema does not say.
    dialect: Option<Draft>,
    compiled: OnceLock<Result<Validator, SchemaFault>>,
}

impl Schema {
    /// Reads a schema without compiling it.
    ///
    /// # Errors
    /// [`SchemaFault`] for a dialect that is not known, a reference that leads nowhere, and a schema
    /// over the bounds.
    pub fn read(raw: &RawValue) -> Result<Self, SchemaFault> {
        let text = raw.get();
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaFault::TooBig { what: "bytes", limit: MAX_SCHEMA_BYTES });
        }
        let value: Value = serde_json::from_str(text).map_err(|error| SchemaFault::Invalid {
            place: String::new(),
            reason: error.to_string(),
        })?;
        let dialect = compile::dialect(&value)?;
        survey::Survey::of(&value)?;
        let takes_everything = plain::takes_everything(&value);
        let flat = Flat::of(&value);
        Ok(Self { value, takes_everything, flat, dialect, compiled: OnceLock::new() })
    }

    /// Whether `value` matches.
    ///
    /// # Errors
    /// [`SchemaFault`]; of the kinds, only [`Mismatch`](SchemaFault::Mismatch) means that it does not.
    pub fn check(&self, value: &RawValue) -> Result<(), SchemaFault> {
        if self.takes_everything {
            return Ok(());
        }
        self.check_value(&read_value(value)?)
    }

    /// As [`check`](Self::check), for the arguments of a call: a `null` counts as an absent argument
    /// where that makes the difference, because callers spell it so.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_arguments(&self, arguments: &Fragment) -> Result<(), SchemaFault> {
        let is_sure = || self.flat.as_ref().is_some_and(|flat| flat.matches(arguments.as_str()));
        if self.takes_everything || is_sure() {
            return Ok(());
        }
        let mut value = read_value(arguments.as_raw())?;
        let Err(first) = self.check_value(&value) else { return Ok(()) };
        let mut fault = first.clone();
        while let (SchemaFault::Mismatch(mismatch), Value::Object(members)) = (&fault, &mut value) {
            let null =
                mismatch.member.as_ref().filter(|name| members.get(*name) == Some(&Value::Null));
            let Some(name) = null else { break };
            members.remove(name);
            match self.check_value(&value) {
                Ok(()) => return Ok(()),
                Err(next) => fault = next,
            }
        }
        Err(first)
    }

    fn check_value(&self, value: &Value) -> Result<(), SchemaFault> {
        if plain::matches(&self.value, value) {
            return Ok(());
        }
        on_a_deep_stack(|| self.check_thoroughly(value))
    }

    fn check_thoroughly(&self, value: &Value) -> Result<(), SchemaFault> {
        let compiled = self.compiled.get_or_init(|| compile::compile(&self.value, self.dialect));
        let validator = compiled.as_ref().map_err(SchemaFault::clone)?;
        let cost = cost::of(&self.value, value)?;
        if validator.is_valid(value) {
            return Ok(());
        }
        Err(SchemaFault::Mismatch(explain::mismatch(validator, value, &cost)))
    }
}

fn read_value(raw: &RawValue) -> Result<Value, SchemaFault> {
    if raw.get().len() > MAX_CHECKED_BYTES {
        return Err(SchemaFault::TooCostly { what: "bytes", limit: MAX_CHECKED_BYTES });
    }
    serde_json::from_str(raw.get())
        .map_err(|error| SchemaFault::Unreadable { reason: error.to_string() })
}

/// Peers decide how deep schemas and values nest; threads have small stacks.
fn on_a_deep_stack(
    check: impl FnOnce() -> Result<(), SchemaFault> + Send,
) -> Result<(), SchemaFault> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("schema".to_owned()).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, check).map_err(|_| SchemaFault::NoThread)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
