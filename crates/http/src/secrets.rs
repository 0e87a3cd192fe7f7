//! Our own credentials in what a server says: the headers of one behind a URL, the variables of one that was started.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;

use http::{HeaderName, HeaderValue, header};
use plenipo_redact::{REDACTED, is_secret_header};
use plenipo_wire::{Fragment, RawValue};

/// Shorter values would take ordinary words out of a text.
const SHORTEST: usize = 6;

/// Tokens that come and go are remembered up to so many.
const RECENT: usize = 16;

/// Ends of the names of variables that say where a secret is, and not what it is.
const PLACES: [&str; 7] = ["_ADDRESS", "_DIR", "_FILE", "_HOME", "_PATH", "_SOCK", "_URL"];

/// Values that may not appear in errors, warnings and logs, where a server may echo them.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Longer ones first, so that none is left in part.
    kept: Vec<String>,
    recent: VecDeque<String>,
}

impl Secrets {
    /// Remembers a header's value if its name suggests a credential, or it looks like a token.
    pub fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        let Ok(value) = value.to_str() else { return };
        let looks_like_token = value.len() >= 20 && !value.contains([' ', '/']);
        if !is_secret_header(name.as_str()) && !looks_like_token {
            return;
        }
        self.keep(parts(value));
    }

    /// The variables of a server's process that hold credentials: their names say so, or their value is a URL with a
    /// password in it.
    #[must_use]
    pub fn of_variables<'v>(variables: impl IntoIterator<Item = (&'v OsStr, &'v OsStr)>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in variables {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            let name = name.to_ascii_uppercase();
            if let Some(password) = password_of_url(value) {
                secrets.keep(parts(password));
            }
            if is_secret_header(&name) && !PLACES.iter().any(|end| name.ends_with(end)) {
                secrets.keep(parts(value));
            }
        }
        secrets
    }

    fn keep<'v>(&mut self, values: impl Iterator<Item = &'v str>) {
        for value in values {
            if !self.kept.iter().any(|known| known == value) {
                self.kept.push(value.to_owned());
            }
        }
        self.kept.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Remembers a credential that another will follow. One that is made anew for each request, such
    /// as a proof, is of no use to anybody else and is not kept.
    pub fn remember(&mut self, name: &HeaderName, value: &HeaderValue) {
        if name != header::AUTHORIZATION {
            return;
        }
        let Ok(value) = value.to_str() else { return };
        for part in parts(value) {
            if self.recent.iter().any(|known| known == part) {
                continue;
            }
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(part.to_owned());
        }
    }

    /// Remembers what `other` was told of for good.
    pub fn extend(&mut self, other: &Self) {
        self.keep(other.kept.iter().map(String::as_str));
    }

    /// A whole header comes before its part.
    fn all(&self) -> impl Iterator<Item = &String> {
        self.kept.iter().chain(&self.recent)
    }

    /// `text` without them, and without the beginning of one before an ellipsis, where [`shown`](plenipo_redact::shown)
    /// cut it: less than six bytes of it are left.
    #[must_use]
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut scrubbed = Cow::Borrowed(text);
        for secret in self.all() {
            if scrubbed.contains(secret.as_str()) {
                scrubbed = Cow::Owned(scrubbed.replace(secret, REDACTED));
            }
        }
        let cuts: Vec<usize> = scrubbed.match_indices('…').map(|(place, _)| place).collect();
        // From behind, so that places stay where they are.
        cuts.into_iter().rev().fold(scrubbed, |text, cut| self.without_beginning(text, cut))
    }

    /// [`scrub`](Self::scrub) for a text that ends where a limit cut it.
    #[must_use]
    pub fn scrub_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let scrubbed = self.scrub(text);
        let end = scrubbed.len();
        self.without_beginning(scrubbed, end)
    }

    /// Without the beginning of one that ends at `cut`.
    fn without_beginning<'t>(&self, text: Cow<'t, str>, cut: usize) -> Cow<'t, str> {
        let (Some(before), Some(behind)) = (text.get(..cut), text.get(cut..)) else { return text };
        let begun = |secret: &String| {
            let most = secret.len().saturating_sub(1).min(cut);
            let ends =
                |length: &usize| secret.get(..*length).is_some_and(|it| before.ends_with(it));
            (SHORTEST..=most).rev().find(ends)
        };
        let Some(length) = self.all().filter_map(begun).max() else { return text };
        let left = before.get(..cut.saturating_sub(length)).unwrap_or_default();
        Cow::Owned(format!("{left}{REDACTED}{behind}"))
    }

    /// JSON text without them; `None` when it has none. Also found as JSON spells them.
    #[must_use]
    pub fn scrub_json(&self, raw: &RawValue) -> Option<Fragment> {
        let mut text = self.scrub(raw.get());
        for secret in self.all() {
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
        write!(f, "Secrets({})", self.kept.len() + self.recent.len())
    }
}

/// The whole value and, of `Bearer abc`, the second word alone, which is a secret, too.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    let parts = [Some(value), value.split_once(' ').map(|(_, rest)| rest)];
    parts.into_iter().flatten().map(str::trim).filter(|part| part.len() >= SHORTEST)
}

/// `pw` of `scheme://user:pw@host`, as it is written there.
fn password_of_url(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_hold_credentials_are_known_by_name_or_by_their_url() {
        let variables = [
            ("NOTES_TOKEN", "t0ken-of-mine"),
            ("api_key", "/begins+like/a/path"),
            ("SSH_AUTH_SOCK", "/run/agent.sock"),
            ("TOKEN_FILE", "/etc/notes.token"),
            ("NOTES_MODE", "production"),
            ("PIN_SECRET", "12345"),
            ("DATABASE_URL", "postgres://ada:pa55word@db.example/notes"),
        ];
        let secrets =
            Secrets::of_variables(variables.map(|(name, value)| (name.as_ref(), value.as_ref())));
        let said = variables.map(|(_, value)| value).join(" ");
        assert_eq!(
            secrets.scrub(&said),
            "[redacted] [redacted] /run/agent.sock /etc/notes.token production 12345 \
             postgres://ada:[redacted]@db.example/notes"
        );
    }

    #[test]
    fn the_beginning_of_a_credential_at_a_cut_is_taken_out() {
        let mut secrets = Secrets::default();
        let value = HeaderValue::from_static("Bearer s3cr3t-VALUE-99");
        secrets.add(&HeaderName::from_static("authorization"), &value);
        for (text, left) in [
            ("", ""),
            ("it was s3cr3", "it was s3cr3"),
            ("it was s3cr3t", "it was [redacted]"),
            ("it was s3cr3t-VALUE-9", "it was [redacted]"),
            ("it was s3cr3t-VALUE-99", "it was [redacted]"),
            ("it was Bearer s3cr3t-VAL", "it was [redacted]"),
            ("s3cr3t-VALUE-9", "[redacted]"),
            ("s3cr3t-VALUE-99, s3cr3t-V, and more", "[redacted], s3cr3t-V, and more"),
            ("\u{e9}s3cr3t-\u{e9}", "\u{e9}s3cr3t-\u{e9}"),
        ] {
            assert_eq!(secrets.scrub_cut(text), left);
        }
        let shown = "a s3cr3t-V… and s3cr3t-… and s3cr3t-VALUE-99… and s3cr3";
        let left = "a [redacted]… and [redacted]… and [redacted]… and s3cr3";
        assert_eq!(secrets.scrub(shown), left);
    }

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
