//! Peers' text made fit to show: short, one line, no control characters.

const SHOWN: usize = 200;

/// At most 200 characters of `text`, control characters replaced by U+FFFD.
pub fn shown(text: &str) -> String {
    let mut out: String = text.trim().chars().take(SHOWN).map(harmless).collect();
    if text.trim().chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// [`shown`] for bytes that may not be UTF-8.
pub fn shown_bytes(bytes: &[u8]) -> String {
    let some = bytes.get(..bytes.len().min(SHOWN * 4 + 4)).unwrap_or_default();
    shown(&String::from_utf8_lossy(some))
}

/// Control characters and the marks of direction could rewrite what a terminal shows, and what is invisible could hide
/// something in it. The two joiners (U+200C, U+200D) stay: scripts and emoji are written with them, and they hide nothing.
pub fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() || is_invisible(other) => '\u{fffd}',
        other => other,
    }
}

/// Marks of direction, blanks without width, fillers, tags and supplementary variation selectors, line and paragraph
/// separators.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// An error and what caused it, in one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        assert_eq!(
            shown("a\x1b[31mb\r\n\u{202e}c\td"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}c d"
        );
        assert_eq!(shown(&"x".repeat(300)).chars().count(), 201);
        for invisible in
            "\u{200b}\u{feff}\u{2060}\u{200f}\u{e0041}\u{e0100}\u{2028}\u{3164}".chars()
        {
            assert_eq!(harmless(invisible), '\u{fffd}', "{invisible:?}");
        }
        assert_eq!(
            shown("\u{1f468}\u{200d}\u{1f467} \u{2764}\u{fe0f} é"),
            "\u{1f468}\u{200d}\u{1f467} \u{2764}\u{fe0f} é"
        );
        assert_eq!(shown_bytes(b"\xff\xfe x"), "\u{fffd}\u{fffd} x");
    }
}
