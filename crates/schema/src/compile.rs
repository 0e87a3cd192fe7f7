//! From a schema to a validator: which dialect, and no network, no files.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::error::{SchemaFault, shown};
use crate::explain;

/// Bound of one compiled pattern, and of what matching it may cache.
const PATTERN_BYTES: usize = 256 * 1024;
/// What schemas without `$schema` were written for, the most likely first: revisions before
/// 2025-11-25 name no default.
const UNDECLARED: [Draft; 3] = [Draft::Draft202012, Draft::Draft7, Draft::Draft4];

/// The dialect that `$schema` names.
pub(crate) fn dialect(schema: &Value) -> Result<Option<Draft>, SchemaFault> {
    let Some(word) = schema.get("$schema") else { return Ok(None) };
    let Some(text) = word.as_str() else {
        return Err(SchemaFault::Dialect { found: shown(&word.to_string()) });
    };
    let bare = text.trim_end_matches('#').trim_end_matches('/');
    let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"));
    Ok(Some(match bare {
        Some("json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
        Some("json-schema.org/draft/2019-09/schema") => Draft::Draft201909,
        Some("json-schema.org/draft-07/schema") => Draft::Draft7,
        Some("json-schema.org/draft-06/schema") => Draft::Draft6,
        Some("json-schema.org/draft-04/schema") => Draft::Draft4,
        _ => return Err(SchemaFault::Dialect { found: shown(text) }),
    }))
}

/// Compiles by the dialect; by the first that takes the schema when it names none.
pub(crate) fn compile(schema: &Value, dialect: Option<Draft>) -> Result<Validator, SchemaFault> {
    if let Some(dialect) = dialect {
        return compile_as(schema, dialect);
    }
    let mut fault = None;
    for dialect in UNDECLARED {
        match compile_as(schema, dialect) {
            Ok(validator) => return Ok(validator),
            Err(found) => fault = fault.or(Some(found)),
        }
    }
    Err(fault.unwrap_or(SchemaFault::Dialect { found: String::new() }))
}

fn compile_as(schema: &Value, dialect: Draft) -> Result<Validator, SchemaFault> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options()
        .with_draft(dialect)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| fault(&error))
}

fn fault(error: &ValidationError<'_>) -> SchemaFault {
    let reason = shown(&error.to_string());
    if let ValidationErrorKind::Referencing(_) = error.kind() {
        return SchemaFault::Reference { target: reason };
    }
    let reason = match (error.kind(), error.instance().as_ref()) {
        (ValidationErrorKind::Format { format }, Value::String(pattern)) if format == "regex" => {
            let pattern = shown(pattern);
            format!(
                "`{pattern}` is no pattern, or has what patterns here have not: look-around, references back, a large size"
            )
        }
        _ => reason,
    };
    SchemaFault::Invalid { place: explain::place(error.instance_path()), reason }
}
