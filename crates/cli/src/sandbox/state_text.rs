//! Where the text of a sandbox state comes from.

use std::fs::File;
use std::io::Read;

use plenipo_launch::{ErrorKind, LaunchError};

/// Longest state that is read.
const MAX_STATE_BYTES: u64 = 16 * 1024 * 1024;

/// Reads the state that an argument gives or names: JSON text, `@FILE`, `fd:N`, `-`.
pub(super) fn read(argument: &str) -> Result<String, LaunchError> {
    if let Some(path) = argument.strip_prefix('@') {
        return read_all(File::open(path), &format!("the sandbox state file {path}"));
    }
    if let Some(number) = argument.strip_prefix("fd:") {
        let number = number.parse().map_err(|_| {
            LaunchError::new(ErrorKind::Invalid, format!("fd:{number} does not name a descriptor"))
        })?;
        let descriptor = plenipo_launch::inherited_descriptor(number)?;
        return read_all(
            Ok(File::from(descriptor)),
            &format!("the sandbox state on descriptor {number}"),
        );
    }
    if argument == "-" {
        return read_all(Ok(std::io::stdin()), "the sandbox state on standard input");
    }
    Ok(argument.to_owned())
}

fn read_all(source: std::io::Result<impl Read>, what: &str) -> Result<String, LaunchError> {
    let failed = |error: &dyn std::fmt::Display| {
        LaunchError::new(ErrorKind::Invalid, format!("{what} cannot be read: {error}"))
    };
    let mut text = String::new();
    let read = source
        .and_then(|source| source.take(MAX_STATE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| failed(&error))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > MAX_STATE_BYTES {
        return Err(failed(&"it is longer than 16 MiB"));
    }
    Ok(text)
}
