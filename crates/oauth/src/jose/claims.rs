//! The claims of JWTs: those that are made here, and those of others.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};

use super::random_text;
use crate::error::{AssertionFault, OAuthError};

/// The longest JWT that is read, in bytes.
const LONGEST: usize = 64 * 1024;

/// Claims of a JWT that is signed here (RFC 7519 §4.1, RFC 9449 §4.2).
#[derive(Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Claims {
    /// Issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// Subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    /// Audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<String>,
    /// 256 random bits.
    pub jti: String,
    /// Seconds since 1970.
    pub iat: u64,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// HTTP method of a DPoP proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub htm: Option<String>,
    /// URL of a DPoP proof, without query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub htu: Option<String>,
    /// Hash of the access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ath: Option<String>,
    /// The server's nonce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Digest of the body, in the form of RFC 9530.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<String>,
}

impl Claims {
    /// A fresh `jti`, `iat` now, and `exp` after `life` seconds.
    ///
    /// # Errors
    /// [`KeyFault::Random`](crate::error::KeyFault::Random).
    pub fn new(now: SystemTime, life: Option<u64>) -> Result<Self, OAuthError> {
        let iat = seconds(now);
        let exp = life.map(|life| iat.saturating_add(life));
        Ok(Self { jti: random_text()?, iat, exp, ..Self::default() })
    }
}

/// Header and claims of somebody's JWT. The signature is NOT verified: good only for a token that
/// came over TLS from the endpoint that signs it (OpenID Connect Core §3.1.3.7), or as a second
/// look at what another party verifies.
#[derive(Clone)]
#[non_exhaustive]
pub struct Decoded {
    /// The JOSE header.
    pub header: Map<String, Value>,
    /// The claims.
    pub claims: Map<String, Value>,
}

/// Decodes a JWT in compact form.
///
/// # Errors
/// [`AssertionFault`]: not a JWT, encrypted, or `alg` is `none` or symmetric.
pub fn decode(jwt: &str) -> Result<Decoded, AssertionFault> {
    if jwt.len() > LONGEST {
        return Err(AssertionFault::NotJwt);
    }
    let parts: Vec<_> = jwt.split('.').collect();
    let (header, claims, signature) = match *parts.as_slice() {
        [header, claims, signature] => (header, claims, signature),
        [_, _, _, _, _] => return Err(AssertionFault::Encrypted),
        _ => return Err(AssertionFault::NotJwt),
    };
    let object = |part: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| AssertionFault::NotJwt)?;
        crate::json::parse(&bytes).map_err(|_| AssertionFault::NotJwt)
    };
    let decoded = Decoded { header: object(header)?, claims: object(claims)? };
    let algorithm = decoded.header.get("alg").and_then(Value::as_str).unwrap_or("none");
    // A symmetric signature proves nothing to one who does not share the key.
    let symmetric = algorithm.starts_with("HS");
    if algorithm.eq_ignore_ascii_case("none") || symmetric || signature.is_empty() {
        return Err(AssertionFault::Algorithm);
    }
    Ok(decoded)
}

impl Decoded {
    /// A claim that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str)
    }

    /// A claim that has to be a string that is not empty.
    ///
    /// # Errors
    /// [`AssertionFault::Missing`].
    pub fn required(&self, name: &'static str) -> Result<&str, AssertionFault> {
        let text = self.text(name).filter(|text| !text.is_empty());
        text.ok_or(AssertionFault::Missing { name })
    }

    /// The values of a claim that is a string or an array of strings.
    #[must_use]
    pub fn texts(&self, name: &str) -> Option<Vec<&str>> {
        match self.claims.get(name)? {
            Value::String(text) => Some(vec![text]),
            Value::Array(list) => list.iter().map(Value::as_str).collect(),
            _ => None,
        }
    }

    /// Whether the time is right, with `skew` seconds to forgive: `exp` is required.
    ///
    /// # Errors
    /// [`AssertionFault::Expired`], [`AssertionFault::NotYet`], or `exp` is missing.
    pub fn check_time(&self, now: SystemTime, skew: u64) -> Result<(), AssertionFault> {
        let now = seconds(now);
        let time = |name: &str| self.claims.get(name).and_then(Value::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
        let (earliest, latest) = (now.saturating_sub(skew) as f64, (now + skew) as f64);
        let expires = time("exp").ok_or(AssertionFault::Missing { name: "exp" })?;
        if expires <= earliest {
            return Err(AssertionFault::Expired);
        }
        let not_yet = |name| time(name).is_some_and(|begin| begin > latest);
        match not_yet("iat") || not_yet("nbf") {
            true => Err(AssertionFault::NotYet),
            false => Ok(()),
        }
    }
}

pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
