//! `sandboxCwd`: a native absolute path as a `file:` URI (RFC 8089), percent-encoded.
//!
//! Encoding follows the URL standard's special path segment set, as the reference runtime does.
//! Decoding is stricter than the URL standard: what a URL parser would repair silently (a
//! backslash, a tab, a dot segment, half an escape) is refused, because the path that it would
//! mean is then a matter of opinion.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

use crate::native;

/// What is escaped in a path; `/` separates segments and stays.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'}');

pub(super) fn encode(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes(), PATH))
}

pub(super) fn decode(uri: &str) -> Result<PathBuf, String> {
    let wanted = "expected an absolute percent-encoded file URI such as \"file:///srv/project\"";
    let found = super::tree::quote(uri);
    let fault = |why: &str| format!("{wanted}, found {found} ({why})");
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Err(format!("{wanted}, found {found}"));
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(fault("another scheme"));
    }
    let Some(slash) = rest.find('/') else { return Err(fault("no path")) };
    let (host, path) = rest.split_at(slash);
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(fault("a path on another host"));
    }
    if path.contains(['?', '#']) {
        return Err(fault("a query or fragment"));
    }
    if path.contains('\\') || path.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(fault("a backslash or control character that is not percent-encoded"));
    }
    check_escapes(path).map_err(fault)?;
    if is_drive(path) {
        return Err(fault("a path of another system"));
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    let path = native_path(bytes).ok_or_else(|| fault("not valid text on this system"))?;
    native::absolute(&path).map_err(fault)
}

/// Every `%` is followed by two hex digits that are not an encoded `/`.
fn check_escapes(path: &str) -> Result<(), &'static str> {
    for escape in path.split('%').skip(1) {
        let digits = escape.as_bytes().get(..2).unwrap_or_default();
        if digits.len() != 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err("`%` without two hex digits");
        }
        if digits.eq_ignore_ascii_case(b"2f") {
            return Err("an encoded `/`");
        }
    }
    Ok(())
}

/// `/C:` or `/C:/…`: a Windows path, which no Unix system means.
fn is_drive(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default().as_bytes();
    matches!(first, [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have paths that are no bytes")]
fn native_path(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Some(OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn native_path(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(|text| OsString::from(text).into())
}
