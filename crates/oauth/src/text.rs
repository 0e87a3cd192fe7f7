//! Text from peers, fit to show.

pub(crate) use plenipo_redact::text::shown;
use plenipo_redact::{REDACTED, redacted_url};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_taken_out_of_an_answer() {
        assert_eq!(
            scrubbed("bad token abcd1234!", ["abcd1234"].into_iter()),
            "bad token [redacted]!"
        );
    }
}
