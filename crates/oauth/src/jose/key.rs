//! Keys that sign: ES256 and RS256 and EdDSA (RFC 7518 §3, RFC 8037 §3.1).

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plenipo_redact::Secret;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};

use super::Claims;
use crate::error::{KeyFault, OAuthError};
use crate::server_metadata::lists;

/// A private key. Clones share it; nothing of it is shown.
#[derive(Clone)]
pub struct SigningKey(Arc<Inner>);

struct Inner {
    pair: Pair,
    key_id: Option<String>,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Rs256(RsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a private key from PEM text: PKCS #8, or PKCS #1 for RSA. `algorithm` (RFC 7518) may
    /// narrow what it is for; `key_id` becomes `kid`.
    ///
    /// # Errors
    /// [`KeyFault`]: no key, or one for another algorithm.
    pub fn from_pem(
        pem: &Secret<String>,
        algorithm: Option<&str>,
        key_id: Option<String>,
    ) -> Result<Self, OAuthError> {
        let key = PrivateKeyDer::from_pem_slice(pem.expose().as_bytes());
        let pair = match key.map_err(|_| KeyFault::NotPem)? {
            PrivateKeyDer::Pkcs8(key) => of_pkcs8(key.secret_pkcs8_der(), algorithm)?,
            PrivateKeyDer::Pkcs1(key) => {
                let pair = RsaKeyPair::from_der(key.secret_pkcs1_der());
                Pair::Rs256(pair.map_err(|_| KeyFault::Rejected { algorithm: "RS256" })?)
            }
            _ => return Err(KeyFault::NotPem.into()),
        };
        let key = Self(Arc::new(Inner { pair, key_id }));
        match algorithm {
            Some(wanted) if wanted != key.algorithm() => Err(KeyFault::Algorithm.into()),
            _ => Ok(key),
        }
    }

    /// A new P-256 key, and its PKCS #8 form for a store.
    ///
    /// # Errors
    /// [`KeyFault::Random`].
    pub fn generate() -> Result<(Self, Secret<Vec<u8>>), OAuthError> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = Secret::new(document.map_err(|_| KeyFault::Random)?.as_ref().to_vec());
        Ok((Self::from_stored(&document)?, document))
    }

    /// A key that [`generate`](Self::generate) made.
    ///
    /// # Errors
    /// [`KeyFault::Rejected`].
    pub fn from_stored(pkcs8: &Secret<Vec<u8>>) -> Result<Self, OAuthError> {
        let pair = of_pkcs8(pkcs8.expose(), Some("ES256"))?;
        Ok(Self(Arc::new(Inner { pair, key_id: None })))
    }

    /// As in JWA.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self.0.pair {
            Pair::Es256(_) => "ES256",
            Pair::Rs256(_) => "RS256",
            Pair::EdDsa(_) => "EdDSA",
        }
    }

    /// The public key as a JWK (RFC 7517): members in the order of RFC 7638.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        match &self.0.pair {
            Pair::Es256(pair) => {
                // 0x04, then both coordinates of 32 bytes.
                let point = pair.public_key().as_ref();
                let x = point.get(1..33).unwrap_or_default();
                let y = point.get(33..65).unwrap_or_default();
                json!({"crv": "P-256", "kty": "EC", "x": base64url(x), "y": base64url(y)})
            }
            Pair::Rs256(pair) => {
                let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"e": base64url(parts.e), "kty": "RSA", "n": base64url(parts.n)})
            }
            Pair::EdDsa(pair) => {
                json!({"crv": "Ed25519", "kty": "OKP", "x": base64url(pair.public_key().as_ref())})
            }
        }
    }

    /// The thumbprint of the public key (RFC 7638), as `jkt` has it.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        // serde_json sorts the members, as the RFC wants them.
        base64url(sha256(self.public_jwk().to_string().as_bytes()).as_ref())
    }

    pub(crate) fn check_accepted(&self, accepted: Option<&[String]>) -> Result<(), OAuthError> {
        match accepted {
            Some(list) if !list.is_empty() && !lists(accepted, self.algorithm()) => {
                Err(KeyFault::NotAccepted {
                    algorithm: self.algorithm(),
                    accepted: crate::text::shown(&list.join(", ")),
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// A JWT in compact form. `jwk` goes into the header.
    pub(crate) fn sign(
        &self,
        kind: &str,
        jwk: Option<Value>,
        claims: &Claims,
    ) -> Result<Secret<String>, OAuthError> {
        let mut header = Map::new();
        header.insert("alg".to_owned(), self.algorithm().into());
        header.insert("typ".to_owned(), kind.into());
        if let Some(key_id) = &self.0.key_id {
            header.insert("kid".to_owned(), key_id.as_str().into());
        }
        if let Some(jwk) = jwk {
            header.insert("jwk".to_owned(), jwk);
        }
        let header = Value::Object(header).to_string();
        let claims = serde_json::to_string(claims).map_err(|_| KeyFault::Random)?;
        let mut jwt = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
        let signature = self.signature(jwt.as_bytes())?;
        jwt.push('.');
        jwt.push_str(&base64url(&signature));
        Ok(Secret::new(jwt))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, KeyFault> {
        let random = SystemRandom::new();
        match &self.0.pair {
            Pair::Es256(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| KeyFault::Random)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| KeyFault::Random)?;
                Ok(signature)
            }
            Pair::EdDsa(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.algorithm()).finish_non_exhaustive()
    }
}

/// The first kind of key that the document is one of.
fn of_pkcs8(der: &[u8], algorithm: Option<&str>) -> Result<Pair, KeyFault> {
    let wanted = |name: &str| algorithm.is_none_or(|algorithm| algorithm == name);
    let random = SystemRandom::new();
    if wanted("ES256") {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random);
        if let Ok(pair) = pair {
            return Ok(Pair::Es256(pair));
        }
    }
    if wanted("RS256")
        && let Ok(pair) = RsaKeyPair::from_pkcs8(der)
    {
        return Ok(Pair::Rs256(pair));
    }
    if wanted("EdDSA")
        && let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
    {
        return Ok(Pair::EdDsa(pair));
    }
    Err(match algorithm {
        Some("ES256") => KeyFault::Rejected { algorithm: "ES256" },
        Some("RS256") => KeyFault::Rejected { algorithm: "RS256" },
        Some("EdDSA") => KeyFault::Rejected { algorithm: "EdDSA" },
        _ => KeyFault::Algorithm,
    })
}

pub(crate) fn sha256(bytes: &[u8]) -> ring::digest::Digest {
    ring::digest::digest(&ring::digest::SHA256, bytes)
}

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// 256 random bits as 43 characters of base64url.
pub(crate) fn random_text() -> Result<String, KeyFault> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyFault::Random)?;
    Ok(base64url(bytes))
}
