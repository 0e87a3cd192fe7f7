//! ID tokens (OpenID Connect Core §3.1.3.7): who signed in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plenipo_redact::Secret;
use serde_json::Value;

use crate::error::{AssertionFault, OAuthError};
use crate::issuer::Issuer;
use crate::jose::{Decoded, PublicKeys, decode};

/// Clocks may differ by so much, in seconds.
const SKEW: u64 = 60;

/// Who an ID token is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// `sub`: unique at the issuer, and never given to somebody else.
    pub subject: String,
    /// `email`, or `preferred_username`: to show only.
    pub name: Option<String>,
    /// `exp`.
    pub expires_at: SystemTime,
}

/// Checks an ID token that came with a token response: `iss`, `aud`, `azp`, `exp`, `iat`, and
/// `nonce` when one was sent. The signature is not verified: the token has to come straight from the
/// token endpoint over TLS, which the specification takes for as good.
///
/// # Errors
/// [`OAuthError::Assertion`].
pub fn check_id_token(
    token: &Secret<String>,
    issuer: &Issuer,
    client_id: &str,
    nonce: Option<&Secret<String>>,
    now: SystemTime,
) -> Result<Subject, OAuthError> {
    decode(token.expose())
        .and_then(|decoded| check(&decoded, (issuer, client_id), nonce, now))
        .map_err(|fault| OAuthError::Assertion { what: "ID token", fault })
}

/// As [`check_id_token`], and one of `keys` has to have signed it.
///
/// # Errors
/// [`OAuthError::Assertion`].
pub fn verify_id_token(
    token: &Secret<String>,
    keys: &PublicKeys,
    (issuer, client_id): (&Issuer, &str),
    nonce: Option<&Secret<String>>,
    now: SystemTime,
) -> Result<Subject, OAuthError> {
    keys.verify(token.expose())
        .and_then(|decoded| check(&decoded, (issuer, client_id), nonce, now))
        .map_err(|fault| OAuthError::Assertion { what: "ID token", fault })
}

fn check(
    decoded: &Decoded,
    (issuer, client_id): (&Issuer, &str),
    nonce: Option<&Secret<String>>,
    now: SystemTime,
) -> Result<Subject, AssertionFault> {
    let other = |name| Err(AssertionFault::Claim { name });
    if decoded.required("iss")? != issuer.as_str() {
        return other("iss");
    }
    let audiences = decoded.texts("aud").ok_or(AssertionFault::Missing { name: "aud" })?;
    if !audiences.contains(&client_id) {
        return other("aud");
    }
    match decoded.text("azp") {
        Some(azp) if azp != client_id => return other("azp"),
        None if audiences.len() > 1 => return other("azp"),
        _ => {}
    }
    decoded.check_time(now, SKEW)?;
    if let Some(nonce) = nonce
        && decoded.text("nonce") != Some(nonce.expose())
    {
        return other("nonce");
    }
    let name = decoded.text("email").or_else(|| decoded.text("preferred_username"));
    Ok(Subject {
        subject: decoded.required("sub")?.to_owned(),
        name: name.map(crate::text::shown),
        expires_at: expiry(decoded)?,
    })
}

/// `exp`, if a clock can hold it.
pub(crate) fn expiry(decoded: &Decoded) -> Result<SystemTime, AssertionFault> {
    let seconds = decoded.claims.get("exp").and_then(Value::as_f64);
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let expires = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(seconds));
    expires.ok_or(AssertionFault::Missing { name: "exp" })
}
