//! Text that somebody else wrote, shown so that it cannot look like something else: nothing is cut, and what a
//! terminal would act on or hide is written out.

/// One word of a command line as a shell (with `$'…'`) would take it.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().all(is_visible) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut text = "$'".to_owned();
    for character in word.chars() {
        match character {
            '\'' | '\\' => text.extend(['\\', character]),
            other => push(&mut text, other, true),
        }
    }
    text + "'"
}

/// A text that is no command line.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|character| push(&mut shown, character, false));
    shown
}

fn push(text: &mut String, character: char, shell: bool) {
    if is_visible(character) {
        text.push(character);
        return;
    }
    let code = u32::from(character);
    text.extend([match (character, shell) {
        ('\n', _) => "\\n".to_owned(),
        ('\r', _) => "\\r".to_owned(),
        ('\t', _) => "\\t".to_owned(),
        (_, true) if code < 0x80 => format!("\\x{code:02x}"),
        (_, true) if code <= 0xffff => format!("\\u{code:04x}"),
        (_, true) => format!("\\U{code:08x}"),
        _ => format!("\\u{{{code:x}}}"),
    }]);
}

/// Letters, digits and what ASCII prints; not marks, joiners, directions and other things without a shape.
fn is_visible(character: char) -> bool {
    match character.is_ascii() {
        true => character.is_ascii_graphic() || character == ' ',
        false => character.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_and_nothing_is_cut() {
        let shown = ["", "a", "a b", "it's", "a\u{1b}[2K\rb", "x\u{202e}y", "ä\u{200b}", "-q'\n"];
        insta::assert_snapshot!(shown.map(quoted).join("\n"), @r"
        ''
        a
        'a b'
        'it'\''s'
        $'a\x1b[2K\rb'
        $'x\u202ey'
        $'ä\u200b'
        $'-q\'\n'
        ");
        assert_eq!(visible("a\u{1b}\u{202e}\nä"), "a\\u{1b}\\u{202e}\\nä");
        let long = "x".repeat(10_000);
        assert_eq!(quoted(&long), long);
    }
}
