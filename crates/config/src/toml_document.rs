//! TOML to nodes.

use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;
use crate::node::{Name, Node, Place, Table, Value};
use plenipo_connect::text::shown;

pub(crate) fn parse(root: &Place<'_>, text: &str) -> Result<Table, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        root.at(offset).fault(format!("is not TOML: {}", shown(error.message())))
    })?;
    Ok(table(document.get_ref()))
}

fn table(table: &DeTable<'_>) -> Table {
    let mut members: Table = table
        .iter()
        .map(|(name, member)| {
            let key = Name { offset: name.span().start, text: name.get_ref().to_string() };
            (key, Node { offset: member.span().start, value: value(member.get_ref()) })
        })
        .collect();
    members.sort_by_key(|(name, _)| name.offset);
    members
}

fn value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            Value::Integer { digits: integer.as_str().replace('_', ""), radix: integer.radix() }
        }
        DeValue::Float(float) => Value::Float(float.as_str().replace('_', "")),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| Node { offset: item.span().start, value: self::value(item.get_ref()) })
                .collect(),
        ),
        DeValue::Table(members) => Value::Table(table(members)),
    }
}
