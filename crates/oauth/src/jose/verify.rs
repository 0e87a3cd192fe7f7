//! Whose signature it is: JWK sets (RFC 7517 §5) and what they verify (RFC 7518 §3, RFC 8037 §3.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

use super::{Decoded, decode};
use crate::error::{AssertionFault, Document, DocumentFault, OAuthError};
use crate::http_client::{Fetched, Http};
use crate::server_metadata::ServerMetadata;

/// The most keys of a set that are looked at.
const MOST: usize = 64;

/// The public keys of an issuer that signatures may be made with.
#[derive(Debug, Clone, Default)]
pub struct PublicKeys(Vec<PublicKey>);

#[derive(Debug, Clone)]
struct PublicKey {
    id: Option<String>,
    /// `alg`, where the set narrows what the key is for.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Point { curve: Curve, point: Vec<u8> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    Ed25519,
}

impl PublicKeys {
    /// Reads the set that the issuer publishes as `jwks_uri`.
    ///
    /// # Errors
    /// [`Missing::Endpoint`](crate::Missing::Endpoint) without one; a document that cannot be used.
    pub async fn fetch(http: &Http<'_>, metadata: &ServerMetadata) -> Result<Self, OAuthError> {
        let url = metadata.need(metadata.jwks_uri.as_ref(), "jwks_uri")?;
        match http.get(Document::Keys, url).await? {
            Fetched::Found(json) => match json.value("keys") {
                Some(Value::Array(keys)) => Ok(Self::of(keys)),
                _ => Err(json.fault(DocumentFault::Missing { name: "keys" })),
            },
            Fetched::Absent => {
                let fault = DocumentFault::Status { status: 404 };
                Err(OAuthError::document(Document::Keys, url, fault))
            }
        }
    }

    /// The keys that can be used; others are for somebody else.
    #[must_use]
    pub fn of(keys: &[Value]) -> Self {
        let objects = keys.iter().take(MOST).filter_map(Value::as_object);
        Self(objects.filter_map(PublicKey::of).collect())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decodes a JWT that one of these keys signed.
    ///
    /// # Errors
    /// [`AssertionFault::Signature`], and what [`decode`] finds.
    pub fn verify(&self, jwt: &str) -> Result<Decoded, AssertionFault> {
        let decoded = decode(jwt)?;
        let header = |name: &str| decoded.header.get(name).and_then(Value::as_str);
        // Extensions that have to be understood (RFC 7515 §4.1.11): there is none that is.
        if decoded.header.contains_key("crit") {
            return Err(AssertionFault::Algorithm);
        }
        let algorithm = header("alg").ok_or(AssertionFault::Algorithm)?;
        let (signed, signature) = jwt.rsplit_once('.').ok_or(AssertionFault::NotJwt)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| AssertionFault::Signature)?;
        let id = header("kid");
        let fits = |key: &&PublicKey| {
            // A key without id fits any, and a token without id any key.
            let id_fits = key.id.is_none() || id.is_none() || key.id.as_deref() == id;
            id_fits && key.algorithm.as_deref().is_none_or(|own| own == algorithm)
        };
        let mut keys = self.0.iter().filter(fits);
        match keys.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            true => Ok(decoded),
            false => Err(AssertionFault::Signature),
        }
    }
}

impl PublicKey {
    fn of(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
            ("EC", Some("P-256")) => Material::Point {
                curve: Curve::P256,
                point: point(&bytes("x")?, &bytes("y")?, 32)?,
            },
            ("EC", Some("P-384")) => Material::Point {
                curve: Curve::P384,
                point: point(&bytes("x")?, &bytes("y")?, 48)?,
            },
            ("OKP", Some("Ed25519")) => {
                Material::Point { curve: Curve::Ed25519, point: bytes("x")? }
            }
            _ => return None,
        };
        let own = |name: &str| text(name).map(str::to_owned);
        Some(Self { id: own("kid"), algorithm: own("alg"), material })
    }

    fn verifies(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { modulus, exponent } => rsa(algorithm).is_some_and(|parameters| {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, signed, signature).is_ok()
            }),
            Material::Point { curve, point } => {
                let verification: &dyn VerificationAlgorithm = match (algorithm, curve) {
                    ("ES256", Curve::P256) => &ECDSA_P256_SHA256_FIXED,
                    ("ES384", Curve::P384) => &ECDSA_P384_SHA384_FIXED,
                    ("EdDSA" | "Ed25519", Curve::Ed25519) => &ED25519,
                    _ => return false,
                };
                UnparsedPublicKey::new(verification, point).verify(signed, signature).is_ok()
            }
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Uncompressed: 0x04 and both coordinates (SEC 1 §2.3.3).
fn point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}
