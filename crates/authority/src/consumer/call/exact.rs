//! Did parsing keep this value?

use serde_json::{Number, Value};

use crate::CallAuthorityError;

/// The depth `serde_json` parses by default; deeper values came about some other way.
const MAXIMUM_DEPTH: usize = 128;
/// A double gives back any decimal of at most so many significant digits (`DBL_DIG`).
const EXACT_DIGITS: usize = 15;
/// From here on (2^53) doubles skip integers.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// Refuses a value that may differ from what the sender wrote. Does not recurse.
pub(super) fn check(key: &'static str, value: &Value) -> Result<(), CallAuthorityError> {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAXIMUM_DEPTH {
            return Err(CallAuthorityError::TooDeep { key, maximum: MAXIMUM_DEPTH });
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|item| (item, depth + 1))),
            Value::Number(number) if !is_exact(number) => {
                return Err(CallAuthorityError::InexactNumber { key, number: number.to_string() });
            }
            _ => {}
        }
    }
    Ok(())
}

/// False for a number that may have been rounded.
fn is_exact(number: &Number) -> bool {
    if number.is_i64() || number.is_u64() {
        return true;
    }
    let text = number.to_string();
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let significant = digits.chars().filter(char::is_ascii_digit).skip_while(|digit| *digit == '0');
    significant.count() <= EXACT_DIGITS
        && number.as_f64().is_some_and(|value| value.abs() < EXACT_INTEGERS)
}
