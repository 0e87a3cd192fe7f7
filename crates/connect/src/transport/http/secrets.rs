//! Our own credentials in what a server says.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderName, HeaderValue};
use plenipo_redact::{REDACTED, is_secret_header};
use plenipo_wire::{Fragment, RawValue};

/// Shorter values would take ordinary words out of a text.
const SHORTEST: usize = 6;

/// Values that may not appear in errors, warnings and logs, where a server may echo them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Remembers a header's value if its name suggests a credential, or it looks like a token.
    pub(super) fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        let Ok(value) = value.to_str() else { return };
        let looks_like_token = value.len() >= 20 && !value.contains([' ', '/']);
        if !is_secret_header(name.as_str()) && !looks_like_token {
            return;
        }
        // Of `Bearer abc` the second word alone is a secret, too.
        for part in [Some(value), value.split_once(' ').map(|(_, rest)| rest)].into_iter().flatten()
        {
            let part = part.trim();
            if part.len() >= SHORTEST && !self.0.iter().any(|known| known == part) {
                self.0.push(part.to_owned());
            }
        }
        // Longer ones first, so that none is left in part.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    pub(super) fn extend(&mut self, other: &Self) {
        for secret in &other.0 {
            if !self.0.contains(secret) {
                self.0.push(secret.clone());
            }
        }
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// `text` without them.
    pub(crate) fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret, REDACTED));
            }
        }
        text
    }

    /// JSON text without them; `None` when it has none. Also found as JSON spells them.
    pub(crate) fn scrub_json(&self, raw: &RawValue) -> Option<Fragment> {
        let mut text = self.scrub(raw.get());
        for secret in &self.0 {
            let spelled = Fragment::string(secret).to_string();
            let spelled = spelled.trim_matches('"');
            if text.contains(spelled) {
                text = Cow::Owned(text.replace(spelled, REDACTED));
            }
        }
        match text {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => {
                Some(Fragment::parse(&text).unwrap_or_else(|_| Fragment::string(REDACTED)))
            }
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_of_text_and_json() {
        let mut secrets = Secrets::default();
        for (name, value) in [
            ("authorization", "Bearer s3cr3t-VALUE-99"),
            ("x-api-key", "a\"b\\cdef"),
            ("x-env", "production"),
            ("x-other", "0123456789abcdef0123"),
            ("x-token", "abc"),
        ] {
            let name = HeaderName::from_static(name);
            secrets.add(&name, &HeaderValue::from_str(value).unwrap());
        }
        let text =
            "bad s3cr3t-VALUE-99 in production: Bearer s3cr3t-VALUE-99 0123456789abcdef0123 abc";
        assert_eq!(secrets.scrub(text), "bad [redacted] in production: [redacted] [redacted] abc");
        let raw = Fragment::parse(r#"{"why":"a\"b\\cdef"}"#).unwrap();
        assert_eq!(secrets.scrub_json(raw.as_raw()).unwrap().as_str(), r#"{"why":"[redacted]"}"#);
        assert!(secrets.scrub_json(RawValue::NULL).is_none());
        assert!(!format!("{secrets:?}").contains("VALUE"));
    }
}
