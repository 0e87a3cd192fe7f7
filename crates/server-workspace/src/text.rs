//! Text from elsewhere, made fit for one line of a message.

/// Characters of a name that a peer chose.
const NAME_CHARACTERS: usize = 80;

/// A name for a message: shortened, without control characters.
pub(crate) fn name(text: &str) -> String {
    one_line(text, NAME_CHARACTERS)
}

/// At most `characters` of `text`, without control characters; an ellipsis shows a cut.
pub(crate) fn one_line(text: &str, characters: usize) -> String {
    let mut clean = text.chars().filter(|character| !character.is_control());
    let mut line: String = clean.by_ref().take(characters).collect();
    if clean.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// The bytes that `character` takes inside a JSON string.
pub(crate) fn encoded_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

/// An error and its sources in one sentence.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use plenipo_wire::Fragment;

    use super::*;

    #[test]
    fn a_line_is_bounded_and_clean() {
        assert_eq!(one_line("a\u{1b}[1mb\r\nc", 20), "a[1mbc");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüß", 3), "äö…");
    }

    #[test]
    fn encoded_bytes_are_what_the_encoder_writes() {
        for character in (0..=0x3000).filter_map(char::from_u32) {
            let written = Fragment::string(&character.to_string()).as_str().len();
            assert_eq!(encoded_bytes(character) + 2, written, "{character:?}");
        }
    }
}
