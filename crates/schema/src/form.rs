//! The form of an elicitation: a flat object of plain fields (2025-11-25 and 2026-07-28, "Elicitation",
//! requested schema). Read tolerantly in what it adds, strictly in what it means: a field of a kind
//! that is not listed here makes the form a fault, since nobody could fill it in.

mod check;
mod format;
mod read;

use plenipo_wire::{Fragment, RawValue, object};
use thiserror::Error;

pub use format::TextFormat;

/// Most fields in a form, and most choices in a field.
const MOST: usize = 256;

/// Fields in the order of the server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// Never two of one name.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// The member's name in the answer.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// The answer has to have it.
    pub required: bool,
    /// What it takes.
    pub kind: FieldKind,
}

/// What a field takes, and what it has when nothing is said.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text {
        /// Least characters.
        min_length: Option<u64>,
        /// Most characters.
        max_length: Option<u64>,
        /// Its format, if it is one that can be checked.
        format: Option<TextFormat>,
        /// The default.
        default: Option<String>,
    },
    /// A number.
    Number {
        /// Without a fraction.
        integer: bool,
        /// Least value.
        minimum: Option<f64>,
        /// Greatest value.
        maximum: Option<f64>,
        /// The default, in the server's spelling.
        default: Option<Fragment>,
    },
    /// `true` or `false`.
    Boolean {
        /// The default.
        default: Option<bool>,
    },
    /// One of several strings.
    Choice {
        /// At least one.
        options: Vec<Choice>,
        /// The default.
        default: Option<String>,
    },
    /// Some of several strings: a list.
    Choices {
        /// At least one.
        options: Vec<Choice>,
        /// Least number to choose.
        min_items: Option<u64>,
        /// Greatest number to choose.
        max_items: Option<u64>,
        /// The default.
        default: Option<Vec<String>>,
    },
}

/// One string that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What a person reads; the value when the server gave nothing else.
    pub title: String,
}

/// What is wrong with a form or an answer to it; the text is a fragment that names the field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FormFault(String);

impl FormFault {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn of(field: &str, what: &str) -> Self {
        Self(format!("`{}` {what}", crate::error::shown(field)))
    }
}

impl Form {
    /// Reads `requestedSchema`.
    ///
    /// # Errors
    /// [`FormFault`] naming the field that is not of the protocol's kinds.
    pub fn from_raw(schema: &RawValue) -> Result<Self, FormFault> {
        read::form(schema)
    }

    /// A field by its name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Checks an answer and fills in the defaults of what it leaves out. Members come in the order of
    /// the form; values stay as they are written.
    ///
    /// # Errors
    /// [`FormFault`] naming the first field that has no fitting value, or that the form does not have.
    pub fn complete(&self, content: Option<&RawValue>) -> Result<Fragment, FormFault> {
        let given = match content {
            None => Vec::new(),
            Some(raw) => object::entries(raw)
                .ok_or_else(|| FormFault::new("the answer is not a JSON object"))?,
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| self.field(name).is_none()) {
            return Err(FormFault::of(name, "is not in the form"));
        }
        let mut members = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            // Of a member given twice the last one counts, as for most readers.
            let value = given.iter().rev().find(|(name, _)| *name == field.name);
            let value = match value {
                Some((_, value)) => Some(Fragment::from_raw(value)),
                None => field.default(),
            };
            match value {
                Some(value) => {
                    field.check(value.as_raw())?;
                    members.push((&field.name, value));
                }
                None if field.required => return Err(FormFault::of(&field.name, "is required")),
                None => {}
            }
        }
        Ok(Fragment::object(|object| {
            for (name, value) in &members {
                object.fragment(name, value);
            }
        }))
    }
}

impl Field {
    /// The default as JSON.
    #[must_use]
    pub fn default(&self) -> Option<Fragment> {
        match &self.kind {
            FieldKind::Text { default, .. } | FieldKind::Choice { default, .. } => {
                default.as_deref().map(Fragment::string)
            }
            FieldKind::Number { default, .. } => default.clone(),
            FieldKind::Boolean { default } => {
                default.and_then(|default| Fragment::serialize(&default).ok())
            }
            FieldKind::Choices { default, .. } => {
                default.as_ref().and_then(|default| Fragment::serialize(default).ok())
            }
        }
    }

    /// What a person typed as this field's value: text as it stands, a number, a word for yes or no,
    /// choices by value, title or number (counted from 1), several of them between commas.
    ///
    /// # Errors
    /// [`FormFault`] with what is expected.
    pub fn parse(&self, text: &str) -> Result<Fragment, FormFault> {
        check::parse(self, text)
    }

    /// Whether a value fits.
    ///
    /// # Errors
    /// [`FormFault`] with what is expected.
    pub fn check(&self, value: &RawValue) -> Result<(), FormFault> {
        check::check(self, value)
    }
}

#[cfg(test)]
mod tests;
