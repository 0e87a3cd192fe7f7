//! What the environment says of the terminal and the display.

#![expect(clippy::disallowed_methods, reason = "this module is the one that reads it")]

use std::ffi::OsString;

/// Whether a variable is set and not empty.
pub(crate) fn is_set(name: &str) -> bool {
    variable(name).is_some()
}

/// `NO_COLOR`: set and not empty means no colour (no-color.org).
pub(crate) fn colours_wanted() -> bool {
    !is_set("NO_COLOR")
}

/// Whether the terminal can draw over a line: not with `TERM` absent or `dumb`.
pub(crate) fn terminal_has_lines() -> bool {
    variable("TERM").is_some_and(|terminal| terminal != "dumb")
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
