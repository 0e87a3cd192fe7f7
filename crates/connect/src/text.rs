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

/// Control characters and the bidirectional overrides could rewrite what a terminal shows.
pub fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

/// The candidate nearest to `name`, when it is near enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
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
        assert_eq!(shown_bytes(b"\xff\xfe x"), "\u{fffd}\u{fffd} x");
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
        assert_eq!(nearest("zzz", ["args", "command"]), None);
    }
}
