//! HTTP header values without credentials.

use std::borrow::Cow;

use crate::REDACTED;

/// A header whose name holds one of these is taken to carry a credential.
const SECRET_WORDS: [&str; 12] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "key",
    "credential",
    "session",
    "signature",
    "assertion",
    "dpop",
];
/// Headers whose value may start with an authentication scheme (RFC 9110 section 11.6).
const SCHEME_HEADERS: [&str; 2] = ["authorization", "proxy-authorization"];

/// The value of the header `name` for display: masked when the name suggests a credential.
///
/// Of `Authorization: SCHEME credentials` the scheme stays.
pub fn redacted_header<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if !is_secret_header(name) {
        return Cow::Borrowed(value);
    }
    let has_scheme = SCHEME_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    match value.trim_start().split_once(' ') {
        Some((scheme, _)) if has_scheme && is_scheme(scheme) => {
            Cow::Owned(format!("{scheme} {REDACTED}"))
        }
        _ => Cow::Borrowed(REDACTED),
    }
}

/// Whether the header `name` suggests that its value is a credential. Errs towards yes.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// A short word of letters: what schemes look like and tokens do not.
fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.len() <= 16 && text.chars().all(|inner| inner.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_suggest_a_credential_are_masked() {
        for name in [
            "authorization",
            "Cookie",
            "Set-Cookie",
            "X-API-Key",
            "x-goog-api-key",
            "DPoP",
            "Mcp-Session-Id",
            "X-Auth",
            "X-Amz-Security-Token",
            "PRIVATE-TOKEN",
            "apikey",
        ] {
            assert_eq!(redacted_header(name, "abc"), REDACTED, "{name}");
        }
        for name in ["Accept", "Content-Type", "MCP-Protocol-Version", "User-Agent", ""] {
            assert_eq!(redacted_header(name, "abc"), "abc", "{name}");
        }
    }

    #[test]
    fn an_authentication_scheme_stays() {
        assert_eq!(redacted_header("Authorization", "Bearer a.b.c"), "Bearer [redacted]");
        assert_eq!(redacted_header("AUTHORIZATION", "Basic dTpw"), "Basic [redacted]");
        assert_eq!(redacted_header("Authorization", "abc"), REDACTED);
        assert_eq!(redacted_header("Authorization", "s3cr3t more"), REDACTED);
        assert_eq!(redacted_header("X-Token", "Bearer a.b.c"), REDACTED);
    }
}
