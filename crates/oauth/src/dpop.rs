//! Tokens bound to a key (RFC 9449): a proof for every request, here and at the resource.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use http::{HeaderName, HeaderValue, Method};
use plenipo_redact::Secret;

use crate::error::{KeyFault, OAuthError};
use crate::jose::{Claims, SigningKey, base64url, sha256};
use crate::url::EndpointUrl;

/// The header of a proof.
pub const DPOP: HeaderName = HeaderName::from_static("dpop");
/// The most origins whose nonces are kept.
const MOST: usize = 64;

/// A key that tokens are bound to, and the nonces that servers gave. Clones share both.
#[derive(Clone)]
pub struct DpopKey {
    key: SigningKey,
    stored: Secret<Vec<u8>>,
    /// By origin (RFC 9449 §8.2).
    nonces: Arc<Mutex<HashMap<String, String>>>,
}

impl DpopKey {
    /// A new P-256 key.
    ///
    /// # Errors
    /// [`KeyFault::Random`].
    pub fn generate() -> Result<Self, OAuthError> {
        let (key, stored) = SigningKey::generate()?;
        Ok(Self { key, stored, nonces: Arc::default() })
    }

    /// A key from a store.
    ///
    /// # Errors
    /// [`KeyFault::Rejected`].
    pub fn from_stored(stored: Secret<Vec<u8>>) -> Result<Self, OAuthError> {
        let key = SigningKey::from_stored(&stored)?;
        Ok(Self { key, stored, nonces: Arc::default() })
    }

    /// For a store: PKCS #8.
    #[must_use]
    pub fn stored(&self) -> &Secret<Vec<u8>> {
        &self.stored
    }

    /// `jkt` (RFC 9449 §6.1).
    #[must_use]
    pub fn thumbprint(&self) -> String {
        self.key.thumbprint()
    }

    /// A fresh proof for one request to `url`. With the access token it is for the resource
    /// (RFC 9449 §7), without for the token endpoint.
    ///
    /// # Errors
    /// [`KeyFault::Random`].
    pub fn header(
        &self,
        method: &Method,
        url: &EndpointUrl,
        token: Option<&Secret<String>>,
        now: SystemTime,
    ) -> Result<(HeaderName, HeaderValue), OAuthError> {
        self.header_with_body(method, url, (token, None), now)
    }

    /// As [`header`](Self::header), with the digest of the body's bytes as the MCP extension wants
    /// it.
    ///
    /// # Errors
    /// [`KeyFault::Random`].
    pub fn header_with_body(
        &self,
        method: &Method,
        url: &EndpointUrl,
        (token, body): (Option<&Secret<String>>, Option<&[u8]>),
        now: SystemTime,
    ) -> Result<(HeaderName, HeaderValue), OAuthError> {
        let htu = url.as_str().split('?').next().unwrap_or_default();
        let claims = Claims {
            htm: Some(method.as_str().to_owned()),
            htu: Some(htu.to_owned()),
            ath: token.map(|token| base64url(sha256(token.expose().as_bytes()))),
            nonce: self.nonce(url),
            content_digest: body.map(digest),
            ..Claims::new(now, None)?
        };
        let proof = self.key.sign("dpop+jwt", Some(self.key.public_jwk()), &claims)?;
        let value = HeaderValue::try_from(proof.into_exposed());
        let mut value = value.map_err(|_| OAuthError::from(KeyFault::Random))?;
        value.set_sensitive(true);
        Ok((DPOP, value))
    }

    /// Keeps the nonce that the origin of `url` gave; whether it is another than before.
    pub fn remember_nonce(&self, url: &EndpointUrl, nonce: &str) -> bool {
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = url.origin();
        if nonces.len() >= MOST && !nonces.contains_key(&origin) {
            nonces.clear();
        }
        nonces.insert(origin, nonce.to_owned()).as_deref() != Some(nonce)
    }

    pub(crate) fn check_accepted(&self, accepted: Option<&[String]>) -> Result<(), OAuthError> {
        self.key.check_accepted(accepted)
    }

    fn nonce(&self, url: &EndpointUrl) -> Option<String> {
        let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.get(&url.origin()).cloned()
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").finish_non_exhaustive()
    }
}

/// `sha-256=:BASE64:` (RFC 9530 §2).
fn digest(body: &[u8]) -> String {
    use base64::Engine as _;
    let digest = base64::engine::general_purpose::STANDARD.encode(sha256(body));
    format!("sha-256=:{digest}:")
}
