//! Text from peers, fit to show.

use plenipo_redact::{REDACTED, redacted_url};

const LONGEST: usize = 200;

/// Without control characters, cut to 200 characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|character| if is_harmless(character) { character } else { ' ' })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// A URL from a peer.
pub(crate) fn shown_url(text: &str) -> String {
    shown(&redacted_url(text))
}

/// `text` without the secrets that were sent: some servers repeat what they refuse.
pub(crate) fn scrubbed<'a>(text: &str, secrets: impl Iterator<Item = &'a str>) -> String {
    let mut text = text.to_owned();
    for secret in secrets.filter(|secret| secret.len() >= 4) {
        if text.contains(secret) {
            text = text.replace(secret, REDACTED);
        }
    }
    text
}

/// Neither a control character nor one that turns or hides text.
fn is_harmless(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_peers_write_is_cut_and_cleaned() {
        assert_eq!(shown("a\u{1b}[31mb\n\u{202e}c"), "a [31mb  c");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), LONGEST + 1);
        assert_eq!(
            scrubbed("bad token abcd1234!", ["abcd1234"].into_iter()),
            "bad token [redacted]!"
        );
    }
}
