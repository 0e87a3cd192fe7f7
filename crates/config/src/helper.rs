//! `http_headers_helper`: a program and its arguments, never a line for a shell.

use crate::error::ConfigError;
use crate::format::Format;
use crate::node::Place;

/// Refuses a string and shows the array that does the same.
pub(crate) fn string_refused(format: Format, text: &str, place: &Place<'_>) -> ConfigError {
    let key = if format.is_toml() { "http_headers_helper = " } else { "\"headersHelper\": " };
    let words = ["sh", "-c", text].map(|word| serde_json::Value::from(word).to_string());
    let mut fault = place.fault("should be an array of a program and its arguments, found string");
    fault.hint = Some(format!("write {key}[{}]", words.join(", ").replace('\u{7f}', "\\u007f")));
    fault
}
