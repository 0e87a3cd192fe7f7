//! The few settings of git-config(1) that name files which run or configure: a tolerant reader of its syntax.
//!
//! It finds too much rather than too little: conditions of `includeIf` count as met, a value of any subsection is taken.

use std::iter::Peekable;
use std::slice::Iter;

/// One setting that matters, with its value's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// `core.hooksPath`.
    HooksPath(Vec<u8>),
    /// `include.path`, `includeIf.CONDITION.path`.
    Include(Vec<u8>),
    /// `submodule.NAME.path`.
    SubmodulePath(Vec<u8>),
}

/// The settings in `text`, in its order.
pub(super) fn settings(text: &[u8]) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut section = Vec::new();
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.peek() {
        match byte {
            b'[' => section = header(&mut bytes),
            b'#' | b';' => skip_line(&mut bytes),
            byte if byte.is_ascii_alphabetic() => {
                let (name, value) = variable(&mut bytes);
                found.extend(value.and_then(|value| setting(&section, &name, value)));
            }
            _ => drop(bytes.next()),
        }
    }
    found
}

fn setting(section: &[u8], name: &[u8], value: Vec<u8>) -> Option<Setting> {
    match (section, name) {
        (b"core", b"hookspath") => Some(Setting::HooksPath(value)),
        (b"include" | b"includeif", b"path") => Some(Setting::Include(value)),
        (b"submodule", b"path") => Some(Setting::SubmodulePath(value)),
        _ => None,
    }
    .filter(|setting| {
        let (Setting::HooksPath(value) | Setting::Include(value) | Setting::SubmodulePath(value)) =
            setting;
        !value.is_empty()
    })
}

type Bytes<'a> = Peekable<Iter<'a, u8>>;

fn skip_line(bytes: &mut Bytes<'_>) {
    for byte in bytes.by_ref() {
        if *byte == b'\n' {
            return;
        }
    }
}

/// `[name "subsection"]`: the name in lower case.
fn header(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut name = Vec::new();
    let mut in_name = true;
    let mut quoted = false;
    bytes.next();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => drop(bytes.next()),
            b']' if !quoted => break,
            b'\n' => break, // not a header after all
            // `[section.subsection]` is an old spelling of the same.
            b' ' | b'\t' | b'.' if !quoted => in_name = in_name && name.is_empty(),
            _ => {}
        }
        if in_name && (byte.is_ascii_alphanumeric() || *byte == b'-') {
            name.push(byte.to_ascii_lowercase());
        }
    }
    name
}

/// `name = value`: the name in lower case; no value if there is no `=`.
fn variable(bytes: &mut Bytes<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut name = Vec::new();
    while let Some(byte) = bytes.next_if(|byte| byte.is_ascii_alphanumeric() || **byte == b'-') {
        name.push(byte.to_ascii_lowercase());
    }
    while bytes.next_if(|byte| matches!(byte, b' ' | b'\t' | b'\r')).is_some() {}
    if bytes.next_if(|byte| **byte == b'=').is_none() {
        return (name, None);
    }
    (name, Some(value(bytes)))
}

fn value(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    let mut kept = 0; // trailing blanks outside quotes do not count
    let mut quoted = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => break,
            b'"' => {
                quoted = !quoted;
                kept = value.len();
                continue;
            }
            b'#' | b';' if !quoted => {
                skip_line(bytes);
                break;
            }
            b'\\' => match bytes.next() {
                Some(b'\n') | None => continue,
                Some(b'\r') => {
                    bytes.next_if(|byte| **byte == b'\n');
                    continue;
                }
                Some(b'n') => value.push(b'\n'),
                Some(b't') => value.push(b'\t'),
                Some(other) => value.push(*other),
            },
            b' ' | b'\t' | b'\r' if !quoted => {
                if !value.is_empty() {
                    value.push(*byte);
                }
                continue;
            }
            other => value.push(*other),
        }
        kept = value.len();
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(value: &str) -> Setting {
        Setting::HooksPath(value.into())
    }

    fn include(value: &str) -> Setting {
        Setting::Include(value.into())
    }

    #[test]
    fn every_spelling_of_a_setting_is_found() {
        for (text, wanted) in [
            ("[core]\n\thooksPath = .githooks\n", hooks(".githooks")),
            ("[CORE] HooksPath=a b ; why\n", hooks("a b")),
            ("[core]hookspath = \"a ; b\" # c", hooks("a ; b")),
            ("[core]\nhookspath = a\\\nb\n", hooks("ab")),
            ("[core]\nhookspath = a\\\\b\\\"c\n", hooks("a\\b\"c")),
            ("[core]\r\nhookspath = a \r\n", hooks("a")),
            ("# [x]\n[core]\n; x\nbare\nhookspath=\t\"x y\"z  ", hooks("x yz")),
            ("[include]\npath = ../x\n", include("../x")),
            ("[includeIf \"gitdir:a]b\\\"c\"]\npath = y\n", include("y")),
            ("[submodule \"a.b\"]\npath = libs/a\n", Setting::SubmodulePath("libs/a".into())),
            ("[submodule.a]\npath = libs/a\n", Setting::SubmodulePath("libs/a".into())),
        ] {
            assert_eq!(settings(text.as_bytes()), [wanted], "{text}");
        }
    }

    #[test]
    fn other_settings_and_empty_values_are_not() {
        for text in [
            "",
            "[core]\nhookspath\n[x]\nhookspath = a\n",
            "hookspath = a\n",
            "[core]\nhookspath = \"\"\n",
            "[core]\n#hookspath = a\n",
            "[remote \"core\"]\npath = x\nhookspath = y",
            "[core",
            "[core \"\\",
        ] {
            assert_eq!(settings(text.as_bytes()), [], "{text}");
        }
    }

    #[test]
    fn several_are_found_in_order() {
        let text = b"[core]\nhookspath = a\n[include]\npath = b\npath = c\n[core]\nhookspath = d";
        assert_eq!(settings(text), [hooks("a"), include("b"), include("c"), hooks("d")]);
    }
}
