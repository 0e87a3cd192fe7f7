//! Why a value is not known to match a schema.

pub(crate) use plenipo_redact::text::shown;
use thiserror::Error;

/// Why a value is not known to match a schema. Reads after "the arguments:" or the like.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// It does not.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// `$schema` names a dialect that this crate does not know.
    #[error(
        "the schema's dialect `{found}` is not supported (2020-12, 2019-09, draft-07, -06, -04 are)"
    )]
    Dialect {
        /// As the schema says it.
        found: String,
    },
    /// A `$ref` leads nowhere, or out of the schema, from where nothing is fetched.
    #[error("the schema's reference `{target}` leads nowhere inside of it, and nothing is fetched")]
    Reference {
        /// As the schema says it.
        target: String,
    },
    /// The schema breaks its dialect's rules.
    #[error("the schema is not valid{}: {reason}", at(place))]
    Invalid {
        /// Where in the schema; empty for all of it.
        place: String,
        /// Which rule.
        reason: String,
    },
    /// The schema is over a bound.
    #[error("the schema is over the limit of {limit} {what}")]
    TooBig {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// The value is over a bound, or checking it would take too much work.
    #[error("checking it against the schema would take more than {limit} {what}")]
    TooCostly {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// The system gives no thread to check it on.
    #[error("there is no thread to check it on")]
    NoThread,
    /// The value is JSON and still no value: nested too deep, or with half a surrogate pair.
    #[error("it cannot be read for a check: {reason}")]
    Unreadable {
        /// The parser's words.
        reason: String,
    },
}

/// One place where a value differs from its schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}should be {expected}, found {found}", subject(place))]
#[non_exhaustive]
pub struct Mismatch {
    /// For example `labels[2].name`; empty for the whole value.
    pub place: String,
    /// The top-level member it is in; of a missing or superfluous one its name.
    pub member: Option<String>,
    /// For example `a string`.
    pub expected: String,
    /// The value there, shortened.
    pub found: String,
}

/// Coarse class of a [`SchemaFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaFaultKind {
    /// The value does not match.
    Mismatch,
    /// The schema cannot be used.
    Schema,
    /// Schema or value are over a bound.
    Bound,
    /// The value cannot be read.
    Value,
}

impl SchemaFault {
    /// The class of this fault.
    #[must_use]
    pub fn kind(&self) -> SchemaFaultKind {
        match self {
            Self::Mismatch(_) => SchemaFaultKind::Mismatch,
            Self::Dialect { .. } | Self::Reference { .. } | Self::Invalid { .. } => {
                SchemaFaultKind::Schema
            }
            Self::TooBig { .. } | Self::TooCostly { .. } | Self::NoThread => SchemaFaultKind::Bound,
            Self::Unreadable { .. } => SchemaFaultKind::Value,
        }
    }
}

impl Mismatch {
    /// The whole value is not there.
    #[must_use]
    pub fn missing() -> Self {
        let (expected, found) = ("there".to_owned(), "nothing".to_owned());
        Self { place: String::new(), member: None, expected, found }
    }

    /// Nothing more is known than that the whole value is not right.
    pub(crate) fn unexplained(found: String) -> Self {
        let expected = "what the schema says, which has too many alternatives to tell where";
        Self { place: String::new(), member: None, expected: expected.to_owned(), found }
    }
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" at `{place}`") }
}

fn subject(place: &str) -> String {
    if place.is_empty() { "it ".to_owned() } else { format!("`{place}` ") }
}
