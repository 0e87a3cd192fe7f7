//! Values of fields: whether they fit, and what a person's typing comes to.

use plenipo_wire::{Fragment, RawValue, object};

use super::{Choice, Field, FieldKind, FormFault};

pub(super) fn check(field: &Field, value: &RawValue) -> Result<(), FormFault> {
    let fault = |what: String| FormFault::of(&field.name, &what);
    match &field.kind {
        FieldKind::Text { min_length, max_length, format, .. } => {
            let text = object::text(value).ok_or_else(|| fault(expected(field)))?;
            let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
            if min_length.is_some_and(|min| length < min) {
                let min = min_length.unwrap_or_default();
                return Err(fault(format!("has to have at least {min} characters")));
            }
            if max_length.is_some_and(|max| length > max) {
                let max = max_length.unwrap_or_default();
                return Err(fault(format!("may have at most {max} characters")));
            }
            match format.filter(|format| !format.fits(&text)) {
                Some(format) => Err(fault(format!("has to be {}", format.description()))),
                None => Ok(()),
            }
        }
        FieldKind::Number { integer, minimum, maximum, .. } => {
            let number = object::number(value).ok_or_else(|| fault(expected(field)))?;
            if *integer && number.fract() != 0.0 {
                return Err(fault(expected(field)));
            }
            match (minimum, maximum) {
                (Some(min), _) if number < *min => Err(fault(format!("has to be at least {min}"))),
                (_, Some(max)) if number > *max => Err(fault(format!("may be at most {max}"))),
                _ => Ok(()),
            }
        }
        FieldKind::Boolean { .. } => match object::boolean(value) {
            Some(_) => Ok(()),
            None => Err(fault(expected(field))),
        },
        FieldKind::Choice { options, .. } => match object::text(value) {
            Some(text) if has(options, &text) => Ok(()),
            _ => Err(fault(expected(field))),
        },
        FieldKind::Choices { options, min_items, max_items, .. } => {
            let items = object::items(value).ok_or_else(|| fault(expected(field)))?;
            if !items.iter().all(|item| object::text(item).is_some_and(|text| has(options, &text)))
            {
                return Err(fault(expected(field)));
            }
            let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
            match (min_items, max_items) {
                (Some(min), _) if count < *min => {
                    Err(fault(format!("has to have at least {min} of its choices")))
                }
                (_, Some(max)) if count > *max => {
                    Err(fault(format!("may have at most {max} of its choices")))
                }
                _ => Ok(()),
            }
        }
    }
}

pub(super) fn parse(field: &Field, text: &str) -> Result<Fragment, FormFault> {
    let wrong = || FormFault::of(&field.name, &expected(field));
    let word = text.trim();
    let value = match &field.kind {
        FieldKind::Text { .. } => Fragment::string(text),
        FieldKind::Number { .. } => {
            let number = Fragment::parse(word.strip_prefix('+').unwrap_or(word));
            number.map_err(|_| wrong())?
        }
        FieldKind::Boolean { .. } => {
            let value = match word.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" | "on" | "1" => true,
                "n" | "no" | "false" | "off" | "0" => false,
                _ => return Err(wrong()),
            };
            Fragment::serialize(&value).map_err(|_| wrong())?
        }
        FieldKind::Choice { options, .. } => {
            Fragment::string(chosen(options, word).ok_or_else(wrong)?)
        }
        FieldKind::Choices { options, .. } => {
            let words = word.split(',').map(str::trim).filter(|word| !word.is_empty());
            let mut values: Vec<&str> = Vec::new();
            for word in words {
                let value = chosen(options, word).ok_or_else(wrong)?;
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Fragment::serialize(&values).map_err(|_| wrong())?
        }
    };
    check(field, value.as_raw())?;
    Ok(value)
}

fn has(options: &[Choice], value: &str) -> bool {
    options.iter().any(|option| option.value == value)
}

/// By value, then by title, then by number: a value may look like a number.
fn chosen<'a>(options: &'a [Choice], word: &str) -> Option<&'a str> {
    let by_value = options.iter().find(|option| option.value == word);
    let by_title = || options.iter().find(|option| option.title.eq_ignore_ascii_case(word));
    let by_number = || options.get(word.parse::<usize>().ok()?.checked_sub(1)?);
    by_value.or_else(by_title).or_else(by_number).map(|option| option.value.as_str())
}

fn expected(field: &Field) -> String {
    let list = |options: &[Choice]| {
        let some: Vec<_> =
            options.iter().take(8).map(|option| crate::error::shown(&option.value)).collect();
        let more = if options.len() > some.len() { ", …" } else { "" };
        format!("{}{more}", some.join(", "))
    };
    match &field.kind {
        FieldKind::Text { .. } => "has to be text".to_owned(),
        FieldKind::Number { integer: true, .. } => "has to be a whole number".to_owned(),
        FieldKind::Number { .. } => "has to be a number".to_owned(),
        FieldKind::Boolean { .. } => "has to be yes or no".to_owned(),
        FieldKind::Choice { options, .. } => format!("has to be one of {}", list(options)),
        FieldKind::Choices { options, .. } => format!("has to be some of {}", list(options)),
    }
}
